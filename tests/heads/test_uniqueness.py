"""Uniqueness of heads: Theorem H against the commutant mod p, witnesses that are checked again, degenerate layers."""

import json
from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.exact import QQ, RR
from attngeom.heads import heads_unique
from attngeom.heads.factors import factor, find_homs, reduce_heads
from attngeom.heads.pencil import commutant, compress
from attngeom.layer.coefficients import layer_table, quadric_table
from attngeom.network import Architecture, Weights, forward, random_weights
from tests.heads.cases import change, head, layer


def coincidences(seed):
    """A random layer whose heads share some of the rows of V and K."""
    rng = np.random.default_rng(seed)
    heads = int(rng.integers(2, 4))
    a, v = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    weights = random_weights(Architecture((6, 6), a, heads=heads, value_width=v), QQ, seed)
    for letter in "VK":
        for index in range(1, heads):
            if rng.random() < 0.5:
                count = int(rng.integers(1, (v if letter == "V" else a) + 1))
                rows = head(weights, index, letter).copy()
                source = head(weights, 0, letter) if rng.random() < 0.7 else head(weights, 0, "VK"[letter == "V"])
                count = min(count, len(source))
                rows[:count] = source[:count]
                weights = change(weights, {f"{index}.{letter}": rows})
    return weights


@pytest.mark.parametrize("seed", range(12))
def test_homs_add_up_to_the_commutant(seed):
    weights = coincidences(seed)
    heads = reduce_heads(weights)
    expected = sum(find_homs(h, g, QQ).dimension for h in heads for g in heads)
    assert len(commutant(compress(layer_table(weights)).C)) == expected


@pytest.mark.parametrize("seed", range(12))
def test_verdicts_are_witnessed(seed):
    weights = coincidences(seed)
    found = heads_unique(weights)
    assert found.verdict in ("unique", "not_unique") and found.is_proven
    assert (found.commutant == len(reduce_heads(weights))) == (found.verdict == "unique")
    if found.verdict == "not_unique":
        other = found.witness
        X = QQ.convert(np.random.default_rng(seed).integers(-3, 4, size=(6, 3)))
        assert other.architecture == weights.architecture
        assert QQ.equal(forward(weights, X), forward(other, X))
        tables = [
            {str(quadric_table(A, V, QQ).tolist()) for A, V in zip(w.attention_matrices()[0], w.value_matrices()[0])}
            for w in (weights, other)
        ]
        assert tables[0] != tables[1]


