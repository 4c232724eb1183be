"""Explicit generators: integral, verified, as many as they should be, and readable by other systems."""

import json
import re
import shutil
import subprocess
from collections import Counter
from functools import cache

import numpy as np
import pytest
import sympy

from attngeom.equations import Variety
from attngeom.equations.ideal import implicitize
from attngeom.equations.ideal.completeness import last_degree
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.export import SYSTEMS, module_spaces, to_program, write_generators
from attngeom.equations.ideal.formulas import cone_dimension, hilbert_function, variety_degree
from attngeom.equations.ideal.generators import (
    HighestWeightVector,
    ModuleExpansion,
    generator_vectors,
    highest_weight_vectors,
    prove_dimensions,
    vanishes_on,
)
from attngeom.equations.ideal.monomials import evaluate_monomials
from attngeom.errors import InputError
from attngeom.exact import WORD_PRIME
from attngeom.exact.partitions import module_dimension, pad
from tests.effort import thorough
from tests.equations.ideal.subideals import Subideal

CASES: list[tuple[int]] = [
    (Variety(2, 1), 2),
    (Variety(3, 2), 4),
    (Variety(4, 4, targets=2), 4),
    (Variety(2, 2, d_out=2), 4),
    (Variety(3, 1, heads=2, value_width=1), 3),
    (Variety(3, 1, tokens=1), 4),
    (Variety(2, 1, tokens=2, causal=True), 2),
]


@pytest.fixture(scope="module", params=CASES, ids=repr)
def case(request: pytest.FixtureRequest) -> tuple[list[HighestWeightVector], list[int]]:
    model, n = request.param
    summary = implicitize(model, n, families=False, vectors=True, check=False)
    return model, list(summary.vectors), [d.minimal_generators for d in summary.degrees]


def test_generators_are_verified_by_substitution(case) -> None:
    model, vectors, counts = case
    assert vectors and all(v.is_verified for v in vectors)
    assert sum(module_dimension(v.shapes, model.groups) for v in vectors) == sum(counts)


def test_modules_have_their_dimension_and_vanish_on_the_variety_only(case) -> None:
    model, vectors, counts = case
    rng = np.random.default_rng(11)
    on, off = coordinates(model).sample(2, WORD_PRIME, rng), rng.integers(0, WORD_PRIME, (2, model.num_coordinates))
    found = 0
    for _, space in module_spaces(model, vectors, whole=True):
        found += len(space.coefficients)
        rows = space.coefficients.astype(object).T
        assert not np.any(evaluate_monomials(space.factors, on, WORD_PRIME) @ rows % WORD_PRIME)
        assert np.all(np.any(evaluate_monomials(space.factors, off, WORD_PRIME) @ rows % WORD_PRIME, axis=0))
    assert found == sum(counts)


def test_a_changed_coefficient_fails_the_substitution(case) -> None:
    _, vectors, _ = case
    for vector in vectors:
        terms = vector.terms
        terms[next(iter(terms))] += 1
        assert not vanishes_on(vector.variety, terms)


def test_modules_generate_the_ideal_up_to_the_computed_degree() -> None:
    """A lower bound for dim I_n from explicit polynomials meets the upper bound from evaluation."""
    for d, a, n in [(2, 1, 5), (2, 2, 6), (3, 1, 5), (3, 2, 5), (3, 3, 5)]:
        model = Variety(d, a)
        summary = implicitize(model, n, families=False, vectors=True)
        ideal = Subideal(model, summary.vectors)
        assert [ideal.dimension(x.degree) for x in summary.degrees] == [x.ideal_dimension for x in summary.degrees]


def test_verified_generators_prove_the_dimensions_of_engine_w() -> None:
    model = Variety(3, 1, tokens=1)
    summary = implicitize(model, 5, families=False, check=False)
    assert not summary.degrees[3].is_dimension_proven
    vectors = generator_vectors(model, summary.degrees)
    assert all(d.is_dimension_proven for d in prove_dimensions(summary.degrees, vectors))
    assert not prove_dimensions(summary.degrees, [])[3].is_dimension_proven
    assert all(d.is_dimension_proven for d in implicitize(model, 5, families=False, prove=True, check=False).degrees)


