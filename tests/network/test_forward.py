"""All forward passes are one function: exactly over Q and GF(p), to rounding over floats, enclosed by balls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attngeom.errors import DomainError, InputError
from attngeom.exact import BIG_PRIME, GF, QQ, RR, WORD_PRIME, Balls
from attngeom.limits.memory import MASKED_CHUNK
from attngeom.network import Architecture, forward, random_weights
from attngeom.network.attention import Attention, Lightning
from attngeom.network.attention.lightning import choose_order
from attngeom.network.mask import Mask
from attngeom.network.virtual import forward_recursion, forward_virtual, forward_word, word
from tests.effort import examples
from tests.network.definition import forward_definition

from .strategies import architectures

EXACT = [QQ, GF(101), GF(WORD_PRIME), GF(BIG_PRIME)]


@examples(60)
@given(architectures(), st.sampled_from(EXACT), st.integers(0, 10**6))
def test_all_forms_agree_with_the_definition_exactly(architecture, domain, seed):
    weights = random_weights(architecture, domain, seed)
    X = domain.random((architecture.widths[0], architecture.tokens), np.random.default_rng(seed))
    expected = forward_definition(weights, X)
    assert domain.equal(forward(weights, X), expected)
    if architecture.has_virtual_weights:
        assert domain.equal(forward_virtual(weights.virtual(), X), expected)


@examples(40)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.sampled_from(EXACT), st.integers(0, 10**6))
def test_virtual_recursion_and_word_agree_with_the_definition(layers, width, tokens, domain, seed):
    widths = [width + (i % 2) for i in range(layers + 1)]
    weights = random_weights(Architecture(widths, 2, tokens=tokens), domain, seed)
    X = domain.random((widths[0], tokens), np.random.default_rng(seed))
    expected = forward_definition(weights, X)
    assert domain.equal(forward_recursion(weights.virtual(), X), expected)
    assert domain.equal(forward_word(weights.virtual(), X), expected)


@examples(30)
@given(architectures(kinds=("lightning", "softmax", "sigmoid")), st.integers(0, 10**6))
def test_balls_contain_the_float_result(architecture, seed):
    weights = random_weights(architecture, QQ, seed).to(RR)
    weights = type(weights).from_vector(architecture, weights.vector() / 16, RR)
    X = RR.random((architecture.widths[0], architecture.tokens), np.random.default_rng(seed)) / 4
    balls = Balls(256)
    enclosed = forward(weights.to(balls), balls.convert(X))
    computed = forward(weights, X)
    assert np.allclose([float(x.mid()) for x in enclosed.ravel()], computed.ravel(), rtol=1e-9, atol=1e-9)


def test_softmax_columns_average_the_values():
    architecture = Architecture((2, 2), 1, tokens=3, kind="softmax")
    tensors = {"layers.0.Q": [[0, 0]], "layers.0.K": [[1, 2]], "layers.0.V": [[1, 0], [0, 1]]}
    weights = type(random_weights(architecture, RR, 0)).from_tensors(architecture, tensors, RR)
    X = np.array([[1.0, 2.0, 6.0], [0.0, 3.0, 3.0]])
    assert np.allclose(forward(weights, X), np.array([[3.0] * 3, [2.0] * 3]))


def test_causal_softmax_sees_only_earlier_tokens():
    weights = random_weights(Architecture((3, 3, 2), 2, kind="softmax", causal=True), RR, 1)
    X = np.random.default_rng(2).standard_normal((3, 5))
    full = forward(weights, X)
    assert np.allclose(full[:, :3], forward(weights, X[:, :3]))
    assert not np.allclose(full[:, :3], forward(weights, X[:, 1:4]))


def test_causal_linear_form_crosses_chunks_exactly():
    field = GF(WORD_PRIME)
    q, k, v = (field.random((2 * MASKED_CHUNK + 7, 2), np.random.default_rng(seed)) for seed in range(3))
    rule = Lightning(Mask(True))
    assert field.equal(rule.mix_linear(q, k, v, field), Attention.mix(rule, q, k, v, field))


@examples(40)
@given(st.tuples(*[st.integers(1, 6)] * 3), st.booleans(), st.sampled_from(EXACT), st.integers(0, 99))
def test_both_orders_of_lightning_attention_agree(sizes, causal, domain, seed):
    a, v, t = sizes
    rng, rule = np.random.default_rng(seed), Lightning(Mask(causal))
    queries, keys, values = (domain.random((2, t, width), rng) for width in (a, a, v))
    expected = Attention.mix(rule, queries, keys, values, domain)
    assert domain.equal(rule.mix_linear(queries, keys, values, domain), expected)
    assert domain.equal(rule.mix(queries, keys, values, domain), expected)


def test_batches_are_computed_at_once():
    field = GF(WORD_PRIME)
    weights = random_weights(Architecture((3, 4, 2), 2, heads=2), field, 3)
    X = field.random((5, 3, 4), np.random.default_rng(1))
    stacked = np.stack([forward(weights, x) for x in X])
    assert field.equal(forward(weights, X), stacked)


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_word_has_the_length_of_the_network_degree(layers):
    letters = word(layers)
    assert len(letters) == (3**layers - 1) // 2
    # Each layer i contributes 3^{l-i} letters, half of them (rounded down) transposed.
    for i in range(1, layers + 1):
        own = [transposed for index, transposed in letters if index == i]
        assert len(own) == 3 ** (layers - i)
        assert sum(own) == len(own) // 2


def test_order_follows_the_flop_count():
    assert choose_order(64, 64, 10) == "quadratic"
    assert choose_order(64, 64, 1000) == "linear"


def test_softmax_over_exact_fields_is_refused():
    weights = random_weights(Architecture((2, 2), 1, kind="softmax"), QQ, 0)
    with pytest.raises(DomainError, match="floats or balls"):
        forward(weights, QQ.zeros((2, 3)))


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 0), ()])
def test_inputs_of_wrong_shape_are_refused(shape):
    weights = random_weights(Architecture((2, 2), 1), RR, 0)
    with pytest.raises(InputError, match="shape"):
        forward(weights, np.zeros(shape))


def test_recursion_refuses_causal_networks():
    weights = random_weights(Architecture((2, 2), 1, causal=True), QQ, 0)
    with pytest.raises(InputError, match="causal"):
        forward_recursion(weights.virtual(), QQ.zeros((2, 2)))
