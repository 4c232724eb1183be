"""Exact verdicts on pairs that are made to mislead; theorems on fibers, one by one."""

from itertools import pairwise, product

import numpy as np
import pytest
from flint import fmpq

from attngeom.comparison import compare
from attngeom.comparison.certificate import certify_comparison
from attngeom.comparison.layerwise import drop_unread, layerwise_equality, live_heads
from attngeom.comparison.matching import clear
from attngeom.comparison.separation import Agreement, function_over, separate_exact
from attngeom.comparison.virtual import compare_virtual
from attngeom.exact import BIG_PRIME, GF, QQ, RR, WORD_PRIME
from attngeom.exact.domains import Balls
from attngeom.layer.forms import layer_form
from attngeom.network import (
    Architecture,
    Head,
    Weights,
    forward,
    random_symmetry,
    random_weights,
    weights_from_matrices,
)
from attngeom.network.attention import Softmax
from attngeom.verification import verify
from tests.comparison.adversary import EXACT, change, exact_pairs, with_layers

J = QQ.convert([[0, 1], [-1, 0]])
LAST = QQ.convert([[1, 2], [3, 5]])


def test_no_exact_verdict_is_wrong_and_none_is_missing():
    missing = 0
    for pair in exact_pairs(8 * len(EXACT), seed=0):
        found = compare(pair.first, pair.second)
        missing += found.same_function is None
        assert pair.same is None or found.same_function in (pair.same, None), pair
        assert found.is_proven or found.same_function is None or found.error_probability <= 1e-12
    assert missing <= 3


@pytest.mark.parametrize(
    "options", [{}, {"heads": 2, "value_width": 2}, {"heads": 2, "value_width": 2, "residual": True}, {"causal": True}]
)
@pytest.mark.parametrize("p", [101, WORD_PRIME, BIG_PRIME])
def test_residues_of_outputs_are_those_of_the_outputs(options, p):
    weights = random_weights(Architecture((3, 3, 3), 2, **options), QQ, 0)
    weights = random_symmetry(weights.architecture, QQ, 3).apply(weights)
    X = np.random.default_rng(0).integers(-9, 10, size=(3, 4))
    found = function_over(clear(weights), GF(p))(X)
    assert GF(p).equal(found, GF(p).convert(forward(weights, QQ.convert(X))))
    assert found.dtype == GF(p).zeros((1, 1)).dtype


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize("options", [{}, {"heads": 2, "value_width": 2, "residual": True}, {"causal": True}])
def test_balls_of_outputs_are_those_of_the_forward_pass(kind, options):
    weights = random_weights(Architecture((3, 3, 3), 2, kind=kind, **options), QQ, 0)
    weights = random_symmetry(weights.architecture, QQ, 3).apply(weights)
    X = QQ.convert(np.random.default_rng(0).integers(-9, 10, size=(3, 4))) / 100
    balls = Balls(256)
    found, expected = function_over(clear(weights), balls)(X), forward(weights.to(balls), balls.convert(X))
    assert balls.equal(found, expected)
    assert all(x.rad() < 1e-60 for x in (*found.ravel(), *expected.ravel()))


def test_weights_stay_inside_flint_when_softmax_networks_are_told_apart(monkeypatch):
    first, second = (random_weights(Architecture((3, 3, 3), 2, kind="softmax"), QQ, seed) for seed in (0, 1))
    monkeypatch.delattr(Weights, "to")
    assert compare(first, second).same_function is False


