"""Every help ends in examples, and they run on the example files."""

import shlex

import pytest

from attngeom.cli.app import COMMANDS, run
from attngeom.cli.examples import ELSEWHERE, EXAMPLES
from attngeom.demo import write_demo

NEGATIVE = {"certify closure_only.json": 1}


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_shows_the_examples(name, capfd):
    assert name.split()[0] in COMMANDS
    assert run([*name.split(), "--help"]) == 0
    shown = capfd.readouterr().out
    for line in EXAMPLES[name]:
        assert line.startswith(name) and f"  attngeom {line}\n" in shown


def test_examples_run_on_the_example_files(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(write_demo(tmp_path / "demo"))
    # Those of the groups are run with the pages of docs.
    for name, lines in EXAMPLES.items():
        for line in lines if name not in ELSEWHERE and " " not in name else ():
            code = run(shlex.split(line))
            assert code == NEGATIVE.get(line, 0), (line, capfd.readouterr().err)
    capfd.readouterr()


def test_every_command_has_examples():
    assert {name.split()[0] for name in EXAMPLES} == set(COMMANDS)
