"""Theorem X: cross-entropy against its own second derivative and values, vocabularies against the density."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import QQ, RR
from attngeom.learning import learning_coefficient
from attngeom.learning.losses import all_sequences, logit_differences
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.verification import verify

NETWORKS = [
    Architecture((2, 3), 1, tokens=2),
    Architecture((2, 2), 2, tokens=2, residual=True),
    Architecture((3, 4), 1, tokens=2, heads=2, value_width=1, causal=True),
    Architecture((2, 2, 3), 2, tokens=2),
    Architecture((2, 2), 1, tokens=2, kind="softmax"),
    Architecture((2, 3), 2, tokens=2, heads=2, value_width=1, kind="sigmoid"),
]


@pytest.mark.parametrize("architecture", NETWORKS, ids=str)
def test_divergences_are_of_the_order_of_differences_of_logits(architecture: Architecture) -> None:
    """At random nearby weights, bounded inputs: the ratio of the two stays between bounds; a shift changes nothing."""
    rng = np.random.default_rng(6)
    weights = random_weights(architecture, QQ, seed=2).to(RR)
    start = weights.vector() / (1 + np.abs(weights.vector()).max())
    X = rng.uniform(-1, 1, (200, architecture.widths[0], architecture.tokens))

    def logs(vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        point = Weights.from_vector(architecture, vector, RR)
        outputs, small = forward(point, X), forward(logit_differences(point), X)
        # The skip connection of one layer cancels in differences of two points.
        return outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True)), small

    first, logits = logs(start)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(5):
            second, others = logs(start + size * rng.normal(size=start.shape))
            divergence = float((np.exp(first) * (first - second)).sum(axis=1).mean())
            squares = float(((logits - others) ** 2).sum(axis=1).mean())
            assert 0.02 * squares < divergence < 2 * squares


def test_the_pair_is_that_of_the_network_of_differences() -> None:
    for architecture in NETWORKS:
        weights = random_weights(architecture, QQ, seed=3)
        found = learning_coefficient(weights, loss="cross-entropy")
        plain = learning_coefficient(logit_differences(weights))
        assert (found.pair, found.theorem) == (plain.pair, plain.theorem) and "Theorem X" in found.reason
        if found.certificate is not None:
            assert verify(found.certificate.to_json()).valid


def test_equal_rows_of_values_are_a_zero_function_for_predictions() -> None:
    """V = 1 vᵀ shifts all logits: for cross-entropy the point is that of V = 0."""
    weights = Weights.from_vector(Architecture((2, 2), 1), QQ.convert([1, 0, 1, 0, 3, 5, 3, 5]), QQ)
    found = learning_coefficient(weights, loss="cross-entropy")
    assert found.theorem == "A1.1" and (found.value, found.multiplicity) == (Fraction(1), 1)
    assert learning_coefficient(weights).value == 3


def test_a_rich_vocabulary_is_as_good_as_a_density_and_a_poor_one_is_not() -> None:
    weights = Weights.from_vector(Architecture((2, 2), 1, tokens=2), QQ.convert([1, 0, 1, 0, 1, 0, 0, 0]), QQ)
    rich = QQ.convert([[1, 0, 1, 2], [0, 1, 1, -1]])
    assert learning_coefficient(weights, vocabulary=rich).value == Fraction(11, 4)
    poor = QQ.convert([[1, 2], [0, 0]])
    found = learning_coefficient(weights, vocabulary=poor)
    assert found.value is None and found.certificate is None and found.lower == 1
    both = learning_coefficient(weights, vocabulary=rich, loss="cross-entropy")
    assert both.value == Fraction(7, 4)


def test_all_sequences_are_listed_once() -> None:
    weights = random_weights(Architecture((2, 2), 1, tokens=3), QQ, seed=0)
    X = all_sequences([[1, 2], [3, 4]], weights)
    assert X.shape == (8, 2, 3) and len({tuple(map(str, x.ravel())) for x in X}) == 8
    assert X[1].tolist() == [[1, 1, 2], [3, 3, 4]]


def test_what_is_refused(tmp_path: Path) -> None:
    one = random_weights(Architecture((2, 1), 1), QQ, seed=0)
    deep = random_weights(Architecture((2, 2, 2), 1, residual=True), QQ, seed=0)
    for weights, words in ((one, "two logits"), (deep, "skip connections")):
        with pytest.raises(InputError, match=words):
            learning_coefficient(weights, loss="cross-entropy")
    with pytest.raises(InputError, match="one of squared"):
        learning_coefficient(one, loss="hinge")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one of them"):
        learning_coefficient(one, inputs=[[[1], [1]]], vocabulary=[[1], [1]])
    with pytest.raises(InputError, match="one column for each token"):
        learning_coefficient(one, vocabulary=[[1, 2]])
    with pytest.raises(SizeError, match="sequences"):
        learning_coefficient(one, vocabulary=np.ones((2, 100), dtype=int))
