"""Dimensions of drawn networks of all kinds and options against ranks of the definitions, by complex steps."""

from random import Random

import numpy as np
import pytest

from attngeom import dimension
from attngeom.exact.domains import RR
from attngeom.network import Architecture, forward, random_symmetry, random_weights
from tests.dimensions.kind_oracle import TAKES, draw_network, evaluate, measured_rank
from tests.effort import choose

EDGES = [
    dict(widths=(1, 1), attention=1, tokens=2, kind="deltanet", normalised_keys=True),
    dict(widths=(2, 2), attention=1, tokens=2, kind="kda", normalised_keys=True),
    dict(widths=(1, 2), attention=3, tokens=3, kind="gla"),
    dict(widths=(2, 1), attention=2, tokens=1, kind="gated_deltanet", gate="mamba"),
    dict(widths=(2, 2), attention=2, tokens=3, kind="softmax", bias=True, rope=True),
    dict(widths=(2, 2), attention=2, tokens=3, kind="differential", rope=True),
    dict(widths=(2, 1), attention=1, tokens=3, kind="differential", heads=2, value_width=1, window=2),
    dict(widths=(1, 1), attention=1, tokens=3, kind="lightning", bias=True, alibi="learned"),
    dict(widths=(2, 1), attention=1, tokens=3, kind="sigmoid", bias=True, alibi="fixed", window=2),
    dict(widths=(2, 1, 2), attention=1, tokens=2, kind="softmax", bias=True),
]
"""One dimension, a > d, one token, d' ≠ d, windows, normalised keys of width 1, biases beside ALiBi."""


def check(network, seed):
    rank = measured_rank(network, seed)
    answer = dimension(network)
    assert rank is None or answer.lower_bound <= rank <= answer.upper_bound, network
    assert rank is None or not answer.is_proven or answer.dimension == rank, network
    return rank


@pytest.mark.parametrize("sizes", EDGES, ids=str)
def test_edges_have_the_rank_of_their_definition(sizes):
    assert check(Architecture(**sizes), 3) is not None


@pytest.mark.parametrize("seed", range(choose(8, 100)))
def test_drawn_networks_have_the_rank_of_their_definition(seed):
    check(draw_network(Random(f"rank {seed}"), 24), seed)


def test_drawn_networks_compute_their_definition_and_symmetries_keep_it():
    rng, kinds = Random("functions"), set()
    for seed in range(choose(60, 600)):
        network = draw_network(rng, 60)
        kinds.add(network.kind)
        weights = random_weights(network, RR, seed)
        X = np.random.default_rng(seed).standard_normal((2, network.widths[0], network.tokens)) / 2
        Y = evaluate(network, dict(weights.tensors()), X)
        np.testing.assert_allclose(forward(weights, X), Y, rtol=1e-9, atol=1e-9 * np.abs(Y).max(initial=1e-300))
        moved = random_symmetry(network, RR, seed).apply(weights)
        with np.errstate(all="ignore"):
            Z = evaluate(network, dict(moved.tensors()), X)
        if np.all(np.isfinite(Z)):
            np.testing.assert_allclose(Z, Y, rtol=1e-5, atol=1e-5 * np.abs(Y).max(initial=1e-300), err_msg=str(network))
    assert kinds == set(TAKES)
