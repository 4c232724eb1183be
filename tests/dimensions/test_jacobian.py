"""Jacobians: against finite differences of the forward pass, and against the symmetries that they must annihilate."""

import numpy as np
import pytest
from hypothesis import assume, given

from attngeom.dimensions.effective import effective_layers, effective_widths
from attngeom.dimensions.sliced_network import Samples, full_blocks, random_samples, random_slice, sampled_jacobian
from attngeom.exact import BLAS_PRIME, GF, QQ, RR, WORD_PRIME
from attngeom.exact.arrays import swap
from attngeom.exact.domains import BalancedField
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.symmetry import infinitesimal_action
from tests.effort import examples

from .strategies import architectures


@examples(40)
@given(architectures(max_layers=2))
def test_jacobian_is_the_derivative_of_the_forward_pass(architecture):
    assume(architecture.num_parameters <= 80)
    weights = random_weights(architecture, RR, seed=1)
    network = full_blocks(weights)
    samples = random_samples(network, 2, architecture.tokens, seed=2)
    found = sampled_jacobian(network, samples)

    def values(vector):
        outputs = forward(Weights.from_vector(architecture, vector, RR), swap(samples.X))
        return (swap(outputs) * samples.C).sum(axis=(1, 2))

    vector, step = weights.vector(), 1e-5
    for column in range(architecture.num_parameters):
        shift = np.zeros_like(vector)
        shift[column] = step
        expected = (values(vector + shift) - values(vector - shift)) / (2 * step)
        assert np.allclose(found[:, column], expected, rtol=1e-5, atol=1e-5 * (1 + np.abs(found).max()))


@examples(60)
@given(architectures(max_layers=3))
def test_infinitesimal_symmetries_lie_in_the_kernel(architecture):
    assume(architecture.num_parameters <= 200)
    field = BalancedField(BLAS_PRIME)
    weights = random_weights(architecture, GF(BLAS_PRIME), seed=3)
    network = full_blocks(weights.to(field))
    matrix = sampled_jacobian(network, random_samples(network, 5, architecture.tokens, seed=4))
    vectors = field.convert(infinitesimal_action(weights))
    assert field.is_zero(field.matmul(matrix, vectors.T))


def test_slice_is_a_set_of_columns_of_the_full_jacobian():
    architecture = Architecture((4, 3, 5), (3, 2), 3, heads=2, value_width=2)
    network = random_slice(architecture, BLAS_PRIME, seed=5)
    whole = full_blocks(random_weights(architecture, GF(BLAS_PRIME), seed=5).to(BalancedField(BLAS_PRIME)))
    samples = random_samples(network, 4, 3, seed=6)
    assert np.array_equal(sampled_jacobian(network, samples), sampled_jacobian(whole, samples)[:, network.columns])


def test_jacobians_over_q_and_mod_p_agree():
    architecture = Architecture((3, 2, 2), 2, 2, causal=True)
    weights = random_weights(architecture, QQ, seed=1)
    exact = full_blocks(weights)
    samples = random_samples(exact, 3, 2, seed=2)
    field = BalancedField(WORD_PRIME)
    modular = full_blocks(weights.to(field))
    points = Samples(field.convert(samples.X), field.convert(samples.C), None)
    assert np.array_equal(field.convert(sampled_jacobian(exact, samples)), sampled_jacobian(modular, points))


def test_formal_attention_sums_to_one_and_respects_the_mask():
    for architecture in (
        Architecture((3, 3), 2, 4, "softmax", heads=2, value_width=1),
        Architecture((3, 3), 2, 4, "softmax", causal=True),
        Architecture((1, 1), 1, 4, "softmax"),
        Architecture((1, 1), 1, 9, "softmax", causal=True),
    ):
        network = random_slice(architecture, BLAS_PRIME, seed=0)
        for P in random_samples(network, 5, 4, seed=1).attention[0]:
            assert np.all(network.domain.reduce(P.sum(axis=-2) - 1) == 0)
            if architecture.causal:
                assert not np.any(np.tril(P, -1))


@pytest.mark.parametrize(
    "architecture, widths",
    [
        (Architecture((3, 5, 3), 2), (3, 3, 3)),
        (Architecture((9, 9, 1), 1), (9, 3, 1)),
        (Architecture((5, 9, 5), 2, heads=2, value_width=2), (5, 4, 5)),
        (Architecture((1, 4, 4), 2, heads=3, value_width=2), (1, 1, 4)),
        (Architecture((1, 4, 4), 2, 3, "softmax", heads=3, value_width=2), (1, 3, 4)),
        (Architecture((3, 3, 3), 2, residual=True), (3, 3, 3)),
    ],
    ids=str,
)
def test_effective_widths(architecture, widths):
    assert effective_widths(architecture) == widths


def test_tokens_become_parallel_after_a_layer_of_rank_one():
    flags = [layer.symmetric for layer in effective_layers(Architecture((3, 3, 3, 3), (2, 1, 2)))]
    assert flags == [False, False, True]
    assert not any(layer.symmetric for layer in effective_layers(Architecture((3, 3, 3), 1, causal=True)))
    assert not any(layer.symmetric for layer in effective_layers(Architecture((3, 3, 3), 1, residual=True)))
    assert all(layer.symmetric for layer in effective_layers(Architecture((3, 3, 3), 2, tokens=1)))
