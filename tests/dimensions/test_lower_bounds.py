"""Lower bounds: with the last map eliminated by hand, or matrix-free, the same rank as the whole Jacobian."""

import numpy as np
import pytest
from hypothesis import assume, given

from attngeom.dimensions import dimension, krylov_lower_bound, upper_bound
from attngeom.dimensions.lower_bounds import (
    choose_method,
    count_remaining,
    free_map,
    minor_lower_bound,
    sample_tokens,
    schur_lower_bound,
)
from attngeom.dimensions.sliced_network import NetworkMap, random_samples, random_slice, sampled_jacobian
from attngeom.errors import SizeError
from attngeom.exact import BLAS_PRIME, SMALL_PRIME
from attngeom.exact.modular import choose_minor
from attngeom.network import Architecture
from attngeom.rank.krylov import SquareOperator
from tests.dimensions.strategies import architectures
from tests.effort import examples

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
    _, linear = free_map(architecture, BLAS_PRIME, 2, samples=5)
    network, field = linear.network, linear.field
    samples = random_samples(network, 5, architecture.tokens, seed=3)
    matrix = sampled_jacobian(network, samples)
    vector = field.random((linear.size,), np.random.default_rng(4))
    pushed = linear.push(vector[None]).reshape(samples.C.shape)
    paired = field.reduce(field.times(samples.C, pushed).sum(axis=(1, 2)))
    assert np.array_equal(samples.X, linear.passes.layers[0].X)
    assert field.is_zero(field.matmul(matrix, vector[:, None])[:, 0] - paired)


@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_a_stack_of_directions_is_pushed_at_once(architecture):
    operator = SquareOperator(free_map(architecture, BLAS_PRIME, 2, samples=5)[0], 4)
    vectors = operator.field.random((3, operator.size), np.random.default_rng(5))
    alone = np.concatenate([operator.apply(vector[None]) for vector in vectors])
    assert operator.field.is_zero(operator.apply(vectors) - alone)


@pytest.mark.parametrize("architecture", KINDS, ids=str)
def test_what_is_cleared_by_hand_has_its_rank(architecture):
    """rank J of all outputs at the samples is the cleared part plus the rank of what is left."""
    linear, rest = free_map(architecture, BLAS_PRIME, 2, samples=9)
    whole = NetworkMap(random_slice(architecture, BLAS_PRIME, 2), rest.passes, rest.field)
    assert linear.cleared == whole.size - linear.size > 0
    left = np.concatenate([SquareOperator(linear, 4).apply(unit[None]) for unit in np.eye(linear.size)])
    ranks = [choose_minor(matrix, BLAS_PRIME).rank for matrix in (whole.push(np.eye(whole.size)), left)]
    assert ranks[0] == linear.cleared + ranks[1]


@pytest.mark.parametrize("p", [SMALL_PRIME, BLAS_PRIME])
def test_krylov_bound_never_exceeds_the_rank_of_a_singular_operator(p):
    architecture = Architecture((3, 3), 3, tokens=1)
    linear, _ = free_map(architecture, p, 0, samples=9)
    operator = SquareOperator(linear, 2)
    columns = np.concatenate([operator.apply(unit[None]) for unit in operator.field.eye(operator.size)])
    rank = linear.cleared + choose_minor(columns, p).rank
    assert rank < linear.size + linear.cleared and krylov_lower_bound(architecture, 0, p, 6).value <= rank


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


@examples(100)
@given(architectures())
def test_schur_rank_is_the_rank_of_the_whole_jacobian(architecture):
    upper = upper_bound(architecture).value
    assume(upper <= 150)
    tokens = sample_tokens(architecture)
    found = schur_lower_bound(architecture, upper, tokens).value
    # Features that satisfy a linear relation leave nothing to clear.
    assume(found > 0)
    whole = minor_lower_bound(architecture, upper + 2).value
    assert found == whole
    # Points mod a small prime may be degenerate: never more, and the same at one of a few points.
    ranks = [schur_lower_bound(architecture, upper, tokens, seed, SMALL_PRIME).value for seed in range(6)]
    assert max(ranks) == whole


def test_dependent_features_are_noticed():
    """Three heads of width one see the same cubic: the features repeat, and the bound is empty instead of wrong."""
    architecture = Architecture((1, 3), 1, 2, heads=3)
    assert schur_lower_bound(architecture, 3, 2).value == 0


def test_dependent_features_are_proven_by_the_whole_matrix():
    architecture = Architecture((3, 40), 3, 2, heads=12, value_width=30)
    assert choose_method(architecture, upper_bound(architecture).value) == "schur"
    answer = dimension(architecture, prove=True)
    assert answer.is_proven and answer.method == "minor"


@pytest.mark.parametrize("kind", ["lightning", "softmax"])
def test_medium_networks_are_proven_by_the_smaller_matrix(kind):
    architecture = Architecture((14, 14, 14), 7, 4, kind)
    assert choose_method(architecture, upper_bound(architecture).value) == "schur"
    answer = dimension(architecture, method="schur")
    assert answer.standing == "proven" and answer.method == "schur" and answer.dimension == answer.formula.value
    assert count_remaining(architecture, answer.dimension) < answer.dimension**2 / 2


def test_methods_are_chosen_by_size():
    small, large, huge = (Architecture((d, d, d), d // 2, 4) for d in (4, 30, 150))
    chosen = [choose_method(architecture, upper_bound(architecture).value) for architecture in (small, large, huge)]
    assert chosen == ["minor", "schur", "krylov"]
