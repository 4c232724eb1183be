"""Tableaux, separating lines and the basis of S_22: the closed counts and the spans behind the families."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from math import comb

import numpy as np
import pytest

from attngeom.equations import Points, Variety, find_family
from attngeom.equations.families.lines import restrict, resultant_values, separating_line
from attngeom.equations.families.pluecker import form_values, quadratic_form, target_squares
from attngeom.equations.families.slices import lie_matrix, lie_rank
from attngeom.equations.variety import random_points
from attngeom.errors import InputError
from attngeom.exact import GF, WORD_PRIME, rank_mod_p
from attngeom.exact.partitions import schur_dimension, tableau_3311, two_row_count, two_row_tableau

FIELD = GF(WORD_PRIME)


@pytest.mark.parametrize(("d", "k"), [(2, 3), (3, 3), (4, 3), (5, 4), (7, 2)])
def test_two_row_tableaux_are_listed_once_each(d: int, k: int) -> None:
    listed = [two_row_tableau(d, k, index) for index in range(two_row_count(d, k))]
    columns = list(combinations(range(d), 2))
    expected = [t for t in product(columns, repeat=k) if all(x[0] <= y[0] and x[1] <= y[1] for x, y in pairwise(t))]
    assert listed == sorted(expected)
    assert len(listed) == schur_dimension((k, k), d)


@pytest.mark.parametrize("d", [4, 5, 6])
def test_tableaux_3311_are_listed_once_each(d: int) -> None:
    size = schur_dimension((3, 3, 1, 1), d)
    listed = {tableau_3311(d, index) for index in range(size)}
    assert len(listed) == size
    for c, e, f in listed:
        assert list(c) == sorted(set(c))
        assert c[0] <= e[0] <= f[0] and c[1] <= e[1] <= f[1] and e[0] < e[1] and f[0] < f[1]


def test_tableau_out_of_range_is_an_input_error() -> None:
    with pytest.raises(InputError, match="numbered from 0"):
        two_row_tableau(3, 3, 10)
    with pytest.raises(InputError, match="numbered from 0"):
        tableau_3311(4, 20)


def tableaux_on_all_indices(size: int, k: int) -> list[tuple[tuple[int, int], ...]]:
    found = (two_row_tableau(size, k, index) for index in range(two_row_count(size, k)))
    return [t for t in found if {i for column in t for i in column} == set(range(size))]


@pytest.mark.parametrize(("k", "size"), [(3, s) for s in range(2, 7)] + [(4, s) for s in range(2, 9)])
def test_separating_lines_are_unisolvent_on_each_support(k: int, size: int) -> None:
    """Together these ranks prove the choice of lines for every d: see separating_line."""
    tableaux = tableaux_on_all_indices(size, k)
    lines = [separating_line(t, size).astype(object) for t in tableaux]
    values = [
        [int(np.prod([p[a] * r[b] - p[b] * r[a] for a, b in t])) % WORD_PRIME for t in tableaux] for p, r in lines
    ]
    assert rank_mod_p(np.array(values), WORD_PRIME) == len(tableaux)


@pytest.mark.parametrize(("d", "m"), [(3, 2), (3, 3), (4, 2)])
def test_resultants_on_separating_lines_span_those_of_random_lines(d: int, m: int) -> None:
    f = find_family(Variety(d, d, targets=None if m == d else m), "sylvester-resultant")
    rng = np.random.default_rng(0)
    y = FIELD.random((f.count + 20, comb(d + 1, 2), m), rng)
    chosen = f.evaluate(Points.of_cross(y, FIELD))
    lines = rng.integers(-50, 50, (8, 2, d))
    random = resultant_values(restrict(y, lines, FIELD), FIELD).reshape(len(y), -1)
    assert rank_mod_p(chosen, WORD_PRIME) == f.count
    assert rank_mod_p(np.concatenate([chosen, random], axis=1), WORD_PRIME) == f.count


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6])
def test_target_squares_are_a_basis_of_the_kernel_of_the_wedge(m: int) -> None:
    squares = target_squares(m)
    assert len(squares) == m * m * (m * m - 1) // 12 == schur_dimension((2, 2), m)
    pairs = list(combinations(range(m), 2))
    rows = np.zeros((len(squares), len(pairs), len(pairs)), dtype=np.int64)
    for row, square in zip(rows, squares):
        for b, c in square:
            row[pairs.index(b), pairs.index(c)] += 1
        for w, x, y, z in combinations(range(m), 4):
            value = [
                row[pairs.index(b), pairs.index(c)] for b, c in (((w, x), (y, z)), ((w, y), (x, z)), ((w, z), (x, y)))
            ]
            assert value[0] - value[1] + value[2] == 0
    assert rank_mod_p(rows.reshape(len(squares), -1), WORD_PRIME) == len(squares)


def test_pluecker_forms_vanish_on_all_bivectors_even_indecomposable_ones() -> None:
    """The equations come from v²·ω with any ω, so they are not consequences of ω ∧ ω = 0."""
    d, rng = 5, np.random.default_rng(1)
    v, u = FIELD.random((d,), rng), FIELD.random((d, 4), rng)
    first, second = np.triu_indices(d)
    half = (WORD_PRIME + 1) // 2
    quadrics = FIELD.reduce((v[first, None] * u[second] % WORD_PRIME + v[second, None] * u[first] % WORD_PRIME) * half)
    forms = [quadratic_form(tableau_3311(d, k), d) for k in range(0, 210, 7)]

    def bivector(columns: list[int]) -> dict[tuple[int, int], int]:
        a, b = (quadrics[:, c].astype(object) for c in columns)
        return {(s, t): int(a[s] * b[t] - a[t] * b[s]) for s, t in combinations(range(len(first)), 2)}

    left, right = bivector([0, 1]), bivector([2, 3])
    total = {key: left[key] + right[key] for key in left}
    assert any(total.values())
    for form in forms:
        assert sum(c * total[S] * total[T] for (S, T), c in form.items()) % WORD_PRIME == 0
    assert form_values(FIELD.random((len(first), 2), rng), forms, FIELD).any()


@pytest.mark.parametrize(("d", "a"), [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (5, 3), (6, 2)])
def test_lie_rank_is_attained(d: int, a: int) -> None:
    points = random_points(Variety(d, a, tokens=1), 1, FIELD, np.random.default_rng(2))
    places, factors = lie_matrix(d)
    matrix = FIELD.reduce(points.first_single[0, 0][places] * FIELD.convert(factors))
    assert rank_mod_p(matrix, WORD_PRIME) == lie_rank(d, a)
