"""The two engines: held to each other, to closed formulas, to known values, and away from the variety."""

from itertools import pairwise
from math import comb

import numpy as np
import pytest

from attngeom.equations import Variety
from attngeom.equations.ideal import DegreeSummary, Run, monomials
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.formulas import (
    cone_dimension,
    generator_modules,
    generator_shapes,
    hilbert_function,
    variety_degree,
)
from attngeom.equations.ideal.monomials import borel_point, evaluate_monomials, is_excluded, raising_matrix, root_matrix
from attngeom.equations.ideal.tableaux import TableauBasis, plethysm
from attngeom.equations.ideal.weight_spaces import HighestWeightEngine, WeightEngine
from attngeom.errors import SizeError
from attngeom.exact import QQ, WORD_PRIME
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.partitions import module_dimension, pad, partitions, predicted_dimension
from tests.effort import choose, thorough

SIZES = [(2, 1, 2, 6), (2, 2, 2, 6), (2, 2, 3, 5), (3, 1, 3, 4), (3, 3, 3, 4), (3, 2, 2, 5), (4, 1, 4, 3), (4, 2, 2, 4)]
SIZES += thorough((3, 1, 3, 5), (3, 2, 3, 5), (3, 3, 3, 5), (4, 3, 4, 4), (4, 4, 4, 4), (5, 5, 2, 4))


def figures(summary: DegreeSummary) -> tuple[object, ...]:
    return summary.monomials, summary.hilbert_function, summary.ideal_dimension, set(summary.modules)


@pytest.mark.parametrize(("d", "a", "targets", "n"), SIZES)
def test_both_engines_agree(d: int, a: int, targets: int, n: int) -> None:
    model = Variety(d, a, targets=targets)
    by_weights = Run(model, n, "weights").degrees()
    by_vectors = Run(model, n, "highest").degrees()
    assert [figures(x) for x in by_weights] == [figures(x) for x in by_vectors]
    assert all(x.is_dimension_proven and x.is_generation_proven for x in by_vectors)


