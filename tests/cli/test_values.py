"""Options are converted without pydantic, in the words of every version of typer that is admitted."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from attngeom.cli.parameters import converter

ONE, MANY = SimpleNamespace(multiple=False, nargs=1), SimpleNamespace(multiple=False, nargs=-1)


def described(kind, parser=None, least=None, largest=None, **checks):
    info = SimpleNamespace(parser=parser, min=least, max=largest, **checks)
    return SimpleNamespace(annotation=kind, parameter_info=info)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(int, "3", 3), (float, "1e-3", 1e-3), (str, "a", "a"), (Path, "a/b", Path("a/b")), (bool, "Yes", True)],
)
def test_texts_become_values_and_defaults_stay(kind, text, value):
    found = converter(described(kind))
    assert found.coerce(text, ONE, None) == value == found.coerce(value, ONE, None)
    assert found.coerce(None, ONE, None) is None and found.coerce(None, MANY, None) == []


def test_lists_are_converted_one_by_one():
    assert converter(described(list[Path])).coerce(("a", "b"), MANY, None) == [Path("a"), Path("b")]


@pytest.mark.parametrize(
    ("kind", "least", "largest", "text", "words"),
    [
        (int, None, None, "x", "'x' is not a valid int."),
        (int, 0, None, "x", "'x' is not a valid int range."),
        (int, 0, None, "-1", "-1 is not in the range x>=0."),
        (float, 0, 1, "2", "2.0 is not in the range 0<=x<=1."),
        (float, None, 1, "2", "2.0 is not in the range x<=1."),
        (float, 0, 1, "nan", "nan is not in the range 0<=x<=1."),
        (bool, None, None, "perhaps", "'perhaps' is not a valid bool."),
    ],
)
def test_what_cannot_be_read_is_said(kind, least, largest, text, words):
    with pytest.raises(typer.BadParameter) as refused:
        converter(described(kind, least=least, largest=largest)).coerce(text, ONE, None)
    assert refused.value.message == words


def test_other_types_and_checks_are_left_to_typer():
    assert converter(described(complex)) is None
    assert converter(described(int, parser=int)) is None
    assert converter(described(Path, exists=True)) is None


def test_no_command_line_loads_pydantic():
    """It is most of the time that a start takes, with typer 0.29."""
    line = (
        "import sys; from attngeom.cli.app import run;"
        "code = run(['dim', '--widths', '2,2', '--seed', '3']) + run(['--help']) + run(['dim', '--help']);"
        "sys.exit(code or 'pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", line], stdout=subprocess.DEVNULL).returncode == 0
