"""Imports point one way: from the outer layers to the inner ones."""

from pathlib import Path

import pytest

from attngeom.atlas.questions import BUILT_IN
from attngeom.cli.commands import COMMANDS
from attngeom.explore.views import VIEWS
from attngeom.papers import CLAIMS
from attngeom.programs.frontends import FRONTENDS
from tests.sources import SOURCE, import_statements

LAYERS = [
    {"limits"},
    {"digits", "palette", "temporaries"},
    {"errors", "files", "results", "version"},
    {"processes", "rooms", "streams"},
    {"drawing"},
    {"exact"},
    {"groups"},
    {"programs"},
    {"network"},
    {"layer"},
    {"verification"},
    {"rank"},
    {"dimensions", "heads", "models"},
    {"inspection"},
    {"canonical"},
    {"comparison"},
    {"equations", "recovery"},
    {"certification", "learning"},
    {"interop"},
    {"proofs"},
    {"atlas", "papers"},
    {"demo"},
    {"explore"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
SIDEWAYS = {("errors", "files"), ("files", "errors")}
VERIFIERS = {
    "limits",
    "digits",
    "errors",
    "files",
    "rooms",
    "temporaries",
    "streams",
    "results",
    "version",
    "exact",
    "network",
    "verification",
}
VERIFIER_MODULES = {f"attngeom.layer.{name}" for name in ("coefficients", "files", "polynomial_maps")}


def layer(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "attngeom" else None


def imports(path: Path) -> set[str]:
    found = set()
    for module, names in import_statements(path):
        found |= {module} | {f"attngeom.{name}" for name in names if module == "attngeom"}
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
    for module, names in import_statements(path):
        if module == "attngeom.layer" and names:
            found = (found - {module}) | {f"{module}.{name}" for name in names}
        elif module in ("importlib", "runpy"):
            found.add(module)
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


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


LOADED_BY_NAME = {
    *(f"attngeom.cli.{module}" for module, _ in COMMANDS.values()),
    *(f"attngeom.explore.views.{name}" for name in VIEWS),
    *(f"attngeom.papers.{claim.run.name.split('.')[0]}" for claim in CLAIMS if hasattr(claim.run, "name")),
    *BUILT_IN.values(),
    *(f"attngeom.programs.frontends.{name}" for name in FRONTENDS),
    *("attngeom.__main__", "attngeom.atlas.children", "attngeom.explore.jobs"),  # processes of their own
}
"""Modules that tables name and the package loads on demand."""


def test_every_module_has_a_caller():
    """What no other module imports, and no table of commands, views, claims or questions names, is dead."""
    modules = {dotted(path): path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}
    called = set()
    for path in SOURCE.rglob("*.py"):
        for module, names in import_statements(path):
            called |= {module, *(f"{module}.{name}" for name in names)} - {dotted(path)}
    assert set(modules) >= LOADED_BY_NAME
    assert set(modules) - called - LOADED_BY_NAME == set()