SHARED = layer()
DEGENERATE = {
    "grouped queries": (change(SHARED, {"1.K": head(SHARED, 0, "K"), "1.V": head(SHARED, 0, "V")}), "not_unique"),
    "shared V only": (change(SHARED, {"1.V": head(SHARED, 0, "V")}), "unique"),
    "equal heads": (change(SHARED, {f"1.{x}": head(SHARED, 0, x) for x in "QKVO"}), "not_unique"),
    "zero head": (change(SHARED, {"1.O": head(SHARED, 1, "O") * 0}), "not_unique"),
    "zero layer": (change(SHARED, {"0.O": head(SHARED, 0, "O") * 0, "1.Q": head(SHARED, 1, "Q") * 0}), "not_unique"),
    "one head": (layer(heads=1, value=2), "unique"),
    "a and v differ": (layer(a=1, value=2), "unique"),
    "causal": (layer(causal=True), "unique"),
    "one token": (layer(tokens=1), "undecided"),
    "rank-deficient O": (change(SHARED, {"1.O": head(SHARED, 0, "O")}), "undecided"),
    "rank-deficient Q": (change(SHARED, {"1.Q": head(SHARED, 0, "Q")}), "undecided"),
    "V of lower rank": (change(SHARED, {"1.V": head(SHARED, 1, "V")[[0, 0]]}), "undecided"),
    "too many heads": (layer(a=4), "undecided"),
    "softmax": (layer(kind="softmax", tokens=3), "unique"),
    "softmax, grouped queries": (
        change(layer(kind="softmax", tokens=3), {"1.K": head(SHARED, 0, "K"), "1.V": head(SHARED, 0, "V")}),
        "unique",
    ),
    "softmax, equal A": (
        change(layer(kind="softmax", tokens=3), {"1.K": head(SHARED, 0, "K"), "1.Q": head(SHARED, 0, "Q")}),
        "not_unique",
    ),
    "softmax, V = 0 beside A = 0": (
        change(
            layer(kind="softmax", tokens=3), {"1.K": head(SHARED, 0, "K") * 0, "0.O": head(SHARED, 0, "O") * 0}
        ),
        "not_unique",
    ),
    "softmax, one token": (layer(kind="softmax", tokens=1), "not_unique"),
    "softmax, two tokens": (layer(kind="softmax", tokens=2), "unique"),
    "softmax, two tokens, values that cancel": (
        change(
            layer(kind="softmax", tokens=2), {"1.V": head(SHARED, 0, "V"), "1.O": -head(SHARED, 0, "O")}
        ),
        "not_unique",
    ),
    "sigmoid": (layer(kind="sigmoid"), "unique"),
    "sigmoid, one token": (layer(kind="sigmoid", tokens=1), "unique"),
    "sigmoid, equal A": (
        change(layer(kind="sigmoid"), {"1.K": head(SHARED, 0, "K"), "1.Q": head(SHARED, 0, "Q")}), "not_unique"
    ),
    "softmax, two tokens, A = 0": (
        change(layer(kind="softmax", tokens=2), {"1.K": head(SHARED, 1, "K") * 0}), "unique"
    ),
    "softmax, two tokens, opposite A": (
        change(layer(kind="softmax", tokens=2), {"1.K": head(SHARED, 0, "K"), "1.Q": -head(SHARED, 0, "Q")}), "unique"
    ),
    "softmax, two tokens, opposite A and equal V": (
        change(
            layer(kind="softmax", tokens=2),
            {**{f"1.{x}": head(SHARED, 0, x) for x in "KVO"}, "1.Q": -head(SHARED, 0, "Q")},
        ),
        "not_unique",
    ),
    "softmax, two tokens, A = 0 and V of any rank": (
        change(layer(kind="softmax", tokens=2, value=4), {"1.K": head(SHARED, 1, "K") * 0}), "not_unique"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_layers(name):
    weights, expected = DEGENERATE[name]
    found = heads_unique(weights)
    assert found.verdict == expected, found.reason
    assert json.dumps(found.to_json()) and str(found)
    assert (found.witness is not None) == (expected == "not_unique")


@pytest.mark.parametrize("name", ["grouped queries", "shared V only", "a and v differ", "rank-deficient O"])
def test_floats_agree_as_estimates(name):
    weights, expected = DEGENERATE[name]
    found = heads_unique(weights.to(RR))
    assert found.verdict == expected and not found.is_proven


def test_deep_networks_are_refused():
    with pytest.raises(InputError, match="one layer"):
        heads_unique(random_weights(Architecture((4, 4, 4), 2, heads=2), QQ, 0))


def test_huge_entries_are_exact():
    weights = change(SHARED, {"0.K": head(SHARED, 0, "K") * 10**400})
    assert heads_unique(weights).verdict == "unique"


VECTORS = [(0, 1), (1, 0), (1, 1), (1, -1)]
SMALL = [
    (scale, tuple(factor * x * y for x in o for y in w))
    for scale in (-2, -1, 0, 1, 2)
    for o in VECTORS
    for w in [*VECTORS, (1, 2)]
    for factor in (-2, -1, 1, 2)
]
"""Heads with A = scale · E, E of rank one, and V of rank one."""


def shown(*heads):
    """Σ V, and the sums of ±V over the heads with A = ±E, ±2E: what two tokens show of softmax heads."""
    signs = [[1, (a == 1) - (a == -1), (a == 2) - (a == -2)] for a, _ in heads]
    return tuple(sum(sign[n] * V[i] for sign, (_, V) in zip(signs, heads)) for n in range(3) for i in range(4))


@cache
def groups():
    """All pairs of small heads by their function."""
    found = defaultdict(set)
    for i, one in enumerate(SMALL):
        for two in SMALL[: i + 1]:
            found[shown(one, two)].add(frozenset(Counter((one, two)).items()))
    return found


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_unique_heads_are_alone_among_all_small_ones(kind):
    architecture = Architecture((2, 2), 1, tokens=2, kind=kind, heads=2, value_width=1)
    verdicts = {"unique": 0, "not_unique": 0}
    for i, j in np.random.default_rng(5).integers(0, len(SMALL), size=(300, 2)):
        tensors = {}
        for h, (a, V) in enumerate((SMALL[i], SMALL[j])):
            O, W, _ = factor(QQ.convert(np.reshape(V, (2, 2))), QQ)
            tensors |= {f"layers.0.heads.{h}.{x}": y for x, y in zip("KQVO", ([[1, 0]], [[a, 0]], W, O))}
        found = heads_unique(Weights.from_tensors(architecture, tensors, QQ))
        verdicts[found.verdict] += 1
        if found.verdict == "unique":
            assert len(groups()[shown(SMALL[i], SMALL[j])]) == 1, (SMALL[i], SMALL[j])
    assert min(verdicts.values()) > 40
