"""Every command has help and the shared options, and a call imports only the modules of its command."""

import subprocess
import sys

import pytest

from attngeom.cli.app import COMMANDS, run


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_and_the_shared_options(command, capsys):
    assert run([command, "--help"]) == 0
    text = capsys.readouterr().out
    if command not in ("atlas", "model"):
        assert "--json" in text and "--seed" in text


def test_version_does_not_load_the_engines():
    script = (
        "import sys; from attngeom.cli.app import run; run(['info', '--json']);"
        " print('attngeom.comparison' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
