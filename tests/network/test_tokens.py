"""Few tokens stand for many: the outputs of an input of all tokens are those that are told from some of them."""

import numpy as np
import pytest

from attngeom.comparison import compare
from attngeom.errors import SizeError
from attngeom.exact import RR
from attngeom.network import Architecture, forward, random_weights
from attngeom.network.inputs import telling_tokens, with_all_tokens

LONG = [
    Architecture((2, 3, 2), 2, tokens=20),
    Architecture((3, 3, 3), 2, tokens=20, residual=True),
    Architecture((2, 3, 2), 2, tokens=20, causal=True),
    Architecture((2, 3, 2), 2, tokens=130, kind="softmax"),
    Architecture((3, 3, 3), 1, tokens=201, kind="softmax", heads=2, value_width=1, residual=True),
    Architecture((2, 3, 2), 2, tokens=70, kind="softmax", causal=True),
    Architecture((2, 3, 2), 2, tokens=70, kind="sigmoid", causal=True),
]


@pytest.mark.parametrize("architecture", LONG)
def test_outputs_at_all_tokens_are_those_at_telling_ones(architecture):
    weights = random_weights(architecture, RR, seed=1)
    few = telling_tokens(architecture)
    assert few < architecture.tokens
    X = np.random.default_rng(2).standard_normal((architecture.widths[0], few))
    found, whole = with_all_tokens(architecture, forward(weights, X)), with_all_tokens(architecture, X)
    rest = np.ones((len(X), architecture.tokens - whole.shape[1]))
    expected = forward(weights, np.concatenate([whole, rest], axis=1))
    assert found.shape[1] == (few if architecture.causal and not architecture.rule.is_polynomial else expected.shape[1])
    assert np.allclose(found, expected[:, : found.shape[1]], rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("kind", "tokens"), [("softmax", 64), ("softmax", 67), ("softmax", 2 * 67), ("sigmoid", 128), ("sigmoid", 5)]
)
def test_where_no_fewer_tell_all_tokens_are_needed(kind, tokens):
    assert telling_tokens(Architecture((2, 2), 1, tokens=tokens, kind=kind)) == tokens


@pytest.mark.parametrize("causal", [False, True])
def test_long_sequences_are_compared_at_telling_tokens(causal):
    architecture = Architecture((2, 2, 2), 1, tokens=3 * 10**4, kind="softmax", causal=causal)
    one, two = (random_weights(architecture, RR, seed=seed) for seed in (0, 1))
    assert compare(one, one).same_function is True
    found = compare(one, two)
    assert found.same_function is False and found.separation is not None
    few = found.separation.X[:, : telling_tokens(architecture)]
    outputs = [forward(weights, few) for weights in (one, two)]
    assert not np.allclose(*outputs)
    assert np.allclose(found.separation.outputs[0][:, : few.shape[1]], outputs[0])


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_inputs_that_must_be_long_are_refused(kind):
    weights = random_weights(Architecture((2, 2, 2), 1, tokens=1009, kind=kind), RR, seed=0)
    with pytest.raises(SizeError, match="1,009 tokens"):
        compare(weights, weights)
