"""Alignment: the verdict, the witness, and the fallbacks outside the hypotheses of the theorems."""

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from attngeom.comparison import compare
from attngeom.comparison.matching import clear, match_rational, random_matrix
from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.exact.domains import PrimeField
from attngeom.network import (
    Architecture,
    Weights,
    forward,
    random_symmetry,
    random_unimodular_symmetry,
    random_weights,
    weights_from_matrices,
)
from attngeom.network.symmetry.element import symmetry_to_json
from attngeom.results import Failure
from tests.effort import examples
from tests.network.strategies import architectures
from tests.network.symmetry.reading import read_symmetry

BILLIONTH = fmpq(1, 10**9)


def perturbed(weights, place, amount=BILLIONTH):
    vector = weights.vector().copy()
    vector[place] += amount
    return Weights.from_vector(weights.architecture, vector, weights.domain)


IDENTIFIABLE = [
    Architecture((3, 2), 2),
    Architecture((4, 3, 3, 5), 2),
    Architecture((3, 3, 3), 2, causal=True),
    Architecture((3, 3, 3), 2, residual=True),
    Architecture((4, 4, 4), 2, heads=2),
    Architecture((4, 4, 4), 1, heads=3, value_width=2, residual=True, causal=True),
    Architecture((3, 2, 3), 2, kind="softmax"),
    Architecture((4, 4, 4), 2, heads=2, kind="softmax", residual=True),
    Architecture((2, 2, 2), 5),
    Architecture((3, 3), 2, value_width=4),
]


@pytest.mark.parametrize("architecture", IDENTIFIABLE, ids=str)
def test_exact_symmetry_is_found_and_carries_the_weights(architecture):
    first = random_weights(architecture, QQ, 0)
    second = random_symmetry(architecture, QQ, 50).apply(first)
    found = compare(first, second)
    assert found.same_function is True and found.is_proven
    assert found.symmetry is not None
    assert found.symmetry.apply(first).equals(second)


@pytest.mark.parametrize("architecture", IDENTIFIABLE, ids=str)
def test_one_entry_changed_by_a_billionth_is_separated(architecture):
    rng = np.random.default_rng(7)
    for seed in range(1):
        first = random_weights(architecture, QQ, seed)
        second = random_symmetry(architecture, QQ, seed + 50).apply(first)
        place = int(rng.integers(architecture.num_parameters))
        found = compare(first, perturbed(second, place), seed=seed)
        assert found.same_function is False and found.is_proven
        X = found.separation.X
        if found.separation.domain == QQ:
            outputs = forward(first, X), forward(perturbed(second, place), X)
            assert not QQ.equal(*outputs)
            assert all(QQ.equal(a, b) for a, b in zip(outputs, found.separation.outputs))


