"""Imports point one way: from the outer layers to the inner ones."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "attngeom"
LAYERS = [
    {"errors", "files", "packages"},
    {"exact"},
    {"network"},
    {"coefficients"},
    {"dimension", "fibers", "invariants", "implicitization"},
    {"certificates"},
    {"atlas", "interop", "models", "reproduce"},
    {"reports"},
    {"plots"},
    {"cli", "web"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# The ledger of known equations compares the ideal with the families, so it reads them.
SIDEWAYS = {("implicitization", "invariants"), ("errors", "files"), ("files", "errors")}
VERIFIERS = {"errors", "files", "exact", "network", "coefficients", "certificates"}


def layer(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "attngeom" else None


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
            if node.module == "attngeom":
                found |= {f"attngeom.{alias.name}" for alias in node.names}
    return {module for module in found if module.startswith("attngeom.")}


MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE or path.stem in RANK]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_to_inner_layers(path):
    own = layer("attngeom." + ".".join(path.relative_to(SOURCE).with_suffix("").parts))
    for module in imports(path):
        other = layer(module)
        if other in (None, own, "__version__"):
            continue
        assert other in RANK, f"{other} has no layer"
        assert RANK[other] < RANK[own] or (own, other) in SIDEWAYS, f"{own} must not import {module}"


@pytest.mark.parametrize("path", sorted(SOURCE.glob("certificates/verify*.py")), ids=lambda path: path.stem)
def test_verifiers_import_no_search_code(path):
    for module in imports(path):
        assert layer(module) in VERIFIERS, f"{path.stem} must not import {module}"
