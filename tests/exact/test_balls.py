"""Certified invertibility and rank: everything that is claimed is true, and typical matrices are decided."""

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import InputError
from attngeom.exact import QQ, Balls
from attngeom.exact.precise import certify_invertible, certify_rank
from tests.effort import examples


@examples(100)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_claims_about_integer_matrices_are_true(n, inner, seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-3, 4, (n, inner)) @ rng.integers(-3, 4, (inner, n))
    exact = QQ.rank(QQ.convert(a))
    assert certify_invertible(a.astype(float)) == (exact == n)
    found = certify_rank(a.astype(float))
    assert found.rank == exact == len(found.rows) == len(found.columns)
    assert QQ.rank(QQ.convert(a)[np.ix_(found.rows, found.columns)]) == exact


def test_random_float_matrices_are_certified():
    a = np.random.default_rng(0).standard_normal((80, 80))
    assert certify_invertible(a)
    assert certify_rank(a[:, :50]).rank == certify_rank(a[:50]).rank == 50


def test_balls_that_contain_a_singular_matrix_are_not_certified():
    def matrix(radius):
        return np.array([[arb(1, radius), arb(2)], [arb(3), arb(4)]], dtype=object)

    # The determinant 4 x − 6 vanishes at x = 3/2.
    assert certify_invertible(matrix(0.49))
    assert not certify_invertible(matrix(0.51))
    assert certify_rank(matrix(0.51)).rank == 1


def test_a_nearly_singular_matrix_is_never_called_invertible_without_proof():
    # Rounded thirds: the exact float matrix is singular although float elimination may not notice.
    row = np.array([1 / 3, 1 / 7, 1 / 11])
    a = np.array([row, 2 * row, [1.0, 0.0, 0.0]])
    assert not certify_invertible(a)
    assert certify_rank(a).rank == 2


def test_ill_conditioned_matrices_need_precision():
    n = 16
    hilbert = [[f"1/{i + j + 1}" for j in range(n)] for i in range(n)]
    assert not certify_invertible(Balls(64).convert(hilbert), precision=64)
    assert certify_invertible(Balls(256).convert(hilbert), precision=256)


def test_infinite_entries_certify_nothing():
    for bad in (np.nan, np.inf):
        a = np.array([[bad, 0.0], [0.0, 1.0]])
        assert not certify_invertible(a)
        assert certify_rank(a).rank == 0
    wide = np.array([[arb(0, 1e300) * arb(10) ** 1000, arb(0)], [arb(0), arb(1)]], dtype=object)
    assert not certify_invertible(wide)


def test_empty_matrices():
    assert certify_invertible(np.zeros((0, 0)))
    assert certify_rank(np.zeros((0, 3))).rank == certify_rank(np.zeros((3, 3))).rank == 0


def test_wrong_shapes_are_refused():
    with pytest.raises(InputError, match="square"):
        certify_invertible(np.zeros((2, 3)))
    with pytest.raises(InputError, match="matrix"):
        certify_rank(np.zeros(3))
