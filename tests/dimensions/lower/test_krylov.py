"""Matrix-free bounds: the block Krylov bound is the dimension, and never exceeds a rank."""

import numpy as np
import pytest

from attngeom.dimensions import dimension, krylov_lower_bound, upper_bound
from attngeom.dimensions.jacobian import random_samples, sampled_jacobian
from attngeom.dimensions.lower.krylov import ClearedJacobian
from attngeom.dimensions.slices import random_slice
from attngeom.errors import SizeError
from attngeom.exact import BLAS_PRIME, SMALL_PRIME
from attngeom.exact.residues import Elimination
from attngeom.network import Architecture

KINDS = [
    Architecture((4, 3, 5), 2, 3),
    Architecture((3, 3, 3), 2, 4, causal=True),
    Architecture((3, 3, 3), 1, 2, residual=True),
    Architecture((4, 4, 4), 2, 4, heads=2),
    Architecture((3, 3, 3), 2, 3, "softmax"),
    Architecture((4, 4), 2, 3, "softmax", heads=2, causal=True),
]


def test_networks_that_would_take_weeks_are_refused():
    with pytest.raises(SizeError, match="formula"):
        krylov_lower_bound(Architecture((768,) * 3, 64, heads=12))


@pytest.mark.parametrize("p", [SMALL_PRIME, BLAS_PRIME])
@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_krylov_bound_is_the_dimension(architecture, p):
    assert krylov_lower_bound(architecture, 2, p).value == upper_bound(architecture).value


@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_forward_and_reverse_derivatives_agree(architecture):
    operator = ClearedJacobian(architecture, BLAS_PRIME, 2, samples=5)
    network, field = operator.network, operator.field
    samples = random_samples(network, operator.samples, operator.tokens, seed=3)
    matrix = sampled_jacobian(network, samples)
    vector = field.random((operator.size,), np.random.default_rng(4))
    pushed = operator.push_forward(vector)
    paired = field.reduce(field.times(samples.C, pushed).sum(axis=(1, 2)))
    assert np.array_equal(samples.X, operator.passes.layers[0].X)
    assert field.is_zero(field.matmul(matrix, vector[:, None])[:, 0] - paired)


@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_a_stack_of_directions_is_pushed_at_once(architecture):
    operator = ClearedJacobian(architecture, BLAS_PRIME, 2, samples=5)
    vectors = operator.field.random((3, operator.size), np.random.default_rng(5))
    alone = np.concatenate([operator.apply(vector[None]) for vector in vectors])
    assert operator.field.is_zero(operator.apply(vectors) - alone)


@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_what_is_cleared_by_hand_has_its_rank(architecture):
    """rank J of all outputs at the samples is the cleared part plus the rank of what is left."""
    operator = ClearedJacobian(architecture, BLAS_PRIME, 2, samples=9)
    whole = random_slice(architecture, BLAS_PRIME, 2)
    assert operator.cleared == whole.num_columns - operator.size > 0
    units = np.eye(whole.num_columns)
    outputs = operator.passes.push(list(whole.directions(units))).reshape(len(units), -1)
    left = np.concatenate([operator.apply(unit[None]) for unit in np.eye(operator.size)])
    ranks = [Elimination(matrix, BLAS_PRIME).run().rank for matrix in (outputs.copy(), left)]
    assert ranks[0] == operator.cleared + ranks[1]


@pytest.mark.parametrize("p", [SMALL_PRIME, BLAS_PRIME])
def test_krylov_bound_never_exceeds_the_rank_of_a_singular_operator(p):
    architecture = Architecture((3, 3), 3, tokens=1)
    operator = ClearedJacobian(architecture, p, 0, samples=9)
    columns = np.concatenate([operator.apply(unit[None]) for unit in operator.field.eye(operator.size)])
    rank = operator.cleared + Elimination(columns, p).run().rank
    assert rank < operator.size + operator.cleared and krylov_lower_bound(architecture, 0, p, 6).value <= rank


def test_dependent_features_are_not_cleared():
    architecture = Architecture((2, 3, 3), 1, tokens=2)
    answer = krylov_lower_bound(architecture, 0, BLAS_PRIME)
    assert answer.value <= upper_bound(architecture).value
    assert answer.value == krylov_lower_bound(architecture, 1, BLAS_PRIME, 3).value


def test_workers_change_nothing():
    found = {krylov_lower_bound(KINDS[0], 3, workers=workers).reason for workers in (1, 2)}
    assert len(found) == 1


def test_short_krylov_bounds_are_tried_again_with_more_samples():
    answer = dimension(Architecture((6, 5, 4, 3, 6), 2, 5), method="krylov")
    assert answer.is_proven and answer.dimension == 82 and answer.method == "krylov"
