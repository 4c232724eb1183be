"""Imports point one way: from the outer layers to the inner ones."""

import ast
from pathlib import Path

import pytest

from tests.sources import SOURCE, statements

LAYERS = [
    {"errors", "files", "palette", "results", "version"},
    {"streams"},
    {"drawing"},
    {"exact"},
    {"network"},
    {"layer"},
    {"verification"},
    {"dimensions", "heads", "models"},
    {"inspection"},
    {"canonical"},
    {"comparison"},
    {"equations", "recovery"},
    {"certification", "learning"},
    {"interop"},
    {"atlas", "papers"},
    {"demo"},
    {"explore"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
SIDEWAYS = {("errors", "files"), ("files", "errors")}
VERIFIERS = {"errors", "files", "streams", "results", "version", "exact", "network", "verification"}
VERIFIER_MODULES = {"attngeom.layer.coefficients", "attngeom.layer.files", "attngeom.layer.terms"}


def layer(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "attngeom" else None


def imports(path: Path) -> set[str]:
    found = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
            if node.module == "attngeom":
                found |= {f"attngeom.{alias.name}" for alias in node.names}
    return {module for module in found if module.startswith("attngeom.")}


MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE or path.stem in RANK]


def test_imports_point_to_inner_layers():
    assert MODULES
    for path in MODULES:
        own = layer("attngeom." + ".".join(path.relative_to(SOURCE).with_suffix("").parts))
        for module in imports(path):
            other = layer(module)
            if other in (None, own):
                continue
            assert other in RANK, f"{path}: {other} has no layer"
            assert RANK[other] < RANK[own] or (own, other) in SIDEWAYS, f"{path}: {own} must not import {module}"


def foreign_imports(path: Path) -> set[str]:
    """What a verifier imports beside the other verifiers and the modules below them; names count like modules."""
    found = imports(path)
    for node in statements(path):
        if isinstance(node, ast.ImportFrom) and node.module == "attngeom.layer":
            found = (found - {"attngeom.layer"}) | {f"attngeom.layer.{alias.name}" for alias in node.names}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found |= {str(name) for name in names if name in ("importlib", "runpy")}
    return {module for module in found if layer(module) not in VERIFIERS and module not in VERIFIER_MODULES}


def test_verifiers_import_no_search_code():
    paths = sorted(SOURCE.glob("verification/*.py"))
    assert paths
    for path in paths:
        assert not foreign_imports(path), path


@pytest.mark.parametrize("module", sorted(VERIFIER_MODULES))
def test_what_verifiers_share_with_the_search_imports_nothing_else(module):
    path = SOURCE.parent / Path(*module.split(".")).with_suffix(".py")
    assert not foreign_imports(path)
