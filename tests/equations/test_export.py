"""Exports parse in the systems they are written for, and the parametrization kills them there."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from math import prod
from pathlib import Path

import pytest
import sympy
from sympy.polys.rings import PolyRing

from attngeom.equations import Variety, families, find_family
from attngeom.equations.export import export, up_to_factor
from attngeom.errors import InputError
from attngeom.exact import Polynomial
from tests.exact.expressions import as_sympy

VARIETIES = [
    Variety(2, 2, tokens=2, d_out=2),
    Variety(3, 2, tokens=2),
    Variety(2, 1, tokens=3, d_out=3),
    Variety(4, 2, targets=2),
]


def write(variety: Variety, form: str, path: Path, end: str = "") -> Path:
    chosen = [f for f in families(variety) if f.degree <= 4]
    path.write_text("\n".join(export(chosen, form, 4)) + "\n" + end)
    return path


@pytest.mark.skipif(shutil.which("M2") is None, reason="Macaulay2 is not installed")
def test_macaulay2_confirms_that_the_parametrization_kills_the_exports_and_notices_a_wrong_polynomial(tmp_path) -> None:
    """All programs in one process, the wrong one last."""
    texts = [write(variety, "m2", tmp_path / "ideal.m2").read_text() for variety in VARIETIES]
    wrong = write(Variety(2, 2, d_out=2), "m2", tmp_path / "ideal.m2").read_text()
    texts.append(wrong.replace("I = ideal(", "I = ideal( y_(0,0,0,0),"))
    program = tmp_path / "ideals.m2"
    program.write_text("\n".join(texts))
    output = subprocess.run(["M2", "--script", str(program)], capture_output=True, text=True, timeout=120, check=True)
    assert output.stdout.split() == ["true"] * len(VARIETIES) + ["false"]


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
    f = find_family(Variety(3, 2), "slice-pencil")
    line = next(iter(export([f], "sympy", 1)))
    expression = sympy.sympify(line.split("#")[0])
    assert sympy.expand(expression - as_sympy(f[0].polynomial())) == 0


def test_json_export_has_one_object_per_member() -> None:
    f = find_family(Variety(3, 2), "attention-rank")
    lines = [json.loads(line) for line in export([f], "json")]
    assert len(lines) == f.count
    written = lines[7]["polynomial"]
    terms = {tuple(exponents): c for exponents, c in written["terms"]}
    assert Polynomial.from_terms(written["variables"], terms) == f[7].polynomial()


def test_latex_export_has_one_display_per_member() -> None:
    lines = list(export([find_family(Variety(3, 2), "slice-pencil")], "latex"))
    assert len(lines) == 10
    assert all("\\[" in line and "y_{" in line for line in lines)


def test_unknown_format_is_an_input_error() -> None:
    with pytest.raises(InputError, match="macaulay"):
        export(families(Variety(2, 1)), "macaulay")


def parse(text: str, power: str, quotient: str) -> sympy.Expr:
    """A polynomial of OSCAR or Sage, whose syntax is Python's after this."""
    return sympy.sympify(text.strip().removesuffix(",").replace(power, "**").replace(quotient, "/"))


@pytest.mark.parametrize(
    ("form", "opening", "quotient"), [("oscar", "I = ideal(R, [", "//"), ("sage", "I = R.ideal([", "/")]
)
@pytest.mark.parametrize("variety", VARIETIES, ids=str)
def test_oscar_and_sage_programs_parse_and_vanish(variety: Variety, form: str, opening: str, quotient: str) -> None:
    """The polynomials and the ring map are read back; substituting the images kills every generator."""
    chosen = [f for f in families(variety) if f.degree <= 3]
    lines = "\n".join(export(chosen, form, 3)).splitlines()
    start, stop = lines.index(opening) + 1, lines.index("])")
    generators = [parse(line.split("#")[0], "^", quotient) for line in lines[start:stop]]
    ring = next(line for line in lines if line.startswith(("R, (", "R = ")))
    names = re.findall(r"\b[sy]c?(?:_[0-9]+)+\b", ring)
    names = names[: len(names) // 2] if form == "oscar" else names
    images = next(line for line in lines if line.startswith("phi = "))
    written = [parse(f, "^", quotient) for f in images[images.index("[") + 1 : images.rindex("]")].split(", ")]
    assert len(written) == len(names) == len(set(names)) and len(generators) >= len(chosen)
    symbols = [sympy.Symbol(name) for name in names]
    assert all(f != 0 and f.free_symbols <= set(symbols) for f in generators)
    parameters = sorted(set().union(*(f.free_symbols for f in written)), key=str)
    target = PolyRing(parameters, sympy.QQ)
    values = [target.from_expr(f) for f in written]
    for f in generators:
        terms = sympy.Poly(f, *symbols, domain="QQ").terms()
        images = (target(c) * prod(y**n for y, n in zip(values, exponents) if n) for exponents, c in terms)
        assert not sum(images, target.zero)
    if form == "sage":
        ast.parse("\n".join(lines).replace("^", "**"))


def test_programs_list_each_polynomial_once() -> None:
    """The minors (I, J) and (J, I) of the pencil agree, and the three Veronese matrices share quartics up to sign."""
    f = find_family(Variety(4, 2), "slice-pencil")
    assert sum("slice-pencil" in line for line in export([f], "m2")) == 10 * f.count // 16
    chosen = [f for f in families(Variety(3, 3)) if f.name.startswith("veronese") and f.degree == 4]
    polynomials = {up_to_factor(x.polynomial()) for f in chosen for x in f}
    assert (
        sum("veronese" in line for line in export(chosen, "singular"))
        == len(polynomials)
        < sum(f.count for f in chosen)
    )


def test_latex_names_of_several_letters_are_upright() -> None:
    line = next(iter(export([find_family(Variety(2, 1, tokens=2), "sequence-copy")], "latex", 1)))
    assert "\\mathrm{sc}_{1,0,0,0}" in line and "s_{0,0,0}" in line
