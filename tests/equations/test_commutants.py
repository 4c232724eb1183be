"""Families 17 and 18 of several heads (heads.md, Theorem K): they hold at all weights, and at few other tables."""

from __future__ import annotations

import numpy as np
import pytest

from attngeom.equations import Variety, families, find_family
from attngeom.equations.families.commutants import adjugate, commutant_matrix, standard_polynomial
from attngeom.equations.family import vanishes_identically
from attngeom.equations.ideal import implicitize
from attngeom.equations.variety import Points, cross_coordinates, random_points
from attngeom.errors import SizeError
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import BIG_PRIME, WORD_PRIME

FIELD = GF(BIG_PRIME)
SIZES = [(2, 1, 1, 2, 2), (2, 1, 2, 4, 2), (3, 1, 1, 3, 3), (4, 2, 1, 2, 2), (4, 2, 2, 5, 2), (4, 1, 2, 5, 2)]
"""d, a, v, d', H."""


def sum_of_heads(variety: Variety, heads: int, rng: np.random.Generator) -> Points:
    """A sum of heads of any ranks up to the bounds, zero heads and shared factors among them, with small entries."""

    def matrix(rows: int, columns: int, most: int) -> Array:
        rank = int(rng.integers(0, most + 1))
        left, right = rng.integers(-2, 3, (rows, rank)), rng.integers(-2, 3, (rank, columns))
        return FIELD.convert((left @ right) % BIG_PRIME)

    d, rows, m = variety.d, variety.d_out, variety.num_targets
    total = FIELD.zeros((rows, variety.num_pairs, m))
    A, V = matrix(d, m, variety.rank_bound), matrix(rows, d, variety.value_rank)
    for _ in range(heads):
        # One factor of the head before may come again.
        A = A if rng.random() < 0.3 else matrix(d, m, variety.rank_bound)
        V = V if rng.random() < 0.3 else matrix(rows, d, variety.value_rank)
        total = FIELD.reduce(total + cross_coordinates(A, V, FIELD))
    return Points(None, total[None, :, None, None], FIELD)


@pytest.mark.parametrize(("d", "a", "v", "rows", "heads"), SIZES)
def test_members_vanish_at_degenerate_heads_and_not_at_other_tables(
    d: int, a: int, v: int, rows: int, heads: int
) -> None:
    variety, rng = Variety(d, a, d_out=rows, heads=heads, value_width=v), np.random.default_rng(7 * d + rows)
    members = [family for family in families(variety) if family.number in (17, 18)]
    assert members
    for family in members:
        last = family.count - 1
        ranges = [(0, min(family.count, 8)), (last // 2, last // 2 + 1), (last, last + 1)]
        for _ in range(6):
            point = sum_of_heads(variety, heads, rng)
            assert all(FIELD.is_zero(family.evaluate(point, *range_)) for range_ in ranges)
        other = Points(None, FIELD.random((1, rows, 1, 1, variety.num_pairs, d), rng), FIELD)
        if family.number == 18:
            assert not FIELD.is_zero(family.evaluate(other, 0, 1))
        else:
            # Most columns of a large system do not meet; its rank tells.
            n, k = family.filled  # type: ignore[attr-defined]
            T = np.moveaxis(other.first_cross, -3, -2)[0, :, :n, :k]
            assert FIELD.rank(commutant_matrix(T, FIELD)) == min(n * n + k * k - 1, variety.num_pairs * n * k)


@pytest.mark.parametrize("heads", [2, 3])
def test_one_head_too_many_is_seen(heads: int) -> None:
    """H + 1 heads of rank one on H rows and targets, where flattenings by rows and targets see nothing."""
    variety, rng = Variety(heads, 1, d_out=heads, heads=heads, value_width=1), np.random.default_rng(heads)
    larger = Variety(heads, 1, d_out=heads, heads=heads + 1, value_width=1)
    for name in ("commutant-rank", "commuting-slices"):
        family = find_family(variety, name)
        assert FIELD.is_zero(family.evaluate(random_points(variety, 3, FIELD, rng), 0, 9))
    assert not FIELD.is_zero(find_family(variety, "commuting-slices").evaluate(random_points(larger, 1, FIELD, rng)))


def test_members_vanish_as_polynomials_and_are_written_out() -> None:
    variety = Variety(2, 1, d_out=2, heads=2, value_width=1)
    for name, degree in (("commutant-rank", 7), ("commuting-slices", 3)):
        family = find_family(variety, name)
        assert vanishes_identically(family, 0, 3) and family.degree == degree
        assert {sum(exponents) for exponents, _ in family.polynomial(0).terms} <= {degree}
    with pytest.raises(SizeError, match="evaluate it"):
        find_family(Variety(4, 2, d_out=4, heads=2, value_width=2), "commuting-slices")[0].polynomial()


@pytest.mark.parametrize(("d", "rows", "cubics"), [(2, 2, 4), (2, 3, 36)])
def test_cubics_of_two_heads_contain_the_commuting_slices(d: int, rows: int, cubics: int) -> None:
    """Flattenings alone, and with family 18, span all cubics that the engine counts."""
    variety = Variety(d, 1, d_out=rows, heads=2, value_width=1)
    assert implicitize(variety, 3, families=False, check=False).degrees[2].ideal_dimension == cubics
    members = [family for family in families(variety) if family.degree == 3]
    field = GF(WORD_PRIME)
    y = field.random((cubics + 9, rows, 1, 1, variety.num_pairs, d), np.random.default_rng(1))
    values = [family.evaluate(Points(None, y, field)) for family in members]
    assert rank_mod_p(np.concatenate(values, axis=-1), WORD_PRIME) == cubics


def test_the_standard_polynomial_is_the_alternating_sum() -> None:
    rng = np.random.default_rng(5)
    F, B = QQ.random((3, 2, 2), rng), QQ.random((2, 2), rng)
    total = QQ.zeros((2, 2))
    for sign, order in (
        (1, (0, 1, 2)),
        (1, (1, 2, 0)),
        (1, (2, 0, 1)),
        (-1, (1, 0, 2)),
        (-1, (0, 2, 1)),
        (-1, (2, 1, 0)),
    ):
        x, y, z = (F[i] for i in order)
        total = total + sign * QQ.matmul(QQ.matmul(QQ.matmul(QQ.matmul(x, B), y), B), z)
    assert QQ.is_zero(standard_polynomial(F, B, QQ) - total)
    M = QQ.random((3, 3), rng)
    assert QQ.is_zero(QQ.matmul(M, adjugate(M, QQ)) - QQ.det(M) * QQ.eye(3))