@pytest.mark.parametrize("kind", ["lightning", "softmax"])
@pytest.mark.parametrize(
    "widths, options",
    [((3, 2, 3), {}), ((3, 3, 3), {"heads": 2, "value_width": 2, "residual": True}), ((1, 1, 1), {"causal": True})],
)
def test_symmetries_are_found_in_both_directions_and_between_long_fractions(kind, widths, options):
    architecture = Architecture(widths, 1 if widths[0] == 1 else 2, kind=kind, **options)
    first = random_weights(architecture, QQ, 3)
    second, third = (random_symmetry(architecture, QQ, seed).apply(first) for seed in (1, 2))
    for one, two in ((first, second), (second, first), (second, third)):
        found = compare(one, two)
        assert found.is_proven and "symmetry" not in vars(found), "written out before it was asked for"
        assert found.symmetry.apply(one).equals(two)
        tensors = dict(two.tensors())
        for name in list(tensors)[-4:]:
            changed = tensors[name].copy()
            changed[0, 0] += fmpq(WORD_PRIME * BIG_PRIME)
            other = Weights.from_tensors(architecture, {**tensors, name: changed}, QQ)
            assert compare(one, other).same_function is False


def test_agreement_is_repeated_from_its_entropy_and_drawn_afresh_otherwise():
    weights = random_weights(Architecture((2, 2, 2), 1, residual=True), QQ, 0)
    one, two = (separate_exact(clear(weights), clear(weights)) for _ in range(2))
    assert isinstance(one, Agreement) and isinstance(two, Agreement)
    assert one.entropy != two.entropy and one.primes != two.primes
    assert separate_exact(clear(weights), clear(weights), one.entropy) == one


def test_networks_with_a_skew_layer_agree_modulo_recorded_primes():
    # (J, I, L) and (I, J, L) are one function, by an identity of 2×2 matrices that no theorem here contains.
    architecture = Architecture((2, 2, 2), 2, tokens=3)
    first, second = (
        weights_from_matrices(architecture, M, [QQ.eye(2)] * 2, QQ) for M in ([J, QQ.eye(2)], [QQ.eye(2), J])
    )
    found = compare(first, second)
    assert found.same_function is True and found.standing == "probabilistic"
    record = found.to_json()
    assert record["primes"] == list(found.primes) and record["entropy"] == str(found.entropy)
    assert all(2**59 < p < 2**61 for p in found.primes)


def deep(matrices, tokens, causal=False, last=LAST):
    architecture = Architecture((2,) * (len(matrices) + 1), 2, tokens=tokens, kind="softmax", causal=causal)
    V = [QQ.eye(2)] * (len(matrices) - 1) + [last]
    return weights_from_matrices(architecture, matrices, V, QQ)


A, B, ZERO = QQ.convert([[1, 2], [0, 1]]), QQ.convert([[0, 3], [1, 1]]), QQ.zeros((2, 2))
SOFTMAX_FIBERS = [
    # M, M', t, causal, same
    ([A, B], [A, A], 3, False, False),
    ([A, B], [B, B], 2, False, False),
    ([ZERO, A], [ZERO, B], 3, False, True),
    ([ZERO, A], [ZERO, B], 2, False, True),
    ([J, A], [J, B], 2, False, True),
    ([J, A], [J * 2, A], 2, False, False),
    ([J, A], [J, B], 3, False, False),
    ([A, J, A, B], [A, J, B, B], 2, False, True),
    ([A, J, A, B], [B, J, A, B], 2, False, False),
    ([A, B, A, B, A], [A, B, A, B, B], 3, False, False),
    ([ZERO, A], [ZERO, B], 3, True, False),
    ([ZERO, J * 2], [J, ZERO], 3, True, False),
    ([A, B], [A, A], 2, True, False),
    ([A, B], [B, A], 1, True, True),
]


@pytest.mark.parametrize(("M", "other", "tokens", "causal", "same"), SOFTMAX_FIBERS)
def test_fibers_of_deep_softmax_networks(M, other, tokens, causal, same):
    first, second = deep(M, tokens, causal), deep(other, tokens, causal)
    for pair in ((first, second), (second, first)):
        found = compare(*pair)
        assert found.same_function is same and found.is_proven
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2, tokens))
    outputs = [forward(Weights.from_vector(w.architecture, w.vector().astype(float), RR), X) for w in (first, second)]
    if same:
        assert np.allclose(*outputs)