def test_highest_weight_vectors_of_the_new_modules() -> None:
    """The Plücker quartic at d = 4 is not in the span of products: the ideal has no cubic of that kind."""
    model = Variety(4, 4, targets=2)
    weight = (pad((3, 3, 1, 1), 4), (2, 2))
    (vector,) = highest_weight_vectors(model, 4, weight, 1)
    assert vector.is_verified and set(map(abs, vector.coefficients)) <= {1, 2, 4}
    assert ModuleExpansion(model, vector).basis(weight).shape[0] == 1


def test_export_formats_hold_the_same_polynomials(tmp_path) -> None:
    model = Variety(2, 1)
    vectors = implicitize(model, 2, families=False, vectors=True).vectors
    for name in ("g.json", "g.m2", "g.sing"):
        count, size = write_generators(tmp_path / name, model, vectors)
        assert (count, size) == (3, (tmp_path / name).stat().st_size)
    record = json.loads((tmp_path / "g.json").read_text())
    assert record["format"] == "attngeom/generators" and len(record["generators"]) == 3
    for generator in record["generators"]:
        assert vanishes_on(model, {tuple(factors): c for c, factors in generator["terms"]})
    assert "y_(0,0,0)*y_(0,1,1)-y_(0,0,1)*y_(0,1,0)" in (tmp_path / "g.m2").read_text()
    assert "y(0)(0)(0)*y(0)(1)(1)-y(0)(0)(1)*y(0)(1)(0)" in (tmp_path / "g.sing").read_text()
    with pytest.raises(InputError, match=r"\.json, \.m2, \.sing, \.jl, \.sage"):
        write_generators(tmp_path / "g.txt", model, vectors)


def run_macaulay2(script: str) -> list[str]:
    command = ["M2", "--stop", "-q", "--silent", "--no-preload", "-e", script + "exit 0"]
    return subprocess.run(command, capture_output=True, text=True).stdout.split()


@cache
def vectors_of(model: Variety) -> list[HighestWeightVector]:
    """The generators of degree ≤ 4."""
    return list(implicitize(model, 4, families=False, vectors=True).vectors)


needs_macaulay2 = pytest.mark.skipif(shutil.which("M2") is None, reason="Macaulay2 is not installed")


@needs_macaulay2
@pytest.mark.parametrize("a", [1, *thorough(2, 3)])
def test_macaulay2_finds_the_same_variety_from_our_generators(a: int) -> None:
    """Dimension, degree and Hilbert function of the ideal that our polynomials generate."""
    model = Variety(3, a)
    text = to_program(model, vectors_of(model), SYSTEMS["m2"]).replace("QQ[", "ZZ/32003[")
    out = run_macaulay2(text + "print dim I; print degree I; scan(1..7, n -> print hilbertFunction(n, R/I));")
    assert out[:3] == ["true"] * 3
    assert list(map(int, out[3:])) == [
        cone_dimension(3, a, 3),
        variety_degree(3, a, 3),
        *[hilbert_function(3, a, 3, n) for n in range(1, 8)],
    ]


PARAMETERS = {
    1: ("k_1, k_2, q_0..q_2", "(if i == 0 then 1_S else k_i) * q_j"),
    2: ("a_(0,0)..a_(2,1), s, t", "if j < 2 then a_(i,j) else s*a_(i,0) + t*a_(i,1)"),
    3: ("a_(0,0)..a_(2,2)", "a_(i,j)"),
}
"""A dense part of the 3×m matrices of rank ≤ a, m ≤ 3: parameters, and the entry (i, j)."""


@needs_macaulay2
@pytest.mark.parametrize(("a", "targets"), [(2, 2), *thorough((1, 3), (2, 3), (3, 3))])
def test_macaulay2_kernel_of_the_ring_map_has_the_same_minimal_generators(a: int, targets: int) -> None:
    """ker of y ↦ v_k A_lm + v_l A_km, d = 3, with v_0 = 1, which the common scale of v and A allows."""
    parameters, entry = PARAMETERS[a]
    out = run_macaulay2(
        f"S = ZZ/32003[v_1, v_2, {parameters}]; A = (i, j) -> {entry}; w = i -> if i == 0 then 1_S else v_i;"
        "P = {(0,0),(0,1),(0,2),(1,1),(1,2),(2,2)};"
        f"R = ZZ/32003[flatten apply(P, p -> apply({targets}, m -> y_(p_0, p_1, m)))];"
        f"F = flatten apply(P, p -> apply({targets}, m -> w(p_0)*A(p_1, m) + w(p_1)*A(p_0, m)));"
        "scan(flatten degrees source mingens ker map(S, R, F), print);"
    )
    expected = {
        x.degree: x.minimal_generators for x in implicitize(Variety(3, a, targets=targets), 5, families=False).degrees
    }
    assert Counter(map(int, out)) == {n: count for n, count in expected.items() if count}


