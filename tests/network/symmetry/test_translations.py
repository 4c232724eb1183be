"""Translations of biases between layers and inside heads: the function stays, group laws hold, dimensions are met."""

import numpy as np
import pytest

from attngeom.dimensions import dimension
from attngeom.exact.domains import QQ, RR
from attngeom.network import Architecture, forward, random_symmetry, random_weights
from attngeom.network.symmetry import count_generators

SHAPES = [
    dict(widths=(3, 3, 2)),
    dict(widths=(2, 2, 2), residual=True),
    dict(widths=(3, 2, 3), heads=2, value_width=1),
    dict(widths=(2, 2, 2), heads=2, value_width=2, residual=True),
]
KINDS = ["softmax", "lightning", "linear", "gla", "kda", "ssd", "gated_deltanet"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_group_laws(kind, shape):
    network = Architecture(attention=2, kind=kind, bias=True, **shape)
    weights = random_weights(network, QQ, 1)
    first, second = (random_symmetry(network, QQ, seed) for seed in (2, 3))
    moved = first.apply(weights)
    assert second.compose(first).apply(weights).equals(second.apply(moved))
    assert first.inverse().apply(moved).equals(weights)
    X = np.random.default_rng(0).standard_normal((network.widths[0], 3)) / 8
    floats, symmetry = random_weights(network, RR, 1), random_symmetry(network, RR, 4)
    np.testing.assert_allclose(forward(symmetry.apply(floats), X), forward(floats, X), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("kind", ["softmax", "linear", "gla"])
def test_dimensions_of_stacks_with_biases_are_proven(kind):
    for shape in SHAPES:
        answer = dimension(Architecture(attention=2, kind=kind, bias=True, **shape), prove=True)
        assert answer.standing == "proven" and not answer.fiber["unexplained"]


def test_where_constants_are_seen_there_are_none():
    """Values of lightning attention are not averaged, and the gate σ(u·x) has no bias."""
    assert "translation" not in count_generators(Architecture((2, 2, 2), 1, bias=True))
    gated = Architecture((2, 2, 2), 1, kind="gated_deltanet", bias=True, heads=2, value_width=1)
    assert "translation" not in count_generators(gated)
