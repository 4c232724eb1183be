"""More float pairs made to mislead: ties, scales far apart, unseen entries, one token, masks, temperatures, denormals.

The truth is as in :mod:`tests.comparison.adversary_floats`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom.exact import RR
from attngeom.network import Architecture, Head, Weights
from tests.comparison.adversary import Pair, random_architecture, with_layers
from tests.comparison.adversary_floats import TOLERANCE, Maker, draw_kind, float_weights, judged, move, noisy

Tensors = dict[str, np.ndarray]


def edited(weights: Weights, edit: Any) -> Weights:
    """The weights with every head's tensors replaced by edit(layer, head, tensors)."""
    layers = [
        [Head(**edit(index, place, dict(head.tensors))) for place, head in enumerate(heads)]
        for index, heads in enumerate(weights.layers)
    ]
    return with_layers(weights, layers)


def moved_or_changed(name: str, first: Weights, rng: np.random.Generator, decades: float = 1.0) -> Pair:
    """g · w, or g · w with one tensor changed by 1e-4 … 1 of its size."""
    second = move(first, rng, decades)
    if rng.integers(2):
        return Pair(name, first, noisy(second, TOLERANCE / 10, rng), True)
    tensors = dict(second.tensors())
    place = str(rng.choice(list(tensors)))
    tensors[place] = tensors[place] * (1 + 10.0 ** rng.uniform(-4, 0) * rng.standard_normal(tensors[place].shape))
    return judged(name, first, Weights.from_tensors(first.architecture, tensors, RR), rng)


def ties(rng: np.random.Generator) -> Pair:
    """Tensors with equal singular values: parts of orthogonal matrices, times powers of two."""
    weights = float_weights(random_architecture(rng, draw_kind(rng)), rng)

    def edit(layer: int, head: int, tensors: Tensors) -> Tensors:
        for name, a in tensors.items():
            n = max(a.shape)
            frame = np.eye(n)[rng.permutation(n)] if rng.integers(2) else np.linalg.qr(rng.standard_normal((n, n)))[0]
            tensors[name] = frame[: a.shape[0], : a.shape[1]] * 2.0 ** rng.integers(-2, 3)
        return tensors

    return moved_or_changed("ties", edited(weights, edit), rng)


def scales_apart(rng: np.random.Generator) -> Pair:
    """Layers and heads of sizes that differ by up to 1e60."""
    kind = draw_kind(rng)
    weights = float_weights(random_architecture(rng, kind), rng)
    most = 30 if kind == "lightning" else 3

    def edit(layer: int, head: int, tensors: Tensors) -> Tensors:
        return {name: a * 10.0 ** rng.uniform(-30, most) for name, a in tensors.items()}

    return moved_or_changed("scales apart", edited(weights, edit), rng)


def tiny_beside_skip(rng: np.random.Generator) -> Pair:
    """Layers that add 1e-3 … 1e-14 of the input."""
    weights = float_weights(random_architecture(rng, draw_kind(rng), residual=True), rng)
    size = 10.0 ** rng.uniform(-14, -3)
    small = edited(weights, lambda layer, head, tensors: tensors | {"V": tensors["V"] * size})
    return moved_or_changed("tiny beside a skip", small, rng)


def one_token(rng: np.random.Generator) -> Pair:
    kind = str(rng.choice(["lightning", "softmax", "sigmoid"]))
    return moved_or_changed("one token", float_weights(random_architecture(rng, kind, tokens=1), rng), rng)


def wide_attention(rng: np.random.Generator) -> Pair:
    """a > d: rows of Q that meet zero rows of K are not seen."""
    layers = int(rng.integers(1, 4))
    kind = draw_kind(rng)
    weights = float_weights(random_architecture(rng, kind, layers=layers, attention=[5] * layers), rng)

    def edit(layer: int, head: int, tensors: Tensors) -> Tensors:
        keep = np.ones((5, 1))
        keep[rng.integers(1, 5) :] = 0
        return tensors | {"K": tensors["K"] * keep}

    first = edited(weights, edit)

    def fill(layer: int, head: int, tensors: Tensors) -> Tensors:
        unseen = ~tensors["K"].any(axis=1, keepdims=True)
        return tensors | {"Q": np.where(unseen, rng.standard_normal(tensors["Q"].shape), tensors["Q"])}

    second = edited(first, fill)
    return Pair("wide attention", first, move(second, rng, 1) if rng.integers(2) else second, True)


