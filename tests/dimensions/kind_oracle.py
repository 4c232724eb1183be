"""The definitions of all kinds of attention once more, for complex weights: ranks by complex steps and an SVD.

Written from the recurrences and scores of docs/theorems/modern.md alone; only names of options and tensors are shared
with the package. Networks are drawn over all kinds, options, heads, skip connections, depths and small sizes.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from attngeom.network import Architecture

STEP = 1e-30
TAKES: dict[str, dict[str, tuple[Any, ...]]] = {
    kind: {"bias": (True,), "alibi": ("fixed", "learned"), "rope": (True,), "window": (1, 2), "memory": (1, 2)}
    for kind in ("lightning", "softmax", "sigmoid")
} | {
    "retnet": {"bias": (True,), "rope": (True,), "decay": ("fixed", "learned")},
    "scalar_gate": {"bias": (True,), "gate": ("sigmoid", "biased", "mamba")},
    "ssd": {"bias": (True,)},
    "gla": {"bias": (True,)},
    "deltanet": {"bias": (True,), "normalised_keys": (True,)},
    "gated_deltanet": {"bias": (True,), "normalised_keys": (True,), "gate": ("sigmoid", "biased", "mamba")},
    "kda": {"bias": (True,), "normalised_keys": (True,)},
    "linear": {"bias": (True,), "feature": ("square", "silu"), "unnormalised": (True,)},
    "differential": {"rope": (True,), "window": (1, 2)},
}


def draw_network(rng: Random, most: int) -> Architecture:
    """A random network of at most so many parameters, never one of the papers' kinds without options."""
    while True:
        kind = rng.choice(list(TAKES))
        options = {name: rng.choice(values) for name, values in TAKES[kind].items() if rng.random() < 0.4}
        layers, residual = rng.choice([1, 1, 2]), rng.random() < 0.4
        widths = [rng.randint(1, 3)] * (layers + 1) if residual else [rng.randint(1, 3) for _ in range(layers + 1)]
        heads, causal = rng.choice([1, 1, 2]), rng.random() < 0.4
        value_width = rng.choice([None, 1, 2]) if heads == 1 else rng.choice([1, 2])
        sizes = dict(attention=rng.randint(1, 4), tokens=rng.randint(1, 4), heads=heads, value_width=value_width)
        try:
            network = Architecture(widths, kind=kind, residual=residual, causal=causal, **sizes, **options)
        except ValueError:
            continue
        if network.num_parameters <= most and not network.is_plain:
            return network


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def evaluate(network: Architecture, tensors: dict[str, np.ndarray], X: np.ndarray) -> np.ndarray:
    """Outputs of shape (samples, d', t) at inputs (samples, d, t)."""
    for index in range(network.num_layers):
        total = X if network.residual else 0
        for place in range(network.heads):
            stem = f"layers.{index}.heads.{place}." if network.is_factored else f"layers.{index}."
            head = {name.removeprefix(stem): x for name, x in tensors.items() if name.startswith(stem)}
            Y = _head(network, head, X, place)
            total = total + (np.einsum("dv,nvt->ndt", head["O"], Y) if network.is_factored else Y)
        X = total + tensors.get(f"layers.{index}.bO", 0)
    return X