def test_two_causal_tokens_do_not_tell_which_layer_is_zero():
    # s_2 = δᵀ(2J)(u + δ/2)/2 = δᵀJu: the functions of (0, 2J) and (J, 0) are equal, so the fiber is not a point.
    first, second = deep([ZERO, J * 2], 2, causal=True), deep([J, ZERO], 2, causal=True)
    assert compare_virtual(clear(first), clear(second)).same is None
    assert compare(first, second).same_function is None
    X = np.random.default_rng(0).standard_normal((20, 2, 2))
    outputs = [forward(Weights.from_vector(w.architecture, w.vector().astype(float), RR), X) for w in (first, second)]
    assert np.allclose(*outputs)


def test_zero_functions_of_softmax_networks_are_equal():
    first, second = deep([A, B], 3, last=ZERO), deep([B, A], 3, last=ZERO)
    assert compare(first, second).same_function is True
    assert compare(first, deep([A, B], 3)).same_function is False


def test_difference_that_no_evaluation_shows_is_a_theorem():
    # Layer 4 first shows at order 2 · 27 in the differences of the tokens, which are tiny here.
    tiny = QQ.convert([[1, 0], [0, 1]]) * fmpq(1, 10**200)
    first, second = deep([tiny, A, B, A], 3), deep([tiny, A, B, B], 3)
    found = compare(first, second)
    assert found.same_function is False and found.standing == "theorem"
    assert found.fiber.determined == ("L", "M_1", "M_2", "M_3", "M_4")


def heads_layer(heads, tokens, **options):
    architecture = Architecture((2, 2), 2, tokens=tokens, kind="softmax", heads=len(heads), value_width=2, **options)
    return Weights(architecture, QQ, (tuple(Head(a, QQ.eye(2), v, QQ.eye(2)) for a, v in heads),))


ONE, TWO = QQ.convert([[1, 0], [2, 1]]), QQ.convert([[0, 1], [1, 1]])
HEADS = [
    # equal A are added up
    ([(A, ONE), (A, TWO)], [(A, ONE + TWO), (B, ZERO)], 3, True),
    ([(A, ONE), (A, -ONE)], [(B, TWO), (B, -TWO)], 3, True),
    ([(A, ONE), (B, TWO)], [(B, TWO), (A, ONE)], 4, True),
    ([(A, ONE), (B, TWO)], [(A, TWO), (B, ONE)], 3, False),
    # two tokens: (A, V) = (−A, −V) + (0, 2V)
    ([(A, ONE), (ZERO, ZERO)], [(-A, -ONE), (ZERO, ONE * 2)], 2, True),
    ([(A, ONE), (ZERO, ZERO)], [(-A, -ONE), (ZERO, ONE * 2)], 3, False),
    ([(A, ONE), (-A, ONE)], [(B, ONE), (-B, ONE)], 2, True),
    ([(A, ONE), (-A, ONE)], [(B, ONE), (-B, ONE)], 3, False),
    ([(A, ONE), (B, TWO)], [(-A, ONE), (B, TWO)], 2, False),
    # one token sees ΣV
    ([(A, ONE), (B, TWO)], [(B, ONE + TWO), (A, ZERO)], 1, True),
]


@pytest.mark.parametrize(("heads", "other", "tokens", "same"), HEADS)
@pytest.mark.parametrize("options", [{}, {"residual": True}, {"causal": True}], ids=str)
def test_one_softmax_layer_of_heads_is_decided(heads, other, tokens, same, options):
    first, second = heads_layer(heads, tokens, **options), heads_layer(other, tokens, **options)
    found = compare(first, second)
    assert found.same_function is same and found.is_proven


@pytest.mark.parametrize("temperature", ["1/1000000", "1000000"])
def test_inputs_that_separate_suit_the_temperature(temperature):
    architecture = Architecture((2, 2), 1, tokens=3, kind="softmax", heads=2, temperature=temperature)
    first = random_weights(architecture, QQ, seed=0)
    head, other = first.layers[0]
    second = with_layers(first, [[Head(head.Q * 2, head.K, head.V, head.O), other]])
    found = compare(first, second)
    assert found.same_function is False and found.separation is not None


