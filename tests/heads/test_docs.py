"""What docs/how-to/heads.md shows is what the package answers."""

import doctest
import re
import shlex
from pathlib import Path

from attngeom.cli.app import run

PAGE = Path(__file__).parents[2] / "docs" / "heads.md"


def test_python_examples():
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 8 and result.failed == 0


def test_commands(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```\n(\$ .*?)```", PAGE.read_text(), flags=re.S)
    assert len(blocks) == 2
    for block in blocks:
        for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, *shown = command.rstrip("\n").split("\n")
            assert run(shlex.split(line)[1:]) == 0
            out = capsys.readouterr().out.rstrip("\n").split("\n")
            assert not shown or out == shown
