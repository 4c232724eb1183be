"""Matrix-free bounds: the recurrence length is a Hankel rank, and the Krylov bound is the dimension."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attngeom.dimensions import dimension, krylov_lower_bound, upper_bound
from attngeom.dimensions.jacobian import jacobian, random_samples
from attngeom.dimensions.lower.krylov import FoldedJacobian
from attngeom.dimensions.lower.recurrence import linear_complexity
from attngeom.errors import InputError, SizeError
from attngeom.exact import BLAS_PRIME, WORD_PRIME
from attngeom.exact.elimination import Elimination
from attngeom.exact.modular import rank_mod_p
from attngeom.network import Architecture
from tests.effort import examples

KINDS = [
    Architecture((4, 3, 5), 2, 3),
    Architecture((3, 3, 3), 2, 4, causal=True),
    Architecture((3, 3, 3), 1, 2, residual=True),
    Architecture((4, 4, 4), 2, 4, heads=2),
    Architecture((3, 3, 3), 2, 3, "softmax"),
    Architecture((4, 4), 2, 3, "softmax", heads=2, causal=True),
]


@examples(150)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=14))
def test_hankel_matrix_of_the_recurrence_length_is_nonsingular(sequence):
    p = 101
    L = linear_complexity(np.array(sequence, dtype=np.float64), p)
    assert len(sequence) >= 2 * L
    if L:
        hankel = np.array([[sequence[i + j] for j in range(L)] for i in range(L)])
        assert rank_mod_p(hankel, p) == L


@examples(50)
@given(st.integers(1, 8), st.integers(0, 1000))
def test_recurrence_of_known_length_is_found(length, seed):
    p = 10007
    rng = np.random.default_rng(seed)
    rule, sequence = rng.integers(1, p, length), list(rng.integers(1, p, length))
    while len(sequence) < 4 * length:
        sequence.append(int(sum(int(c) * int(s) for c, s in zip(rule, sequence[-length:])) % p))
    hankel = np.array([[sequence[i + j] for j in range(length)] for i in range(length)])
    balanced = np.array([s - p if 2 * s > p else s for s in sequence], dtype=np.float64)
    assert linear_complexity(balanced, p) == rank_mod_p(hankel, p)


def test_large_moduli_are_refused():
    with pytest.raises(InputError, match="64 bits"):
        linear_complexity(np.ones(4), WORD_PRIME)


def test_networks_that_would_take_weeks_are_refused():
    with pytest.raises(SizeError, match="formula"):
        krylov_lower_bound(Architecture((768,) * 3, 64, heads=12))


@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_krylov_bound_is_the_dimension(architecture):
    assert krylov_lower_bound(architecture, seed=1).value == upper_bound(architecture).value


@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_forward_and_reverse_derivatives_agree(architecture):
    operator = FoldedJacobian(architecture, BLAS_PRIME, seed=2)
    network, field = operator.network, operator.field
    samples = random_samples(network, operator.samples, operator.tokens, seed=3)
    matrix = jacobian(network, samples)
    vector = field.random((operator.size,), np.random.default_rng(4))
    pushed = operator.push_forward(vector)
    paired = field.reduce(field.times(samples.C, pushed).sum(axis=(1, 2)))
    assert np.array_equal(samples.X, operator.passes.layers[0].X)
    assert field.is_zero(field.matmul(matrix, vector[:, None])[:, 0] - paired)


@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_a_stack_of_directions_is_pushed_at_once(architecture):
    operator = FoldedJacobian(architecture, BLAS_PRIME, seed=2)
    vectors = operator.field.random((3, operator.size), np.random.default_rng(5))
    alone = np.stack([operator.apply(vector) for vector in vectors])
    assert operator.field.is_zero(operator.apply(vectors) - alone)


def test_krylov_bound_never_exceeds_the_rank_of_a_singular_operator():
    architecture = Architecture((3, 3), 3, tokens=1)
    operator = FoldedJacobian(architecture, BLAS_PRIME, seed=0)
    columns = np.stack([operator.apply(unit) for unit in np.eye(operator.size)], axis=1)
    rank = Elimination(columns, BLAS_PRIME).run().rank
    assert rank < operator.size and krylov_lower_bound(architecture).value <= rank


def test_short_krylov_bounds_are_tried_again_with_more_samples():
    answer = dimension(Architecture((6, 5, 4, 3, 6), 2, 5), method="krylov")
    assert answer.is_proven and answer.dimension == 82 and answer.method == "krylov"
