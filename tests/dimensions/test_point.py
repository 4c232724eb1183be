"""The rank at given weights: generic points reach the dimension, special points fall short by a known amount."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from attngeom.dimensions import dimension, rank_at
from attngeom.dimensions.symmetry_bound import layer_kernels
from attngeom.errors import DomainError
from attngeom.exact import GF, QQ, RR
from attngeom.network import Architecture, Weights, random_weights, weights_from_matrices
from attngeom.network.tangent import jacobian
from tests.effort import examples

from .coefficients import coefficient_jacobian
from .points import draw_point, tally
from .strategies import architectures

ONE = Architecture((3, 2), 2, 3)


@pytest.mark.parametrize(
    "architecture",
    [
        ONE,
        Architecture((3, 2, 3), 2, 3),
        Architecture((3, 3), 2, 2, heads=3, residual=True),
        Architecture((2, 3), 1, 1),
    ],
    ids=str,
)
def test_generic_points_reach_the_dimension(architecture):
    point = rank_at(random_weights(architecture, QQ, seed=1))
    assert point.is_exact and point.is_proven and point.defect == 0
    assert point.rank == dimension(architecture, prove=True).dimension
    floats = rank_at(random_weights(architecture, RR, seed=1))
    assert floats.standing == "estimate" and floats.rank == point.rank and floats.measured.is_clear


def test_long_sequences_are_certified_at_few_tokens():
    long = random_weights(Architecture((2, 2, 2), 1, tokens=1024, kind="softmax", heads=2, value_width=1), QQ, seed=0)
    point = rank_at(long)
    assert point.method == "balls" and point.is_exact and point.defect == 0


def test_softmax_points_are_certified_by_balls():
    floats = random_weights(Architecture((3, 2, 2), 2, 2, "softmax"), RR, seed=1)
    for point in (rank_at(floats.to(QQ)), rank_at(random_weights(floats.architecture, QQ, seed=1))):
        assert point.method == "balls" and point.is_exact and point.defect == 0


@examples(150)
@given(architectures(), st.integers(0, 1000))
def test_float_estimates_are_the_exact_rank_of_the_same_numbers(architecture, seed):
    assume(architecture.num_parameters <= 250)
    weights = random_weights(architecture, RR, seed)
    found = rank_at(weights, seed)
    if architecture.rule.is_polynomial:
        expected = rank_at(weights.to(QQ), seed).rank
    else:
        expected = dimension(architecture, prove=True).dimension
    assert found.standing == "undecided" or found.rank == expected


@pytest.mark.parametrize(
    ("architecture", "value"),
    [
        (Architecture((4, 1), 1, 5), 10),
        (Architecture((6, 6), 2, 3), 55),
        (Architecture((8, 2), 4, 3, "softmax", causal=True), 64),
        (Architecture((6, 6, 6), 3, 2), 88),
    ],
    ids=str,
)
def test_float_estimates_have_enough_samples(architecture, value):
    for seed in range(3):
        found = rank_at(random_weights(architecture, RR, seed))
        assert (found.rank, found.generic, found.standing) == (value, value, "estimate")


def test_float_estimates_see_a_defect():
    """A = k qᵀ and V = h kᵀ up to rounding: the exact numbers are generic, the estimate is not misled."""
    architecture = Architecture((3, 2), 3, 3)
    integers = weights_from_matrices(architecture, [QQ.convert([[1, 2, 3]] * 3)], [QQ.convert([[1, 1, 1]] * 2)], QQ)
    noise = 1 + 1e-15 * np.random.default_rng(0).standard_normal(architecture.num_parameters)
    near = Weights.from_vector(architecture, integers.to(RR).vector() * noise, RR)
    assert rank_at(near).rank == rank_at(integers).rank < rank_at(near.to(QQ)).rank


def test_float_zeros_have_rank_zero():
    zero = Weights.from_vector(ONE, np.zeros(ONE.num_parameters), RR)
    assert rank_at(zero).rank == 0


def test_defect_at_rank_one_points():
    """A = k qᵀ, V = h kᵀ is critical; a rank-one A beside V of rank two loses less."""
    k, q, h = QQ.convert([[1], [2], [3]]), QQ.convert([[1, -1, 2]]), QQ.convert([[2], [5]])
    A = QQ.matmul(k, q)
    boundary = rank_at(weights_from_matrices(ONE, [A], [QQ.matmul(h, k.T)], QQ))
    other = rank_at(weights_from_matrices(ONE, [A], [QQ.convert([[1, 0, 3], [2, 4, 6]])], QQ))
    assert boundary.is_exact and other.is_exact
    assert 0 < other.defect < boundary.defect
    assert boundary.rank == QQ.rank(coefficient_jacobian(weights_from_matrices(ONE, [A], [QQ.matmul(h, k.T)], QQ)))


def test_bounds_meet_at_most_special_points():
    """For one layer always; lower bounds never exceed upper ones, which do not hang on how they were found."""
    counts = tally(150, seed=5)
    total = sum(counts.values(), Counter())
    assert total["wrong"] == 0 and total["undecided"] <= 12
    assert all(found["undecided"] == 0 for name, found in counts.items() if "one layer" in name)


@pytest.mark.parametrize("seed", range(20))
def test_one_lightning_layer_has_the_rank_of_its_coefficients(seed):
    rng = np.random.default_rng([9, seed])
    architecture = Architecture((3, 2), 2, int(rng.integers(1, 4)), heads=2, value_width=1)
    entries = rng.integers(-1, 2, size=architecture.num_parameters)
    weights = Weights.from_vector(architecture, QQ.convert(entries), QQ)
    point = rank_at(weights)
    assert point.is_exact and point.rank == QQ.rank(coefficient_jacobian(weights))


@pytest.mark.parametrize("seed", range(60))
def test_layers_do_not_change_along_their_kernels(seed):
    """The Jacobian at random inputs, by the derivatives of the network, takes every direction to zero."""
    rng = np.random.default_rng([11, seed])
    weights = draw_point(rng)
    shape, kernels = weights.architecture, RR.convert(layer_kernels(weights))
    J = jacobian(weights.to(RR), rng.normal(size=(4, shape.widths[0], shape.tokens))).T
    assert np.all(np.abs(J @ kernels.T) <= 1e-9 * (np.abs(J) @ np.abs(kernels.T) + 1e-12))


def test_zero_weights_have_rank_zero():
    zero = Weights.from_vector(ONE, QQ.zeros((ONE.num_parameters,)), QQ)
    point = rank_at(zero)
    assert point.is_exact and (point.rank, point.defect) == (0, 13)


def test_deep_special_points_are_bounded_on_both_sides():
    architecture = Architecture((2, 2, 2), 2, 3)
    weights = random_weights(architecture, QQ, seed=2)
    tensors = dict(weights.tensors())
    tensors["layers.1.V"] = QQ.convert([[1, 2], [2, 4]])
    point = rank_at(Weights.from_tensors(architecture, tensors, QQ))
    assert point.lower_bound <= point.upper_bound <= point.generic
    assert point.is_exact or point.error_probability < 1e-3


def test_denominators_that_contain_the_prime_are_avoided():
    tensors = {name: np.array(array) for name, array in random_weights(ONE, QQ, seed=3).tensors()}
    tensors["layers.0.Q"][0, 0] = QQ.convert(["1/8388593"])[0]
    assert rank_at(Weights.from_tensors(ONE, tensors, QQ)).rank == 13


def test_other_domains_are_refused():
    with pytest.raises(DomainError, match="rational or float"):
        rank_at(random_weights(ONE, GF(7), seed=0))
