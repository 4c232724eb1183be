"""Kinds of attention and options beyond the papers: one table for the tests of all that is done with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom.exact.domains import Array
from attngeom.network import Head

CASES: list[tuple[str, dict[str, Any]]] = [
    ("lightning", {"bias": True}),
    ("softmax", {"bias": True}),
    ("sigmoid", {"bias": True}),
    ("lightning", {"alibi": "fixed"}),
    ("lightning", {"alibi": "learned"}),
    ("softmax", {"alibi": "fixed"}),
    ("lightning", {"rope": True}),
    ("softmax", {"rope": True}),
    ("softmax", {"bias": True, "rope": True}),
    ("lightning", {"window": 2}),
    ("lightning", {"memory": 1}),
    ("retnet", {}),
    ("retnet", {"decay": "learned"}),
    ("retnet", {"rope": True}),
    ("scalar_gate", {}),
    ("scalar_gate", {"gate": "biased"}),
    ("scalar_gate", {"gate": "mamba"}),
    ("ssd", {}),
    ("gla", {}),
    ("gla", {"bias": True}),
    ("deltanet", {}),
    ("deltanet", {"normalised_keys": True}),
    ("gated_deltanet", {}),
    ("gated_deltanet", {"gate": "mamba", "normalised_keys": True}),
    ("kda", {}),
    ("kda", {"bias": True}),
    ("kda", {"normalised_keys": True}),
    ("linear", {}),
    ("linear", {"feature": "square"}),
    ("linear", {"feature": "square", "unnormalised": True}),
    ("linear", {"feature": "silu", "unnormalised": True}),
    ("differential", {}),
    ("differential", {"rope": True}),
]


def label(case: tuple[str, dict[str, Any]]) -> str:
    kind, options = case
    return "-".join([kind, *(f"{name}={value}" for name, value in options.items())])


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def silu(z: Array) -> Array:
    return np.asarray(z * sigmoid(z))


def reference(kind: str, options: dict[str, Any], head: Head, X: Array, causal: bool, place: int = 0) -> Array:
    """One head written from the definitions of docs/theorems/modern.md, token by token, in floats."""
    t, own = X.shape[1], head.extra

    def read(letter: str, x: Array) -> Array:
        return np.asarray(head.tensors[letter] @ x + own.get(f"b{letter}", np.zeros((1, 1))).ravel())

    def oriented(letter: str, i: int) -> Array:
        y = read(letter, X[:, i])
        if options.get("normalised_keys"):
            y = y / np.linalg.norm(y)
        if options.get("rope"):
            planes = y.reshape(-1, 2)
            angle = 10000.0 ** (-2 * np.arange(len(planes)) / len(y)) * i
            turned = (planes[:, 0] + 1j * planes[:, 1]) * np.exp(1j * angle)
            y = np.stack([turned.real, turned.imag], axis=1).ravel()
        return np.asarray(y)

    if kind in ("lightning", "softmax", "sigmoid", "linear", "differential"):
        return _scored(kind, options, head, X, causal, place, read, oriented)
    state, outputs = np.zeros((len(head.V), len(head.K))), []
    for i in range(t):
        x, k, q, v = X[:, i], oriented("K", i), oriented("Q", i), read("V", X[:, i])
        T, write = np.eye(len(k)), 1.0
        if "w" in own:
            write = float(sigmoid(read("w", x))[0])
            T = T - write * np.outer(k, k)
        if "G" in own:
            T = np.diag(sigmoid(read("G", x))) @ T
        if kind == "retnet":
            T = T * (own["gamma"].item() if "gamma" in own else 1 - 2.0 ** (-5 - place))
        if "u" in own:
            line = (own["u"] @ x).item() + (own["c"].item() if "c" in own else 0.0)
            step = np.log1p(np.exp(line))
            T = T * (np.exp(-np.exp(own["eta"].item()) * step) if "eta" in own else sigmoid(line))
            write = step if kind == "ssd" else write
        state = state @ T + write * np.outer(v, k)
        outputs.append(state @ q)
    return np.stack(outputs, axis=1)


def _scored(
    kind: str, options: dict[str, Any], head: Head, X: Array, causal: bool, place: int, read: Any, oriented: Any
) -> Array:
    t = X.shape[1]
    features = {"square": np.square, "silu": silu}.get(options.get("feature", ""), lambda y: y)

    def sees(j: int, i: int) -> bool:
        memory = options.get("memory")
        if memory is not None and not (j < memory <= i):
            return False
        return not (causal and j > i) and abs(i - j) < options.get("window", t)

    def weights(i: int, mark: str) -> Array:
        shown = [j for j in range(t) if sees(j, i)]
        slope = {"fixed": 2.0 ** (-1 - place), "learned": 0.0, None: 0.0}[options.get("alibi")]
        slope = head.extra["m"].item() if "m" in head.extra else slope
        raw = [features(oriented("K" + mark, j)) @ features(oriented("Q" + mark, i)) - slope * (i - j) for j in shown]
        scores = np.array(raw)
        if kind in ("softmax", "differential"):
            scores = np.exp(scores)
        if kind == "sigmoid":
            scores = sigmoid(scores)
        if shown and (kind in ("softmax", "differential") or (kind == "linear" and not options.get("unnormalised"))):
            scores = scores / scores.sum()
        full = np.zeros(t)
        full[shown] = scores
        return full

    outputs = []
    for i in range(t):
        share = weights(i, "")
        if kind == "differential":
            share = share - head.extra["lambda"].item() * weights(i, "2")
        values = [read("V", X[:, j]) for j in range(t)]
        if options.get("feature") == "silu":
            values = [silu(v) for v in values]
        outputs.append(sum(p * v for p, v in zip(share, values)))
    return np.stack(outputs, axis=1)
