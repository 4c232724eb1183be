"""Every help ends in examples, and each runs on the example files: in ASCII, on a narrow screen, and interrupted."""

import contextlib
import inspect
import io
import re
import shlex
import shutil
import sys
import webbrowser

import pytest

from attngeom.cli import app
from attngeom.cli.commands import EXAMPLES
from attngeom.explore.server import Explorer
from tests.effort import spread
from tests.example_files import copy_examples
from tests.sources import SOURCE

NEGATIVE = {"certify closure_only.json": 1}
LINES = list(dict.fromkeys(line for lines in EXAMPLES.values() for line in lines))
FRAME = f"{SOURCE}/cli/", f"{SOURCE}/explore/"
CUT = re.compile(r"\d…|\d\.\.\.")


def test_every_command_of_every_group_has_examples():
    found = set()
    for name in app.COMMANDS:
        built = app.build_command(name)
        for group in built.registered_groups:
            found |= {group.name} | {
                f"{group.name} {command.name}" for command in group.typer_instance.registered_commands
            }
        if not built.registered_groups:
            found.add(name)
    assert found == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_shows_the_examples(name, capfd):
    assert app.run([*name.split(), "--help"]) == 0
    shown = capfd.readouterr().out
    for line in EXAMPLES[name]:
        assert line.startswith(name) and f"  attngeom {line}\n" in shown
    assert not re.search(r"^ +--[a-z-]+ <", shown, re.MULTILINE), "values are named, not typed"


@pytest.mark.parametrize("group", ["atlas", "model"])
def test_summaries_of_groups_are_not_cut(group, capfd):
    assert app.run([group, "--help"]) == 0
    assert "..." not in capfd.readouterr().out.replace("[ARGS]...", "")


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """The example files with a store and the certificate of a network, made once."""
    folder = copy_examples(tmp_path_factory.mktemp("examples") / "demo")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for line in (EXAMPLES["atlas run"][0], "net network.py:attention --certificate network.json"):
            assert app.run(shlex.split(line)) == 0
    return folder


@pytest.fixture
def here(examples, tmp_path, monkeypatch):
    """A folder with the example files, a narrow screen, and an explorer that is interrupted as soon as it serves."""

    def interrupt(server):
        raise KeyboardInterrupt

    monkeypatch.setattr(Explorer, "serve", interrupt)
    monkeypatch.setattr(Explorer, "warm", lambda server: None)
    monkeypatch.setattr(webbrowser, "open", lambda address: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.chdir(shutil.copytree(examples, tmp_path / "demo"))
    return tmp_path / "demo"


@pytest.mark.parametrize("line", LINES)
def test_examples_run_with_ascii_on_a_narrow_screen(line, here, monkeypatch):
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="ascii") for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    code = app.run(shlex.split(line))
    for stream in streams.values():
        stream.flush()
    shown, said = (stream.buffer.getvalue().decode("ascii") for stream in streams.values())
    assert code == NEGATIVE.get(line, 0), said
    assert shown and all(text == text.rstrip() for text in shown.splitlines())
    assert not CUT.search(shown)


class Stop:
    """An interrupt at the n-th call of a function of the engine; Python swallows what is raised when generators end."""

    def __init__(self, number):
        self.left = number

    def __call__(self, frame, event, argument):
        name = frame.f_code.co_filename
        is_generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        if event == "call" and not is_generator and name.startswith(f"{SOURCE}/") and not name.startswith(FRAME):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


ENGINES = [lines[0] for name, lines in EXAMPLES.items() if name not in ("info", "explore")]


@pytest.mark.parametrize(("line", "number"), spread(ENGINES, [1, 20]))
def test_an_interrupt_is_told_in_one_line(line, number, here, capfd):
    if line.startswith("atlas run"):
        (here / "atlas.db").unlink()
    before = set(here.iterdir())
    sys.setprofile(Stop(number))
    try:
        code = app.run(shlex.split(line))
    finally:
        sys.setprofile(None)
    assert code == 130
    assert capfd.readouterr().err == "attngeom: interrupted\n"
    # Folders and stores can be gone on with; no half of a file stays.
    assert not [path for path in set(here.iterdir()) - before if path.is_file() and ".db" not in path.suffix]