def test_known_primes_do_not_deceive():
    pairs = [pair for pair in exact_pairs(2 * len(EXACT), seed=5) if pair.name == "known primes"]
    assert len(pairs) == 2 and all(compare(pair.first, pair.second).same_function is False for pair in pairs)


def test_unread_directions_are_dropped():
    architecture = Architecture((2, 3, 2), 2)
    weights = random_weights(architecture, QQ, 1)
    layers = drop_unread(live_heads(weights), QQ)
    assert layers[1][0][0].shape == (3, 3)
    tensors = dict(weights.tensors())
    blind = change(weights, **{f"layers_1_{name}": tensors[f"layers.1.{name}"] * [1, 1, 0] for name in "QKV"})
    layers = drop_unread(live_heads(blind), QQ)
    assert layers[1][0][0].shape == (2, 2) and layers[0][0][1].shape == (2, 2)
    hidden = change(blind, layers_0_V=tensors["layers.0.V"] + QQ.convert([[0], [0], [1]]) * 7)
    assert layerwise_equality(blind, hidden) is not None
    assert compare(blind, hidden).same_function is True


@pytest.mark.parametrize("kind", ["lightning", "softmax"])
def test_values_of_low_rank_between_the_layers_are_no_obstacle(kind):
    architecture = Architecture((3, 3, 3), 2, heads=2, value_width=2, kind=kind)
    weights = random_weights(architecture, QQ, 0)
    layers = [list(heads) for heads in weights.layers]
    layers[0] = [
        Head(h.Q, h.K, h.V, QQ.matmul(QQ.convert([[1], [2], [0]]), QQ.convert([[1, i]])))
        for i, h in enumerate(layers[0])
    ]
    first = with_layers(weights, layers)
    second = random_symmetry(architecture, QQ, 3).apply(first)
    found = compare(first, second)
    assert found.same_function is True and found.is_proven


def test_form_of_a_layer_adds_up_equal_heads():
    form = layer_form([(A, ONE), (A, TWO), (B, ONE), (B, -ONE)], Softmax(), 3, QQ)
    assert list(form) == [tuple(A.ravel())] and QQ.equal(form[tuple(A.ravel())], ONE + TWO)


def deep_heads(change):
    """Two layers of two softmax heads, some tensors replaced."""
    weights = random_weights(Architecture((4, 4, 4), 2, heads=2, tokens=3, kind="softmax"), QQ, 1)
    tensors = dict(weights.tensors())
    change(tensors)
    return Weights.from_tensors(weights.architecture, tensors, QQ)


def last_heads_cancel(tensors):
    for letter in "KQV":
        tensors[f"layers.1.heads.1.{letter}"] = tensors[f"layers.1.heads.0.{letter}"]
    tensors["layers.1.heads.1.O"] = -tensors["layers.1.heads.0.O"]


def first_layer_takes_the_mean(tensors):
    for head in (0, 1):
        tensors[f"layers.0.heads.{head}.K"] = tensors[f"layers.0.heads.{head}.K"] * 0


@pytest.mark.parametrize(
    ("degenerate", "name", "same"),
    [
        (last_heads_cancel, "layers.0.heads.0.V", True),
        (first_layer_takes_the_mean, "layers.1.heads.0.K", True),
        (first_layer_takes_the_mean, "layers.1.heads.0.V", False),
    ],
)
def test_deep_softmax_heads_that_cancel_or_take_the_mean(degenerate, name, same):
    def other(tensors):
        degenerate(tensors)
        tensors[name] = tensors[name] + 1

    assert compare(deep_heads(degenerate), deep_heads(other)).same_function is same


def small_heads(rng, architecture):
    """One layer with entries −1, 0, 1, a third of them zero."""
    tensors = {name: QQ.convert(rng.integers(-1, 2, shape)) for name, shape in architecture.tensor_shapes()}
    return Weights.from_tensors(architecture, tensors, QQ)


