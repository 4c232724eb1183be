"""The engines of ranks on any linear map: random matrices of a given rank, dependent features, small primes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attngeom.exact import BLAS_PRIME, SMALL_PRIME, WORD_PRIME
from attngeom.exact.domains import BalancedField
from attngeom.exact.modular import choose_minor
from attngeom.rank.krylov import krylov_rank
from attngeom.rank.maps import ClearedMap, LinearMap, cleared_rank, independent_features
from tests.effort import examples


class Matrix(LinearMap):
    """A map that is given by its matrix."""

    def __init__(self, rows, field):
        self.rows, self.field = rows, field
        self.outputs, self.size = rows.shape

    def push(self, vectors):
        return self.field.matmul(vectors, self.rows.T)


def draw(rng, field, rows, columns, rank):
    left, right = (field.random(shape, rng) for shape in ((rows, rank), (rank, columns)))
    return field.matmul(left, right)


shapes = st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 40), st.integers(0, 10**6))


@pytest.mark.parametrize("p", [SMALL_PRIME, BLAS_PRIME, WORD_PRIME])
@examples(15)
@given(shapes)
def test_krylov_rank_is_a_lower_bound_and_reached_at_some_seed(p, drawn):
    rows, columns, rank, seed = drawn
    field = BalancedField(p)
    matrix = draw(np.random.default_rng(seed), field, rows, columns, min(rank, rows, columns))
    true = choose_minor(matrix.copy(), p).rank
    values = [krylov_rank(Matrix(matrix, field), seed + k).value for k in range(0, 40, 10)]
    assert max(values) == true, (values, true)


@pytest.mark.parametrize("p", [SMALL_PRIME, WORD_PRIME])
@examples(25)
@given(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 6), st.integers(0, 12), st.integers(0, 10**6)))
def test_what_is_cleared_adds_up_to_the_rank_of_the_whole(p, drawn):
    """J = [B ⊗ I | M] for tokens with vectors b of length r and d outputs each; M may depend on the features."""
    r, d, more, n, seed = drawn
    field, rng = BalancedField(p), np.random.default_rng(seed)
    tokens = r + more
    features = field.random((tokens, r), rng)
    if seed % 3 == 0 and r > 1:
        features[:, -1] = features[:, 0]
    linear = draw(rng, field, tokens * d, n, min(n, 1 + seed % 5, tokens * d))
    whole = np.concatenate([np.kron(features, np.eye(d, dtype=field.dtype)), linear], axis=1)
    true = choose_minor(whole.copy(), p).rank
    pivots = independent_features(features, p)
    assert (pivots is None) == (field.rank(features) < r)
    if pivots is None:
        return
    left = ClearedMap(Matrix(linear, field), features, pivots)
    assert left.cleared == r * d and left.outputs == more * d
    assert left.cleared + choose_minor(left.push(np.eye(n, dtype=field.dtype)), p).rank == true
    if more:
        blocks = linear.reshape(tokens, d, n)
        others = np.setdiff1d(np.arange(tokens), pivots)
        dense = cleared_rank(
            np.repeat(features[others][None], d, axis=0),
            np.ascontiguousarray(np.swapaxes(blocks[others], 0, 1)),
            features[list(pivots)],
            lambda outputs: np.swapaxes(blocks[list(pivots)][:, outputs], 0, 1),
            field,
        )
        assert dense == true
