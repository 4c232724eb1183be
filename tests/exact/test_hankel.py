"""The rank of block Hankel matrices, against elimination of the matrix itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attngeom.exact.domains import BalancedField
from attngeom.exact.hankel import hankel_rank
from tests.effort import examples

SIZES = st.integers(1, 4)


def matrix(sequence: np.ndarray, rows: int) -> np.ndarray:
    columns = len(sequence) - rows + 1
    return np.block([[sequence[i + j] for j in range(columns)] for i in range(rows)])


@examples(150)
@given(st.sampled_from([2, 3, 251, 8388593]), SIZES, SIZES, st.integers(1, 6), st.integers(1, 6), st.randoms())
def test_sparse_sequences(p, m, n, rows, columns, random):
    field = BalancedField(p)
    rng = np.random.default_rng(random.randrange(2**32))
    sequence = field.random((rows + columns - 1, m, n), rng) * (rng.random((rows + columns - 1, m, n)) < 0.4)
    sequence = sequence.astype(field.dtype)
    assert hankel_rank(sequence, rows, field) == field.rank(matrix(sequence, rows))


@examples(80)
@given(st.sampled_from([2, 251, 8388593]), SIZES, SIZES, st.integers(1, 8), st.integers(0, 8), st.randoms())
def test_krylov_sequences_of_any_rank(p, m, n, size, rank, random):
    """Also long after the rank is reached."""
    field = BalancedField(p)
    rng = np.random.default_rng(random.randrange(2**32))
    B = field.matmul(field.random((size, rank), rng), field.random((rank, size), rng))
    U, block = field.random((m, size), rng), field.random((size, n), rng)
    terms = []
    for _ in range(12):
        block = field.matmul(B, block)
        terms.append(field.matmul(U, block))
    sequence = np.array(terms)
    for rows in (1, 5, 8):
        found = hankel_rank(sequence, rows, field)
        assert found == field.rank(matrix(sequence, rows)) <= rank
