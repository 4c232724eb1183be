"""The public names of the package: all there, loaded on demand."""

import ast
import difflib
import importlib
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import attngeom
from attngeom.cli.commands import COMMANDS
from attngeom.errors import InputError
from tests.api import RECORD, ROOMS, interface
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


def test_the_interface_is_the_recorded_one():
    """What is public changes on purpose: a difference is printed, and ``python -m tests.api --write`` records it."""
    recorded, found = RECORD.read_text(encoding="utf-8").splitlines(), interface()
    changed = list(difflib.unified_diff(recorded, found, "recorded", "found", n=0, lineterm=""))
    assert not changed, "\n".join(["record it with python -m tests.api --write if it is meant:", *changed])


@pytest.mark.parametrize("name", ROOMS)
def test_every_room_shows_its_names_and_no_others(name):
    """What dir and the Tab key show is what the room is for; all of it is there, and nothing else is promised."""
    room = importlib.import_module(f"attngeom.{name}")
    assert room.__all__ and dir(room) == sorted(room.__all__)
    for public in room.__all__:
        assert getattr(room, public) is not None
    for public, home in getattr(room, "_NAMES", {}).items():
        made = getattr(importlib.import_module(f"attngeom.{name}.{home}"), public)
        assert getattr(room, public) is made or inspect.unwrap(getattr(room, public)) is made
        assert public in room.__all__
    with pytest.raises(AttributeError, match="nonsense"):
        room.nonsense  # noqa: B018


PYTHON = {"dim": "dimension", "lambda": "learning_coefficient", "model": "models", "reproduce": "papers"}
"""Commands whose functions have another name: a keyword of Python, a word in full, a room."""
ONLY_COMMANDS = {"demo", "explore", "import", "info", "prove", "random"}


def test_questions_have_one_name_in_python_and_on_the_command_line():
    for command in set(COMMANDS) - ONLY_COMMANDS:
        name = PYTHON.get(command, command)
        assert name in attngeom.__all__, command
        assert callable(getattr(attngeom, name)) or name in attngeom._PACKAGES


def test_commands_are_called():
    architecture = attngeom.Architecture((2, 2), 1, tokens=2)
    weights = attngeom.random_weights(architecture, attngeom.QQ, seed=0)
    assert attngeom.laws(architecture).count == 2
    assert attngeom.heads(weights).is_positive is True
    assert attngeom.heads(attngeom.coefficients(weights)).outcome == "found"
    assert len(attngeom.track([weights.to(attngeom.RR)]).snapshots) == 1
    assert attngeom.net is attngeom.analyze


TOLD = {
    "a path": (lambda: attngeom.compare("a.json", "b.json"), "attngeom.read_weights('a.json')"),
    "a path among weights": (lambda: attngeom.track(["run.safetensors"]), "read_weights('run.safetensors')"),
    "a path for one of two": (lambda: attngeom.heads(Path("a.json")), "or attngeom.read_weights('a.json')"),
    "a path for what may be called": (lambda: attngeom.recover("c.json"), "attngeom.read_coefficients('c.json')"),
    "a path of a model": (lambda: attngeom.models.compare("a", "b"), "attngeom.models.open_model('a')"),
    "weights": (lambda: attngeom.laws(attngeom.random_weights(SMALL, attngeom.QQ, 0)), "weights.architecture"),
    "widths": (lambda: attngeom.dimension((3, 3)), "attngeom.Architecture(widths, attention)"),
    "nothing": (lambda: attngeom.inspect(None), "attngeom.read_weights(path)"),
}
SMALL = attngeom.Architecture((2, 2), 1, tokens=2)


@pytest.mark.parametrize("given", TOLD)
def test_what_is_no_weights_is_told_what_to_type(given):
    ask, advice = TOLD[given]
    with pytest.raises(InputError, match=re.escape(advice) + "$"):
        ask()


def test_unknown_names_are_errors():
    with pytest.raises(AttributeError, match="nonsense"):
        attngeom.nonsense  # noqa: B018


def test_import_is_cheap():
    script = "import sys, attngeom; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_names_are_few_and_types_are_there():
    assert len(attngeom.__all__) <= 36
    assert (Path(attngeom.__file__).parent / "py.typed").exists()


def test_type_checkers_see_the_names_that_are_loaded():
    stub = ast.parse((Path(attngeom.__file__).parent / "__init__.pyi").read_text())
    seen = {}
    homes = {}
    for node in stub.body[1:]:
        if isinstance(node, ast.Assign):
            assert isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Name)
            seen[node.targets[0].id] = f"{homes[node.value.id]}.{node.value.id}"
            continue
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            homes[alias.name] = str(node.module)
            if alias.asname == alias.name:  # what a stub exports
                seen[alias.name] = str(node.module)
    loaded = {name: f"attngeom.{module}" for name, module in attngeom._NAMES.items()}
    loaded |= {name: f"attngeom.{module}.{function}" for name, (module, function) in attngeom._CALLED.items()}
    packages = dict.fromkeys(attngeom._PACKAGES, "attngeom") | {"heads": "attngeom.heads.finding"}
    assert seen == loaded | packages | {"__version__": "attngeom.version"}


def test_a_class_name_means_one_thing():
    homes = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            homes[name].append(f"{path.parent.name}/{path.name}")
    assert len(homes) > 100
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
