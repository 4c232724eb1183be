"""What docs/how-to/training.md shows is what the commands print and the code returns."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from attngeom.cli.app import run

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
BLOCKS = re.findall(r"```\n\$ attngeom (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize(("line", "shown"), BLOCKS, ids=lambda x: str(x)[:40])
def test_commands_print_what_is_shown(line, shown, capsys):
    assert run(shlex.split(line)) == 0
    assert capsys.readouterr().out == shown


def test_examples_run():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted >= 4 and not found.failed
