"""The public names of the package: all there, loaded on demand."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import attngeom
from tests.sources import SOURCE

CLASS = re.compile(r"^\s*class ([A-Za-z]\w*)[(:]", re.MULTILINE)


def test_every_public_name_exists():
    for name in attngeom.__all__:
        assert getattr(attngeom, name) is not None
        assert name in dir(attngeom), name


def test_names_are_plain_functions():
    architecture = attngeom.Architecture((3, 3, 3), 2, tokens=3)
    assert attngeom.dimension(architecture).dimension == 23
    assert "architecture" in inspect.signature(attngeom.dimension).parameters
    names = [family.name for family in attngeom.invariants(attngeom.Architecture((3, 1), 3, tokens=2))]
    assert "slice-pencil" in names


@pytest.mark.parametrize("package", ["attngeom.exact", "attngeom.models"])
def test_names_of_packages_are_loaded_on_demand(package):
    room = importlib.import_module(package)
    assert set(room._NAMES) == set(room.__all__)
    for name, home in room._NAMES.items():
        assert getattr(room, name) is getattr(importlib.import_module(f"{package}.{home}"), name)
    with pytest.raises(AttributeError, match="nonsense"):
        room.nonsense  # noqa: B018


def test_unknown_names_are_errors():
    with pytest.raises(AttributeError, match="nonsense"):
        attngeom.nonsense  # noqa: B018


def test_import_is_cheap():
    script = "import sys, attngeom; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_names_are_few_and_types_are_there():
    assert len(attngeom.__all__) <= 31
    assert (Path(attngeom.__file__).parent / "py.typed").exists()


def test_type_checkers_see_the_names_that_are_loaded():
    stub = ast.parse((Path(attngeom.__file__).parent / "__init__.pyi").read_text())
    seen = {}
    for node in stub.body[1:]:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name  # what a stub exports
            seen[alias.name] = str(node.module)
    loaded = {name: f"attngeom.{module}" for name, module in attngeom._NAMES.items()}
    packages = dict.fromkeys(attngeom._PACKAGES, "attngeom")
    assert seen == loaded | packages | {"__version__": "attngeom.version"}


def test_a_class_name_means_one_thing():
    homes = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            homes[name].append(f"{path.parent.name}/{path.name}")
    assert len(homes) > 100
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
