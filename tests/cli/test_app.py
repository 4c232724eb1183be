"""The frame: the table of commands is complete, and a call imports only the modules of its command."""

import subprocess
import sys

import pytest

from attngeom.cli.app import COMMANDS, build_app, command_modules, run


def registered(module):
    app = build_app([module])
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    return names | {group.name for group in app.registered_groups}


def test_table_of_commands_names_every_command_and_its_module():
    found = {name: module for module in command_modules() for name in registered(module)}
    assert found == COMMANDS


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_and_the_shared_options(command, capsys):
    assert run([command, "--help"]) == 0
    text = capsys.readouterr().out
    if command not in ("atlas", "model"):
        assert "--json" in text and "--seed" in text


def test_version_does_not_load_the_engines():
    script = (
        "import sys; from attngeom.cli.app import run; run(['info', '--json']); print('attngeom.fibers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