def _head(network: Architecture, head: dict[str, np.ndarray], X: np.ndarray, place: int) -> np.ndarray:
    options, t = network.options.to_json(), X.shape[2]

    def read(letter):
        return np.einsum("ad,ndt->nat", head[letter], X) + head.get(f"b{letter}", 0)

    def oriented(letter):
        y = read(letter)
        if "normalised_keys" in options:
            y = y / np.sqrt((y * y).sum(axis=1, keepdims=True))
        if "rope" in options:
            a = y.shape[1]
            angles = 10000.0 ** (-np.arange(0, a, 2) / a)[:, None] * np.arange(t)
            even, odd = y[:, 0::2], y[:, 1::2]
            y = np.empty_like(y)
            y[:, 0::2] = np.cos(angles) * even - np.sin(angles) * odd
            y[:, 1::2] = np.sin(angles) * even + np.cos(angles) * odd
        return y

    if network.kind in ("lightning", "softmax", "sigmoid", "linear", "differential"):
        return _scored(network, head, place, read, oriented, t)
    q, k, v = oriented("Q"), oriented("K"), read("V")
    S, outputs = 0, []
    for i in range(t):
        T, write = np.eye(q.shape[1])[None], np.ones(1)
        if "w" in head:
            write = sigmoid(read("w")[:, 0, i])
            T = T - write[:, None, None] * k[:, :, None, i] * k[:, None, :, i]
        if "G" in head:
            T = sigmoid(read("G")[:, :, i])[:, :, None] * T
        if network.kind == "retnet":
            T = T * (head["gamma"].item() if "gamma" in head else 1 - 2.0 ** (-5 - place))
        if "u" in head:
            line = read("u")[:, 0, i] + (head["c"].item() if "c" in head else 0)
            softplus = np.log(1 + np.exp(line))
            g = np.exp(-np.exp(head["eta"].item()) * softplus) if "eta" in head else sigmoid(line)
            T = T * g[:, None, None]
            write = softplus if network.kind == "ssd" else write
        new = write[:, None, None] * v[:, :, None, i] * k[:, None, :, i]
        S = new if i == 0 else S @ T + new
        outputs.append(np.einsum("nca,na->nc", S, q[:, :, i]))
    return np.stack(outputs, axis=2)


def _scored(network, head, place, read, oriented, t):
    options, kind = network.options.to_json(), network.kind
    phi = {"square": lambda y: y * y, "silu": lambda y: y * sigmoid(y)}.get(options.get("feature"), lambda y: y)
    j, i = np.arange(t)[:, None], np.arange(t)[None, :]
    seen = (np.abs(i - j) < options.get("window", t + 1)) & ((j <= i) | (not network.causal))
    if "memory" in options:
        seen &= (j < options["memory"]) & (i >= options["memory"])

    def shares(mark):
        s = np.einsum("naj,nai->nji", phi(oriented("K" + mark)), phi(oriented("Q" + mark)))
        slope = {"fixed": 2.0 ** (-1 - place)}.get(options.get("alibi"), 0)
        s = s - (head["m"].item() if "m" in head else slope) * (i - j)
        s = np.exp(s) if kind in ("softmax", "differential") else sigmoid(s) if kind == "sigmoid" else s
        s = s * seen
        if kind in ("softmax", "differential") or (kind == "linear" and "unnormalised" not in options):
            s = s / (s.sum(axis=1, keepdims=True) + ~seen.any(axis=0))
        return s

    P = shares("") - (head["lambda"].item() * shares("2") if kind == "differential" else 0)
    v = read("V")
    return np.einsum("ncj,nji->nci", v * sigmoid(v) if options.get("feature") == "silu" else v, P)


def measured_rank(network: Architecture, seed: int) -> int | None:
    """The rank of the derivative at random weights; None where singular values leave it open."""
    rng = np.random.default_rng(seed)
    shapes = dict(network.tensor_shapes())
    sizes = [rows * columns for rows, columns in shapes.values()]
    vector = rng.normal(size=sum(sizes))
    X = rng.normal(size=(3 * sum(sizes) + 5, network.widths[0], network.tokens))
    X = X * rng.choice([0.5, 1.0, 2.0], size=(len(X), 1, 1))
    columns = []
    with np.errstate(all="ignore"):
        for place in range(len(vector)):
            moved = vector.astype(complex)
            moved[place] += 1j * STEP
            parts = np.split(moved, np.cumsum(sizes)[:-1])
            tensors = {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
            columns.append(evaluate(network, tensors, X).imag.reshape(len(X), -1) / STEP)
    J = np.stack(columns, axis=2)
    # Samples with huge derivatives, near zeros of sums or norms, hide the others.
    scale = np.abs(J).max(axis=(1, 2))
    J = J[np.isfinite(scale) & (scale > 0)] / scale[np.isfinite(scale) & (scale > 0)][:, None, None]
    if not len(J):
        return 0
    values = np.linalg.svd(J.reshape(-1, J.shape[2]), compute_uv=False)
    rank = int(np.sum(values > 1e-9 * values[0]))
    gap = values[rank] if rank < len(values) else 0.0
    return rank if values[rank - 1] > 1e-7 * values[0] and gap < 1e-12 * values[0] else None