def unseen_units(rng: np.random.Generator) -> Pair:
    """A hidden unit that is always zero: what the next layer reads of it is not seen. One entry differs, or all."""
    layers = int(rng.integers(2, 4))
    widths = [int(x) for x in rng.integers(2, 4, size=layers + 1)]
    weights = float_weights(random_architecture(rng, draw_kind(rng), layers=layers, widths=widths, residual=False), rng)

    def silence(layer: int, head: int, tensors: Tensors) -> Tensors:
        name = "O" if "O" in tensors else "V"
        rows = np.ones((len(tensors[name]), 1))
        rows[0] = 0.0 if layer == 0 else 1.0
        return tensors | {name: tensors[name] * rows}

    first = edited(weights, silence)
    only_one = bool(rng.integers(2))

    def disturb(layer: int, head: int, tensors: Tensors) -> Tensors:
        if layer == 1:
            for name in "Q" if only_one else "QKV":
                tensors[name] = tensors[name].copy()
                tensors[name][: 1 if only_one else None, 0] += 10.0 ** rng.uniform(-3, 6)
        return tensors

    second = edited(first, disturb)
    return Pair("unseen unit", first, move(second, rng, 1) if rng.integers(2) else second, True)


def copied_heads(rng: np.random.Generator) -> Pair:
    """Two heads with one A, of which only the sum of the value maps is seen."""
    kind, width, layers = draw_kind(rng), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    architecture = random_architecture(
        rng, kind, layers=layers, widths=[width] * (layers + 1), heads=2, value_width=width
    )
    pair = []
    weights = float_weights(architecture, rng)
    for _ in range(2):
        heads = []
        for one, _other in weights.layers:
            share = rng.standard_normal((width, width)) * 10.0 ** rng.uniform(-2, 2)
            total = one.O @ one.V
            heads.append([Head(one.Q, one.K, np.eye(width), share), Head(one.Q, one.K, np.eye(width), total - share)])
        pair.append(with_layers(weights, heads))
    return Pair("copied heads", pair[0], pair[1], True)


def permuted_heads(rng: np.random.Generator) -> Pair:
    """Heads in another order, two of them nearly equal."""
    heads = int(rng.integers(2, 5))
    architecture = random_architecture(rng, draw_kind(rng), heads=heads, value_width=2)
    weights = float_weights(architecture, rng)
    near = 10.0 ** rng.uniform(-6, 0)
    layers = []
    for row in weights.layers:
        twin = {name: a * (1 + near * rng.standard_normal(a.shape)) for name, a in row[0].tensors.items()}
        layers.append([row[0], Head(**twin), *row[2:]])
    first = with_layers(weights, layers)
    second = with_layers(first, [[row[k] for k in rng.permutation(heads)] for row in first.layers])
    return Pair("permuted heads", first, move(second, rng, 1) if rng.integers(2) else second, True)


def masked(rng: np.random.Generator) -> Pair:
    kind = str(rng.choice(["lightning", "softmax", "sigmoid"]))
    return moved_or_changed("causal", float_weights(random_architecture(rng, kind, causal=True), rng), rng)


def sigmoid(rng: np.random.Generator) -> Pair:
    return moved_or_changed("sigmoid", float_weights(random_architecture(rng, "sigmoid"), rng), rng)


def temperature(rng: np.random.Generator) -> Pair:
    """Softmax or sigmoid at temperature 1/1000 or 1000."""
    kind = str(rng.choice(["softmax", "sigmoid"]))
    drawn = random_architecture(rng, kind, temperature=str(rng.choice(["1/1000", "1000"])))
    return moved_or_changed("temperature", float_weights(drawn, rng), rng)


def denormal(rng: np.random.Generator) -> Pair:
    """Tensors at the lower end of the range of floats, moved by powers of two, or unrelated."""
    architecture = random_architecture(rng, draw_kind(rng), residual=False)
    size = 2.0 ** -float(rng.integers(960, 1000))

    def shrink(layer: int, head: int, tensors: Tensors) -> Tensors:
        return {name: a * size if name in "QO" else a for name, a in tensors.items()}

    first, other = (edited(float_weights(architecture, rng), shrink) for _ in range(2))
    if rng.integers(2):
        moved = edited(first, lambda layer, head, tensors: tensors | {"Q": tensors["Q"] * 8, "K": tensors["K"] / 8})
        return Pair("denormal", first, moved, True)
    return judged("denormal", first, other, rng)


def nearly_singular_gauge(rng: np.random.Generator) -> Pair:
    """g · w with gauges of condition 1e8 … 1e13, rounded once."""
    first = float_weights(random_architecture(rng, draw_kind(rng)), rng)
    return Pair("nearly singular gauge", first, move(first, rng, float(rng.uniform(8, 13))), True)


def deep_and_wide(rng: np.random.Generator) -> Pair:
    """Five to eight layers."""
    layers, width = int(rng.integers(5, 9)), int(rng.integers(2, 6))
    architecture = Architecture([width] * (layers + 1), int(rng.integers(1, width + 1)), kind=draw_kind(rng))
    return moved_or_changed("deep", float_weights(architecture, rng), rng)


EXTREMES: tuple[Maker, ...] = (
    ties,
    scales_apart,
    tiny_beside_skip,
    one_token,
    wide_attention,
    unseen_units,
    copied_heads,
    permuted_heads,
    masked,
    sigmoid,
    temperature,
    denormal,
    nearly_singular_gauge,
    deep_and_wide,
)