@pytest.mark.parametrize(("d", "targets"), [(1, 2), (2, 3), (3, 2), (3, 3), (3, 4), (4, 3), (4, 4)])
def test_formulas_hold_in_every_degree_reached(d: int, targets: int) -> None:
    for a in range(1, 5):
        listed = generator_modules(d, a, targets)
        for x in Run(Variety(d, a, targets=targets), choose(4, 5)).degrees():
            assert x.hilbert_function == hilbert_function(d, a, targets, x.degree)
            assert set(x.modules) == set(listed.get(x.degree, ()))
            assert x.monomials == comb(d * (d + 1) // 2 * targets + x.degree - 1, x.degree)
            assert all((x.degree, *m.shapes) in generator_shapes(d, a, targets) for m in x.modules)


def test_minimal_generators_have_the_known_numbers() -> None:
    known = {
        (2, 1): {2: 3},
        (2, 2): {4: 1},
        (3, 1): {2: 45, 3: 10},
        (3, 2): {3: 30, 4: 90},
        (4, 1): {2: 270, 3: 200},
        **choose({}, {(4, 3): {3: 400, 4: 2535}, (5, 4): {3: 3500, 4: 35000, 5: 126}}),
    }
    for (d, a), counts in known.items():
        found = Run(Variety(d, a), 5).degrees()
        assert {x.degree: x.minimal_generators for x in found if x.minimal_generators} == counts
        assert max(generator_modules(d, a, d)) == max(counts)


def test_degree_and_dimension_are_the_leading_term_of_the_hilbert_function() -> None:
    """The k-th difference of HF is constant and equal to the degree, k one less than the affine dimension."""
    for d, a, targets in [(2, 1, 2), (2, 2, 2), (3, 1, 3), (3, 2, 3), (3, 3, 3), (2, 2, 3), (4, 1, 2), (3, 2, 2)]:
        k = cone_dimension(d, a, targets) - 1
        values = [hilbert_function(d, a, targets, n) for n in range(12, 12 + k + 3)]
        for _ in range(k):
            values = [y - x for x, y in pairwise(values)]
        assert set(values) == {variety_degree(d, a, targets)}


def test_dimension_is_the_rank_of_the_parametrization() -> None:
    """Tangent vectors v'·a + v·a' at a random point mod p."""
    p = WORD_PRIME
    for d, targets in [(2, 2), (3, 3), (3, 2), (2, 4)]:
        rng = np.random.default_rng(d)
        V, A = rng.integers(0, p, d), rng.integers(0, p, (d, targets))
        rows = []
        for direction in np.eye(d + d * targets, dtype=np.int64):
            dV, dA = direction[:d], direction[d:].reshape(d, targets)
            change = np.einsum("k,lm->klm", dV, A) + np.einsum("k,lm->klm", V, dA)
            rows.append((change + change.transpose(1, 0, 2)).ravel() % p)
        assert rank_mod_p(np.array(rows), p) == cone_dimension(d, d, targets)


def borel_orbit_dimension(d: int, targets: int, a: int) -> int:
    """The rank of the tangent vectors of the raising operators and of the torus at the point.

    When it is the dimension of the variety the orbit of the point under the group that fixes highest weight vectors up
    to scale is dense: a highest weight vector vanishes on the variety if and only if it vanishes at that one point.
    """
    Y = borel_point(d, targets, a)
    tangents = [root_matrix(d, old, new) @ Y for old in range(d) for new in range(old + 1)]
    for old in range(targets):
        for new in range(old + 1):
            moved = np.zeros_like(Y)
            moved[:, old] = Y[:, new]
            tangents.append(moved)
    return QQ.rank(QQ.convert(np.array([tangent.ravel() for tangent in tangents])))


def test_borel_orbit_is_dense() -> None:
    for d in range(1, 6):
        for targets in range(1, 6):
            for a in range(1, 6):
                assert borel_orbit_dimension(d, targets, a) == cone_dimension(d, a, targets)


def test_borel_point_lies_on_the_variety() -> None:
    """All kernels of engine W vanish there; the point with a larger rank of A is not on the smaller variety."""
    d, p = 3, WORD_PRIME
    scale = np.array([1 if i == j else (p + 1) // 2 for i in range(d) for j in range(i, d)])
    for a in (1, 2, 3):
        engine = WeightEngine(Variety(d, a))
        for weight in engine.weights(3):
            basis = engine.kernel(3, weight).basis.astype(object)
            factors = engine.table.space(3, weight).factors
            y = (borel_point(d, d, a) * scale[:, None] % p).reshape(1, -1)
            assert not np.any(evaluate_monomials(factors, y, p).astype(object) @ basis.T % p)


def test_kernel_polynomials_vanish_on_the_variety_and_not_off_it() -> None:
    model = Variety(3, 2)
    engine = WeightEngine(model)
    rng = np.random.default_rng(7)
    on, off = coordinates(model).sample(3, WORD_PRIME, rng), rng.integers(0, WORD_PRIME, (3, 18))
    for weight in engine.weights(3):
        basis = engine.kernel(3, weight).basis.astype(object)
        factors = engine.table.space(3, weight).factors
        assert not np.any(evaluate_monomials(factors, on, WORD_PRIME).astype(object) @ basis.T % WORD_PRIME)
        assert np.all(evaluate_monomials(factors, off, WORD_PRIME).astype(object) @ basis.T % WORD_PRIME)


def test_early_stop_does_not_change_the_generated_dimension() -> None:
    engine = WeightEngine(Variety(3, 3))
    for weight in engine.weights(4):
        size = len(engine.kernel(4, weight).free)
        exact = engine.generated_dimension(4, weight)
        assert engine.generated_dimension(4, weight, size - exact) == exact


def test_tableaux_are_counted_by_the_plethysm() -> None:
    """The number of tableaux of each dominant weight is the character of S_μ(S²V)."""
    basis = TableauBasis(3)
    for mu in partitions(4, 3):
        multiplicities = {(pad(lam, 3),): p for lam, p in plethysm(mu, 3).items()}
        for lam in partitions(8, 3):
            assert len(basis.tableaux(mu, lam)) == predicted_dimension(multiplicities, (pad(lam, 3),))


def test_raising_operator_is_a_derivation_of_the_pairs() -> None:
    """exp of the raising operators of C² acts on (y_11, 2 y_12, y_22) as on the square of a linear form."""
    N = raising_matrix(2)
    x, y = 5, 7
    quadric = np.array([x * x, 2 * x * y, y * y])
    moved = np.array([x * x, 2 * x * (y + x), (y + x) ** 2])
    assert np.array_equal(quadric + N @ quadric + N @ N @ quadric // 2, moved)


def test_excluded_modules_are_exactly_those_that_vanish() -> None:
    """Where a module of R_n is not excluded, some highest weight vector of it is nonzero on the variety."""
    engine = HighestWeightEngine(3, 3)
    for n in range(1, 6):
        for lam, mu in engine.weights(n):
            for a in (1, 2, 3):
                vanishing = len(engine.ideal(lam, mu, a)) == engine.space(lam, mu).multiplicity
                assert vanishing == is_excluded(lam, mu, a)


def test_highest_weight_vectors_fill_the_polynomial_ring() -> None:
    engine = HighestWeightEngine(3, 2)
    for n in range(1, 6):
        total = sum(engine.space(*w).multiplicity * module_dimension(w, (3, 2)) for w in engine.weights(n))
        assert total == comb(11 + n, n)


def test_degrees_that_cannot_be_encoded_are_refused() -> None:
    with pytest.raises(SizeError, match="at most 255 variables"):
        HighestWeightEngine(8, 8).encode(np.zeros((1, 8), dtype=np.int64))


def test_codes_of_high_degrees_are_strings_in_the_same_order(monkeypatch) -> None:
    variables = np.random.default_rng(0).integers(0, 126, (50, 12))
    codes = HighestWeightEngine(6, 6).encode(variables)
    assert [tuple(x) for x in variables[np.argsort(codes)].tolist()] == sorted(map(tuple, variables.tolist()))
    found = []
    for limit in (2**63, 30):
        monkeypatch.setattr(monomials, "MONOMIAL_CODE", limit)
        monomials.monomial_table.cache_clear()
        runs = [Run(Variety(3, 3), 4, method) for method in ("highest", "weights")]
        found.append([(run.degrees(), run.results)[1] for run in runs])
    monomials.monomial_table.cache_clear()
    assert found[0] == found[1]


def test_a_vector_in_the_ideal_by_accident_proves_nothing() -> None:
    # Over Q there is no cubic on the variety of d = 2, and the quartic is new. Pretend that all cubics vanish mod p.
    honest, weight = HighestWeightEngine(2, 2), ((4, 4), (2, 2))
    found = honest.run(4, weight, 2)
    assert (found.ideal_dimension, found.generated, found.is_generated_proven) == (1, 0, True)
    planted = HighestWeightEngine(2, 2)
    for lam, mu in planted.lower_weights(*weight):
        planted._ideals[lam, mu, 2] = np.eye(planted.space(lam, mu).multiplicity, dtype=np.int64)
        occurs = not is_excluded(lam, mu, 2)
        assert planted.is_ideal_proven(lam, mu, 2) is not occurs
    found = planted.run(4, weight, 2)
    assert found.ideal_dimension == 1
    assert not (found.generated == 1 and found.is_generated_proven)
    assert not found.is_generated_proven


def test_the_rest_of_the_ideal_still_proves_what_it_generates() -> None:
    # One accident among many weights below: those that are right may generate everything.
    engine, (lam, mu) = HighestWeightEngine(3, 3), ((5, 3, 2), (2, 2, 1))
    honest = engine.run(5, (lam, mu), 3)
    assert honest.generated == honest.ideal_dimension > 0 and honest.is_generated_proven
    spoilt = next(w for w in engine.lower_weights(lam, mu) if not is_excluded(*w, 3))
    engine._ideals[*spoilt, 3] = np.eye(engine.space(*spoilt).multiplicity, dtype=np.int64)
    found = engine.run(5, (lam, mu), 3)
    assert found.is_generated_proven == (found.generated == found.ideal_dimension)