LISTED = [
    *(Variety(2, a, d_out=rows) for a in (1, 2) for rows in (2, 3)),
    Variety(2, 1, d_out=2, heads=2, value_width=1),
    Variety(3, 1, tokens=1),
]


@needs_macaulay2
@pytest.mark.parametrize("model", LISTED, ids=str)
def test_macaulay2_finds_the_dimension_and_the_degree_of_the_other_lists(model: Variety) -> None:
    """Several rows on a plane, two heads there, one token: dimension and degree are printed, and are those of I."""
    text = to_program(model, vectors_of(model), SYSTEMS["m2"])
    assert ", degree " in text and run_macaulay2(text) == ["true"] * 3


@pytest.mark.skipif(shutil.which("Singular") is None, reason="Singular is not installed")
def test_singular_reads_our_generators(tmp_path) -> None:
    model = Variety(3, 3)
    write_generators(tmp_path / "g.sing", model, vectors_of(model))
    script = f'< "{tmp_path / "g.sing"}"; I = std(I); print(dim(I)); print(mult(I)); quit;'
    result = subprocess.run(["Singular", "-q"], input=script, capture_output=True, text=True)
    assert result.stdout.split() == ["1", "1", "1", str(cone_dimension(3, 3, 3)), str(variety_degree(3, 3, 3))]


@needs_macaulay2
def test_a_wrong_generator_is_noticed_by_the_program_itself() -> None:
    """One sign changed: phi does not kill it. One generator left out: the dimension or the degree differs."""
    model = Variety(2, 2)
    text = to_program(model, vectors_of(model), SYSTEMS["m2"])
    assert run_macaulay2(text) == ["true"] * 3
    start = text.index("ideal(") + 6
    wrong = text[:start] + text[start:].replace("-", "+", 1)
    assert run_macaulay2(wrong)[0] == "false"
    none = text[:start] + "0_R" + text[text.index(");", start) :]
    assert run_macaulay2(none) == ["true", "false", "false"]


SHAPES = [
    Variety(2, 1), Variety(3, 2, targets=2), Variety(2, 2, d_out=2), Variety(2, 1, tokens=2),
    Variety(2, 1, heads=2, d_out=2, value_width=1), Variety(2, 2, tokens=2, d_out=2, residual=True),
]  # fmt: skip


@pytest.mark.parametrize("model", SHAPES, ids=str)
def test_the_ring_map_of_a_program_kills_its_generators(model: Variety) -> None:
    """By SymPy, for OSCAR and Sage, whose programs nothing here can run; powers are written as powers."""
    vectors = implicitize(model, 3, families=False, vectors=True).vectors
    text = to_program(model, vectors, SYSTEMS["sage"])
    names = re.search(r'R = PolynomialRing\(QQ, "(.*?)"\)', text)
    images = re.search(r"phi = R.hom\(\[(.*)\], S\)", text)
    assert names is not None and images is not None
    substitution = dict(zip(names[1].split(", "), map(sympy.sympify, images[1].replace("^", "**").split(", "))))
    body = text[text.index("I = R.ideal([") + 13 : text.index("])\n")]
    generators = [line.strip().rstrip(",") for line in body.splitlines() if line.strip()]
    assert generators != ["R(0)"]
    for generator in generators[:12]:
        assert not re.search(r"\b(\w+)\*\1\b", generator)
        found = sympy.sympify(generator.replace("^", "**")).subs(substitution, simultaneous=True)
        assert sympy.expand(found) == 0


@needs_macaulay2
def test_macaulay2_finds_the_regularity_that_bounds_the_generators() -> None:
    """docs/theorems/completeness.md: for d = 3, m = 2 layer l = 2 of N gives regularity 5 and one trivial syzygy."""
    model = Variety(3, 3, targets=2)
    text = to_program(model, vectors_of(model), SYSTEMS["m2"]).replace("QQ[", "ZZ/32003[")
    out = run_macaulay2(text + "C = res I; print regularity(R^1/I); print length C; print degrees C_7;")
    assert out == ["true", "true", "true", "5", "7", "{{12}}"] and last_degree(3, 2, 2) == 6