@pytest.mark.parametrize("architecture", IDENTIFIABLE, ids=str)
def test_unimodular_symmetry_is_found_and_a_changed_entry_is_separated(architecture):
    for seed in range(1):
        first = random_weights(architecture, QQ, seed)
        second = random_unimodular_symmetry(architecture, QQ, seed + 50).apply(first)
        found = compare(first, second, seed=seed)
        assert found.same_function is True and found.is_proven
        assert found.symmetry.apply(first).equals(second)
        found = compare(first, perturbed(second, seed), seed=seed)
        assert found.same_function is False and found.is_proven


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture((14, 10, 10, 12), (4, 10, 7)),
        Architecture((12, 12, 12), 6, heads=3, value_width=4, causal=True),
        Architecture((10, 10, 10, 10), 10, residual=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("draw", [random_symmetry, random_unimodular_symmetry])
def test_wide_networks_are_aligned_exactly(architecture, draw):
    first = random_weights(architecture, QQ, 0)
    second = draw(architecture, QQ, 1).apply(first)
    found = compare(first, second)
    assert found.same_function is True and found.is_proven
    assert found.symmetry.apply(first).equals(second)
    found = compare(first, perturbed(second, architecture.num_parameters // 2))
    assert found.same_function is False and found.is_proven


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_separating_input_of_many_tokens_is_complete(causal, residual):
    architecture = Architecture((3, 3, 3), 2, tokens=11, causal=causal, residual=residual)
    first, other = (random_weights(architecture, QQ, seed) for seed in (0, 1))
    separation = compare(first, other).separation
    assert separation.X.shape == (3, architecture.tokens)
    domain = separation.domain
    for weights, output in zip((first, other), separation.outputs):
        assert domain.equal(forward(weights.to(domain), domain.convert(separation.X)), output)


def with_tensors(weights, **changes):
    """The weights with some tensors replaced; names with underscores for dots."""
    changed = {name.replace("_", "."): QQ.convert(value) for name, value in changes.items()}
    return Weights.from_tensors(weights.architecture, dict(weights.tensors()) | changed, QQ)


DEFICIENT = {
    "keys of rank one": (
        Architecture((3, 3, 3), 2),
        {"layers_0_K": [[1, 2, 3], [2, 4, 6]]},
        True,
    ),
    "keys and queries of rank one": (
        Architecture((3, 3), 2),
        {"layers_0_K": [[1, 2, 3], [2, 4, 6]], "layers_0_Q": [[1, 1, 0], [3, 3, 0]]},
        True,
    ),
    "values of rank one in a factored head": (
        Architecture((3, 3, 3), 2, value_width=2, residual=True),
        {"layers_1_heads_0_V": [[1, 2, 3], [0, 0, 0]]},
        True,
    ),
    "two heads with one attention matrix": (
        Architecture((2, 2, 2), 1, heads=2, value_width=2),
        {f"layers_0_heads_{h}_{name}": [[1, 3]] for h in range(2) for name in "QK"},
        True,
    ),
    "first values of rank one": (
        Architecture((3, 3, 3), 3),
        {"layers_0_V": [[1, 2, 3], [2, 4, 6], [3, 6, 9]]},
        False,
    ),
    "attention zero": (
        Architecture((3, 3, 3), 3),
        {"layers_0_K": [[0] * 3] * 3},
        False,
    ),
}


@pytest.mark.parametrize("case", DEFICIENT, ids=str)
@pytest.mark.parametrize("draw", [random_symmetry, random_unimodular_symmetry])
def test_verdict_is_right_where_ranks_drop(case, draw):
    architecture, changes, has_symmetry = DEFICIENT[case]
    for seed in range(2):
        first = with_tensors(random_weights(architecture, QQ, seed), **changes)
        second = draw(architecture, QQ, seed + 50).apply(first)
        found = compare(first, second, seed=seed)
        assert found.same_function is True
        assert found.is_proven or found.error_probability < 1e-9
        assert (found.symmetry is not None) == has_symmetry
        if found.symmetry is not None:
            assert found.symmetry.apply(first).equals(second)


def test_completed_gauge_of_large_height_is_found():
    # a > d leaves a part of C free, and the denominators are longer than a machine word.
    architecture = Architecture((2, 2), 4)
    first = random_weights(architecture, QQ, 0)
    second = random_symmetry(architecture, QQ, 1).apply(first)
    tiny = fmpq(1, 10**40 + 1)
    scaled = with_tensors(
        second,
        layers_0_K=dict(second.tensors())["layers.0.K"] * tiny,
        layers_0_Q=dict(second.tensors())["layers.0.Q"] / tiny,
    )
    found = compare(first, scaled)
    assert found.same_function is True and found.is_proven
    assert found.symmetry.apply(first).equals(scaled)


@pytest.mark.parametrize("architecture", IDENTIFIABLE, ids=str)
def test_no_symmetry_is_claimed_after_a_change_of_any_entry(architecture):
    first = random_weights(architecture, QQ, 0)
    second = random_symmetry(architecture, QQ, 1).apply(first)
    for place in range(0, architecture.num_parameters, 3):
        changed = perturbed(second, place)
        found = match_rational(clear(first), clear(changed))
        assert isinstance(found, Failure) or found().apply(first).equals(changed)


@pytest.mark.parametrize("name", ["Q", "K"])
@pytest.mark.parametrize("attention", [2, 3])
def test_change_that_the_order_of_heads_does_not_show_is_found(name, attention):
    # Heads are told apart by A u for one u; here A changes, but A u does not.
    first = random_weights(Architecture((3, 3), attention), QQ, 0)
    second = random_symmetry(first.architecture, QQ, 1).apply(first)
    u = random_matrix(3, 1).to_array()
    head = second.layers[0][0]
    seen = u if name == "Q" else QQ.matmul(head.Q, u)
    hidden = QQ.zeros((len(seen), 1))
    hidden[0, 0], hidden[1, 0] = seen[1, 0], -seen[0, 0]
    ones = QQ.convert([[1]] * (attention if name == "Q" else 3))
    change = QQ.matmul(ones, hidden.T) if name == "Q" else QQ.matmul(hidden, ones.T)
    changed = with_tensors(second, **{f"layers_0_{name}": head.tensors[name] + change})
    A, moved = (weights.attention_matrices()[0][0] for weights in (second, changed))
    assert QQ.equal(QQ.matmul(A, u), QQ.matmul(moved, u)) and not QQ.equal(A, moved)
    assert isinstance(match_rational(clear(first), clear(changed)), Failure)
    assert compare(first, changed).same_function is False


def test_change_outside_the_solved_columns_is_found():
    # C is solved from K' R for a random 3×2 matrix R; here K' changes, but neither K' R nor A u does.
    first = random_weights(Architecture((3, 3), 2), QQ, 0)
    second = random_symmetry(first.architecture, QQ, 1).apply(first)
    head = second.layers[0][0]
    normal = QQ.convert(np.cross(*random_matrix(3, 2).to_array().T))
    seen = QQ.matmul(head.Q, random_matrix(3, 1).to_array())[:, 0]
    changed = with_tensors(second, layers_0_K=head.K + np.outer(QQ.convert([seen[1], -seen[0]]), normal))
    assert isinstance(match_rational(clear(first), clear(changed)), Failure)
    assert compare(first, changed).same_function is False


def test_singular_matrices_are_no_symmetry():
    one, other = [[1, 0]], [[1, 0], [0, 1]]
    singular = [[1, 0], [0, 0]]
    # C = diag(1, 0) satisfies all equations of the head, and D = diag(1, 0) those of both layers.
    heads = {"layers.0.K": other, "layers.0.Q": singular, "layers.0.V": other}
    moved_heads = {"layers.0.K": singular, "layers.0.Q": [[1, 0], [5, 7]], "layers.0.V": other}
    layers = {f"layers.0.{name}": other for name in "QKV"} | {f"layers.1.{name}": one for name in "QKV"}
    moved_layers = layers | {"layers.0.V": singular, "layers.1.K": [[1, 3]], "layers.1.Q": [[1, 5]]}
    for architecture, tensors, moved in (
        (Architecture((2, 2), 2), heads, moved_heads),
        (Architecture((2, 2, 1), (2, 1)), layers, moved_layers),
    ):
        first, second = (Weights.from_tensors(architecture, x, QQ) for x in (tensors, moved))
        assert isinstance(match_rational(clear(first), clear(second)), Failure)
        found = compare(first, second)
        assert found.same_function is True and found.is_proven and found.symmetry is None


def test_unrelated_weights_have_no_symmetry():
    architecture = Architecture((3, 3, 3), 2, heads=2, value_width=2)
    first, other = (random_weights(architecture, QQ, seed) for seed in (0, 1))
    found = match_rational(clear(first), clear(other))
    assert isinstance(found, Failure) and found.stage == "layer 0"


@examples(60)
@given(architecture=architectures(max_layers=3, max_width=3), seed=st.integers(0, 1000))
def test_exact_verdict_is_right_for_every_architecture(architecture, seed):
    first = random_weights(architecture, QQ, seed)
    second = random_symmetry(architecture, QQ, seed + 1).apply(first)
    found = compare(first, second)
    assert found.same_function is True
    assert found.is_proven or found.error_probability < 1e-9
    other = random_weights(architecture, QQ, seed + 5000)
    X = QQ.random((8, architecture.widths[0], architecture.tokens), np.random.default_rng(seed))
    if not QQ.equal(forward(first, X), forward(other, X)):
        assert compare(first, other).same_function is False


def test_two_point_fiber_of_one_layer_is_proven_equal():
    k, q, h, v = (QQ.convert(x) for x in ([1, 2, 0], [3, -1, 1], [1, 5], [0, 1, 1]))
    architecture = Architecture((3, 2), 2)
    first = weights_from_matrices(architecture, [np.outer(k, q)], [np.outer(h, v)], QQ)
    second = weights_from_matrices(architecture, [np.outer(v, q)], [np.outer(h, k)], QQ)
    found = compare(first, second)
    assert found.same_function is True and found.is_proven and found.symmetry is None
    assert any("Lemma 3.1" in text for text in found.failed_hypotheses)


def test_mixed_heads_are_proven_equal_with_their_mixing():
    architecture = Architecture((2, 2, 2), 2, heads=2, value_width=2)
    first = random_weights(architecture, QQ, 3)
    G = QQ.convert([[1, 2], [1, 3]])
    inverse = QQ.inverse(G).T
    tensors = {}
    for index, heads in enumerate(first.layers):
        A = [head.attention_matrix(QQ) for head in heads]
        W = [head.value_matrix(QQ) for head in heads]
        for h in range(2):
            name = f"layers.{index}.heads.{h}"
            tensors |= {f"{name}.K": QQ.eye(2), f"{name}.Q": A[0] * G[h, 0] + A[1] * G[h, 1]}
            tensors |= {f"{name}.V": W[0] * inverse[h, 0] + W[1] * inverse[h, 1], f"{name}.O": QQ.eye(2)}
    second = Weights.from_tensors(architecture, tensors, QQ)
    found = compare(first, second)
    assert found.same_function is True and found.is_proven and found.symmetry is None
    assert QQ.equal(found.mixings[0], G)


def test_widening_network_with_invisible_change_is_equal_through_virtual_weights():
    architecture = Architecture((2, 3, 2), 2)
    first = random_weights(architecture, QQ, 1)
    V1 = first.layers[0][0].V
    normal = QQ.convert(np.cross(*(np.array([int(x) for x in V1[:, j]]) for j in range(2))))
    tensors = dict(first.tensors())
    tensors["layers.1.V"] = tensors["layers.1.V"] + QQ.convert([[1], [4]]) * normal[None, :]
    second = Weights.from_tensors(architecture, tensors, QQ)
    found = compare(first, second)
    assert found.same_function is True and found.is_proven and found.symmetry is None
    assert "Eq 13" in found.reason


def test_one_token_sees_symmetric_parts_only():
    # One token: only the symmetric part of A is visible, so a skew change of A is invisible.
    architecture = Architecture((2, 2, 2), 2, tokens=1)
    first = random_weights(architecture, QQ, 2)
    A = [heads[0] for heads in first.attention_matrices()]
    V = [heads[0] for heads in first.value_matrices()]
    skew = QQ.convert([[0, 1], [-1, 0]])
    second = weights_from_matrices(architecture, [A[0] + skew, A[1] - skew * 3], V, QQ)
    found = compare(first, second)
    assert found.same_function is True and found.symmetry is None
    assert found.is_proven
    assert any("t ≥ 2" in text for text in found.failed_hypotheses)


def test_skew_first_layer_is_outside_the_hypotheses():
    # The counterexample to [G] Theorem 3.7 as printed: (M_1, M_2, L) = (J, I, L) and (I, J, L) are one function.
    architecture = Architecture((2, 2, 2), 2, tokens=3)
    J, identity = QQ.convert([[0, 1], [-1, 0]]), QQ.eye(2)
    V = [identity, QQ.convert([[1, 2], [3, 5]])]
    first = weights_from_matrices(architecture, [J, identity], V, QQ)
    second = weights_from_matrices(architecture, [identity, J], V, QQ)
    found = compare(first, second)
    assert found.same_function is True and found.symmetry is None
    assert any("M_1 not skew-symmetric" in text for text in found.failed_hypotheses)


def test_deep_networks_are_separated_by_residues():
    architecture = Architecture((3,) * 13, 3)
    first = random_weights(architecture, QQ, 0)
    second = random_symmetry(architecture, QQ, 1).apply(first)
    assert compare(first, second).same_function is True
    found = compare(first, perturbed(second, 5))
    assert found.same_function is False and isinstance(found.separation.domain, PrimeField)


def test_softmax_has_no_scale_symmetry():
    architecture = Architecture((2, 2), 2, kind="softmax")
    first = random_weights(architecture, QQ, 0)
    tensors = dict(first.tensors())
    tensors["layers.0.Q"], tensors["layers.0.V"] = tensors["layers.0.Q"] * 2, tensors["layers.0.V"] / 2
    found = compare(first, Weights.from_tensors(architecture, tensors, QQ))
    assert found.same_function is False and found.is_proven and found.separation.domain.name == "balls"


def test_symmetry_survives_json():
    architecture = Architecture((4, 4, 4), 2, heads=2)
    for domain in (QQ, RR):
        weights = random_weights(architecture, domain, 0)
        g = random_symmetry(architecture, domain, 1)
        assert read_symmetry(symmetry_to_json(g)).apply(weights).equals(g.apply(weights))


def test_different_architectures_are_refused():
    with pytest.raises(InputError, match="different architectures"):
        compare(random_weights(Architecture((2, 2), 1), QQ, 0), random_weights(Architecture((2, 2), 2), QQ, 0))


@pytest.mark.parametrize("domain", [QQ, RR], ids=str)
@pytest.mark.parametrize("kind", ["lightning", "softmax"])
def test_countable_work_is_counted(domain, kind):
    architecture = Architecture((2, 2, 2), 1, kind=kind, heads=2, value_width=1)
    one, two = (random_weights(architecture, domain, seed) for seed in (0, 1))
    steps = []
    compare(one, two, report=lambda what, done, total: steps.append((what, done, total)))
    counted = [(done, total) for _, done, total in steps if total is not None]
    assert all(0 <= done < total for done, total in counted)
    assert [done for done, _ in counted] == list(range(len(counted)))
    # One evaluation modulo a prime tells different rational networks apart at once.
    assert counted or (domain is QQ and kind == "lightning")