def table(weights):
    """Σ_h (V_ni A_jm + V_nj A_im), by the definition: V x xᵀ A x_i of one head."""
    (heads,) = weights.layers
    parts = [np.multiply.outer(h.O.dot(h.V), h.K.T.dot(h.Q)) for h in heads]
    total = sum(parts)
    return tuple((total + total.transpose(0, 2, 1, 3)).ravel())


def test_small_layers_are_told_as_their_tables_say():
    """Groups of equal tables, the zero table among them: heads that cancel against heads that are zero."""
    architecture, rng = Architecture((2, 1), 1, heads=2, value_width=1), np.random.default_rng(34)
    groups = {}
    for weights in (small_heads(rng, architecture) for _ in range(2000)):
        groups.setdefault(table(weights), []).append(weights)
    zero = next(group for key, group in groups.items() if not any(key))
    cancelling, silent = ([x for x in zero if all(live_heads(x)) is told][:8] for told in (True, False))
    assert cancelling and silent
    pairs = [*product(cancelling, silent), *product(silent, cancelling)]
    pairs += [pair for group in groups.values() for pair in pairwise(group[:4])]
    for first, second in pairs:
        found = compare(first, second)
        assert found.same_function is True and found.is_proven
        assert verify(certify_comparison(first, second, found)).valid


@pytest.mark.parametrize("kind", ["lightning", "softmax", "sigmoid"])
def test_zero_functions_of_any_reason_are_one(kind):
    """Heads that cancel in the first layer or in the second one, values that are zero, (A, V), (−A, V), (0, −2V)."""
    architecture = Architecture((1, 1, 1), 1, heads=3, value_width=1, kind=kind, tokens=2)

    def network(*values_and_keys):
        tensors = {name: QQ.convert([[1]]) for name, _ in architecture.tensor_shapes()}
        for layer, (values, keys) in enumerate(values_and_keys):
            for h in range(3):
                tensors[f"layers.{layer}.heads.{h}.V"] = QQ.convert([[values[h]]])
                tensors[f"layers.{layer}.heads.{h}.K"] = QQ.convert([[keys[h]]])
        return Weights.from_tensors(architecture, tensors, QQ)

    live = ((1, 1, 1), (1, 2, 3))
    cancel = ((1, 1, -2), (1, -1, 0)) if kind != "lightning" else ((2, 1, -1), (1, -1, 1))
    networks = [network(cancel, live), network(live, cancel), network(live, ((0, 0, 0), (1, 1, 1)))]
    for first in networks:
        for second in networks:
            found = compare(first, second)
            assert found.same_function is True and found.is_proven
            assert verify(certify_comparison(first, second, found)).valid
    assert compare(networks[0], network(live, live)).same_function is False


@pytest.mark.parametrize("residual", [False, True])
def test_one_token_of_softmax_is_a_product_of_sums(residual):
    """Each head has another share of the same sum; then one value is another."""
    architecture = Architecture((2, 2, 2), 1, heads=2, value_width=2, kind="softmax", tokens=1, residual=residual)
    first, other = (dict(random_weights(architecture, QQ, seed).tensors()) for seed in (1, 2))
    for layer in (0, 1):
        values = sum(first[f"layers.{layer}.heads.{h}.O"].dot(first[f"layers.{layer}.heads.{h}.V"]) for h in (0, 1))
        moved = other[f"layers.{layer}.heads.0.O"].dot(other[f"layers.{layer}.heads.0.V"])
        other |= {f"layers.{layer}.heads.1.O": QQ.eye(2), f"layers.{layer}.heads.1.V": values - moved}
    one, two = (Weights.from_tensors(architecture, tensors, QQ) for tensors in (first, other))
    found = compare(one, two)
    assert found.same_function is True and verify(certify_comparison(one, two, found)).valid
    other["layers.1.heads.1.V"] = other["layers.1.heads.1.V"] + QQ.eye(2)
    three = Weights.from_tensors(architecture, other, QQ)
    found = compare(one, three)
    assert found.same_function is False and verify(certify_comparison(one, three, found)).valid
