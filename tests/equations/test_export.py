"""Exports parse in the systems they are written for, and the parametrization kills them there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import sympy

from attngeom.equations import Variety, families, family
from attngeom.equations.export import export
from attngeom.errors import InputError
from attngeom.exact import Polynomial

VARIETIES = [Variety(2, 2, d_out=2), Variety(3, 2), Variety(2, 1, tokens=3, d_out=3), Variety(4, 2, targets=2)]


def write(variety: Variety, form: str, path: Path, end: str = "") -> Path:
    chosen = [f for f in families(variety) if f.degree <= 4]
    path.write_text("\n".join(export(chosen, form, 4)) + "\n" + end)
    return path


@pytest.mark.skipif(shutil.which("M2") is None, reason="Macaulay2 is not installed")
@pytest.mark.parametrize("variety", VARIETIES, ids=str)
def test_macaulay2_confirms_that_the_parametrization_kills_the_export(variety: Variety, tmp_path: Path) -> None:
    program = write(variety, "m2", tmp_path / "ideal.m2")
    output = subprocess.run(["M2", "--script", str(program)], capture_output=True, text=True, timeout=120, check=True)
    assert output.stdout.split() == ["true"]


@pytest.mark.skipif(shutil.which("M2") is None, reason="Macaulay2 is not installed")
def test_macaulay2_notices_a_wrong_polynomial(tmp_path: Path) -> None:
    program = write(Variety(2, 2, d_out=2), "m2", tmp_path / "ideal.m2")
    text = program.read_text()
    program.write_text(text.replace("I = ideal(", "I = ideal(y_(0,0,0,0),"))
    output = subprocess.run(["M2", "--script", str(program)], capture_output=True, text=True, timeout=120, check=True)
    assert output.stdout.split() == ["false"]


@pytest.mark.skipif(shutil.which("Singular") is None, reason="Singular is not installed")
@pytest.mark.parametrize("variety", VARIETIES, ids=str)
def test_singular_confirms_that_the_parametrization_kills_the_export(variety: Variety, tmp_path: Path) -> None:
    program = write(variety, "singular", tmp_path / "ideal.sing", "quit;\n")
    output = subprocess.run(
        ["Singular", "-q", str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert output.stdout.split() == ["1"]


def test_sympy_export_is_the_same_polynomial() -> None:
    f = family(Variety(3, 2), "slice-pencil")
    line = next(iter(export([f], "sympy", 1)))
    expression = sympy.sympify(line.split("#")[0])
    assert sympy.expand(expression - f[0].polynomial().to_sympy()) == 0


def test_json_export_has_one_object_per_member() -> None:
    f = family(Variety(3, 2), "attention-rank")
    lines = [json.loads(line) for line in export([f], "json")]
    assert len(lines) == f.count
    assert Polynomial.from_json(lines[7]["polynomial"]) == f[7].polynomial()


def test_latex_export_has_one_display_per_member() -> None:
    lines = list(export([family(Variety(3, 2), "slice-pencil")], "latex"))
    assert len(lines) == 10
    assert all("\\[" in line and "y_{" in line for line in lines)


def test_unknown_format_is_an_input_error() -> None:
    with pytest.raises(InputError, match="macaulay"):
        export(families(Variety(2, 1)), "macaulay")
