"""True certificates that ``attngeom verify`` checks and the lone file leaves open: see docs/explanation/trust.md."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from attngeom.comparison import compare
from attngeom.comparison.certificate import certify_comparison
from attngeom.equations import Variety
from attngeom.equations.ideal.certificate import certify_complete
from attngeom.equations.ideal.completeness import complete_variety
from attngeom.exact.domains import QQ
from attngeom.heads.certificate import certify_uniqueness
from attngeom.heads.uniqueness import heads_unique
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights, random_symmetry, random_weights, weights_from_matrices
from tests.proofs.mutations import Record, seal

J = [[0, 1], [-1, 0]]


def virtual(M: list[Any], L: Any, **more: Any) -> Weights:
    """A network with these virtual weights: identities between its layers."""
    d, width = len(M[0]), len(L)
    architecture = Architecture((d,) * len(M) + (width,), d, **more)
    values = [QQ.eye(d)] * (len(M) - 1) + [QQ.convert(L)]
    return weights_from_matrices(architecture, list(map(QQ.convert, M)), values, QQ)


def layer_of(heads: list[tuple[Any, Any, Any]], **more: Any) -> Weights:
    """One layer of heads (A, o, w) on a plane, V = o wᵀ; or (A, O, W) with matrices."""
    width = np.atleast_2d(np.array(heads[0][2])).shape[0]
    rows = np.array(heads[0][1]).shape[0]
    architecture = Architecture((2, rows), 2, heads=len(heads), value_width=width, **more)
    tensors: dict[str, Any] = {}
    for h, (A, o, w) in enumerate(heads):
        own = {"Q": A, "K": [[1, 0], [0, 1]], "V": np.atleast_2d(np.array(w)), "O": np.array(o).reshape(rows, width)}
        tensors |= {f"layers.0.heads.{h}.{letter}": np.array(array).tolist() for letter, array in own.items()}
    return Weights.from_tensors(architecture, tensors, QQ)


def pairs() -> Iterator[tuple[Weights, Weights]]:
    """Two networks, for every argument: exchanges of F1, masks, one token, blind layers, heads that merge, inputs."""
    # F1 (b): M_1 = k qᵀ, M'_1 = k' qᵀ, v = k', v' = k, q_2 = (k'·y)², q'_2 = (k·y)².
    k, other, q = np.array([1, 2]), np.array([1, -1]), np.array([2, 1])
    exchanged = [(np.outer(a, q), np.outer(b, b), [b.tolist()]) for a, b in ((k, other), (other, k))]
    yield tuple(virtual([A, S], L) for A, S, L in exchanged)  # type: ignore[misc]
    # F1 (b): (y_1 + 3y_2) · y_1 (y_1 + y_2) = y_1 · (y_1 + 3y_2)(y_1 + y_2), the factors dealt out otherwise.
    yield virtual([np.outer(k, q), [[1, 1], [0, 0]]], [[1, 3]]), virtual([np.outer(k, q), [[1, 4], [0, 3]]], [[1, 0]])
    # Scales: c_1 = 2, c_2 = 1/2, c = 1/4 · … so that c Π c_i^(3^(l−i)) = 1.
    A, B, L = [[1, 2], [0, 3]], [[2, 1], [1, 1]], [[1, 1], [0, 2]]
    half = np.array(B, dtype=object) / QQ.convert([2])[0]
    yield virtual([A, B], L), virtual([np.array(A) * 2, half], QQ.convert(L) / QQ.convert([4])[0])
    yield virtual([A, B], L, causal=True), virtual([np.array(A) * 2, half], QQ.convert(L) / 4, causal=True)
    yield virtual([A, B], L, tokens=1), virtual([[[1, 1], [1, 3]], B], L, tokens=1)
    yield virtual([J, B], L, tokens=1), virtual([A, J], L, tokens=1)
    yield virtual([A, B], L, kind="softmax"), virtual([A, B], L, kind="softmax")
    yield virtual([J, B], L, kind="softmax", tokens=2), virtual([J, A], L, kind="softmax", tokens=2)
    yield (
        virtual([np.zeros((2, 2), int), B], L, kind="sigmoid"),
        virtual([np.zeros((2, 2), int), [[2, 3], [-1, 1]]], L, kind="sigmoid"),
    )
    for kind in ("lightning", "softmax", "sigmoid"):
        architecture = Architecture((2, 2, 3), 2, heads=2, value_width=1, kind=kind, causal=kind == "softmax")
        w = random_weights(architecture, QQ, seed=3)
        yield w, random_symmetry(architecture, QQ, seed=4).apply(w)
        yield w, random_weights(architecture, QQ, seed=5)
        # One head moved into the other.
        o, p = [[1], [0]], [[2], [1]]
        merged = layer_of([(A, o, [1, 1]), (A, p, [1, 1])], kind=kind, residual=True)
        yield merged, layer_of([(A, [[3], [1]], [1, 1]), (B, [[0], [0]], [1, 2])], kind=kind, residual=True)
        yield (
            layer_of([(A, o, [1, 1]), (B, p, [1, 1])], kind=kind),
            layer_of([(A, o, [1, 1]), (B, p, [1, 2])], kind=kind),
        )
    # Softmax over two tokens: (A, V), (B, V') up to signs with the same sum.
    signed = [(A, [[1], [0]], [1, 2]), (B, [[-1], [0]], [1, 2])]
    yield (
        layer_of(signed, kind="softmax", tokens=2),
        layer_of([(np.array(x) * -1, np.array(o) * -1, w) for x, o, w in signed], kind="softmax", tokens=2),
    )


@cache
def functions() -> list[Record]:
    """Comparisons: every argument, both answers."""
    records = []
    for first, second in pairs():
        records.append(certify_comparison(first, second, compare(first, second)).to_json())
        if not records[-1]["claim"]["same"] and first.architecture.num_layers == 1:
            records.append(seal(records[-1]["claim"], {"argument": "layers"}))
    assert {x["witness"]["argument"] for x in records} == {"symmetry", "virtual", "layers", "input"}
    return records


HEADS = {
    "H": random_weights(Architecture((4, 4), 2, heads=2), QQ, seed=0),
    "D": random_weights(Architecture((3, 2), 1, heads=3, value_width=1, kind="softmax"), QQ, seed=1),
    "S": random_weights(Architecture((2, 2), 2, heads=2, kind="sigmoid"), QQ, seed=2),
    "S, one token": random_weights(Architecture((2, 2), 2, heads=2, kind="sigmoid", tokens=1), QQ, seed=2),
    "one": random_weights(Architecture((3, 2), 1), QQ, seed=0),
    "D2": layer_of([([[1, 2], [3, 5]], [[1], [0]], [1, 0]), ([[2, 0], [1, 7]], [[0], [1]], [1, 1])],
                   kind="softmax", tokens=2),
    "D2, a head with A = 0": layer_of(
        [([[0, 0], [0, 0]], [[1], [0]], [1, 0]), ([[2, 0], [1, 7]], [[0], [1]], [0, 1])], kind="softmax", tokens=2
    ),
    "D2, A and −A": layer_of(
        [([[1, 2], [3, 5]], [[1], [0]], [1, 0]), ([[-1, -2], [-3, -5]], [[0], [1]], [0, 1])], kind="sigmoid"
    ),
}  # fmt: skip
NOT_UNIQUE = {
    "signs": layer_of([([[1, 2], [3, 5]], [[1], [0]], [1, 0]), ([[2, 0], [1, 7]], [[-1], [0]], [1, 0])],
                      kind="softmax", tokens=2),
    "signs that give two heads one A": layer_of(
        [([[1, 2], [3, 5]], [[1], [0]], [1, 0]), ([[-1, -2], [-3, -5]], [[0], [1]], [0, 1]),
         ([[2, 0], [1, 7]], [[0], [-1]], [0, 1])], kind="sigmoid"),
    "one A": layer_of([([[1, 2], [3, 5]], [[1], [0]], [1, 0]), ([[1, 2], [3, 5]], [[0], [1]], [1, 1])],
                      kind="softmax"),
    "no values": layer_of([([[1, 2], [3, 5]], [[0], [0]], [1, 0]), ([[2, 0], [1, 7]], [[0], [1]], [1, 1])],
                          kind="softmax"),
    "shared keys": layer_of([([[1, 2], [2, 4]], [[1], [0]], [1, 2]), ([[1, 0], [2, 0]], [[0], [1]], [1, 2])]),
}  # fmt: skip


@cache
def uniqueness() -> list[Record]:
    records = []
    for name, weights in (HEADS | NOT_UNIQUE).items():
        answer = heads_unique(weights)
        assert answer.verdict == ("unique" if name in HEADS else "not_unique"), (name, answer.reason)
        records.append(certify_uniqueness(weights, answer).to_json())
    assert {x["witness"].get("theorem") for x in records} == {"H", "D", "S", "one", None}
    return records


VARIETIES = (
    Variety(2, 1), Variety(3, 2), Variety(3, 3, targets=2), Variety(768, 64),
    Variety(2, 2, tokens=2), Variety(3, 1, tokens=3, causal=True), Variety(2, 1, tokens=2, d_out=2, residual=True),
    Variety(2, 1, d_out=2), Variety(2, 2, d_out=3), Variety(2, 2, tokens=4, d_out=2, causal=True),
    Variety(2, 1, d_out=3, heads=2, value_width=1), Variety(2, 1, tokens=3, d_out=2, heads=2, value_width=1),
    Variety(3, 1, tokens=1), Variety(3, 2, tokens=1),
)  # fmt: skip


@cache
def ideals() -> list[Record]:
    return [certify_complete(variety, complete_variety(variety)).to_json() for variety in VARIETIES]


@cache
def laws() -> list[Record]:
    """Learning coefficients for cross-entropy, vocabularies and samples."""
    rng = np.random.default_rng(8)
    head, two = Architecture((2, 3), 2, tokens=2), Architecture((2, 2, 2), 1, tokens=2)
    softmax = Architecture((2, 3), 1, tokens=3, kind="softmax")
    tokens = rng.integers(-3, 4, size=(2, 4))
    asked: list[tuple[Architecture, dict[str, Any]]] = [
        (head, {"loss": "cross-entropy"}),
        (head, {"vocabulary": tokens}),
        (head, {"vocabulary": tokens, "loss": "cross-entropy"}),
        (head, {"inputs": rng.integers(-3, 4, size=(9, 2, 2))}),
        (two, {"inputs": rng.integers(-3, 4, size=(9, 2, 2))}),
        (two, {"vocabulary": tokens, "loss": "cross-entropy"}),
        (head, {"vocabulary": [[1, 0], [0, 1]]}),
        (softmax, {"loss": "cross-entropy"}),
    ]
    records = []
    for architecture, law in asked:
        certificate = learning_coefficient(random_weights(architecture, QQ, seed=6), **law).certificate
        if certificate is not None:
            records.append(certificate.to_json())
    assert len(records) >= 6 and {x["witness"]["theorem"] for x in records} >= {"A1.2", "A2"}
    return records


@cache
def later() -> list[Record]:
    return [*functions(), *uniqueness(), *ideals(), *laws()]
