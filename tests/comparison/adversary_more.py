"""Float pairs made to mislead by structure: one output, one direction, one scale or one layer alone tells the truth.

The truth is as in :mod:`tests.comparison.adversary_floats`; differences by construction are at least 1e-5 of what they
change.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attngeom.exact import QQ, RR
from attngeom.network import Architecture, Head, Weights
from tests.comparison.adversary import Pair, random_architecture, with_layers
from tests.comparison.adversary_extremes import EXTREMES, Tensors, edited, moved_or_changed
from tests.comparison.adversary_floats import (
    CLEARLY,
    FLOATS,
    TOLERANCE,
    Maker,
    draw_kind,
    float_weights,
    judged,
    move,
    noisy,
)
from tests.comparison.adversary_heads import HEADS


def any_kind(rng: np.random.Generator) -> str:
    return str(rng.choice(["lightning", "softmax", "sigmoid"]))


def one_output(rng: np.random.Generator) -> Pair:
    """One output, up to 1e12 times smaller than the others, is off by 1e-7 … 1 of its size."""
    weights = float_weights(random_architecture(rng, any_kind(rng), residual=False), rng)
    last = weights.architecture.num_layers - 1
    size, change = 10.0 ** rng.uniform(-12, 0), 10.0 ** rng.uniform(-7, 0)

    def scale(factor: float) -> Weights:
        def edit(layer: int, head: int, tensors: Tensors) -> Tensors:
            name = "O" if "O" in tensors else "V"
            rows = np.ones((len(tensors[name]), 1))
            rows[0] = factor
            return tensors | ({name: tensors[name] * rows} if layer == last else {})

        return edited(weights, edit)

    return Pair(
        "one output", scale(size), move(scale(size * (1 + change)), rng, 1), False if change > CLEARLY else None
    )


def one_direction(rng: np.random.Generator) -> Pair:
    """A = x xᵀ against x xᵀ + ε y yᵀ: inputs along y of size ε^(-1/2) tell, to which the first network is blind."""
    width = int(rng.integers(2, 4))
    kind = str(rng.choice(["softmax", "sigmoid"]))
    architecture = Architecture((width,) * 2, width, kind=kind, tokens=int(rng.integers(2, 4)))
    weights = float_weights(architecture, rng)
    frame = np.linalg.qr(rng.standard_normal((width, width)))[0] if rng.integers(2) else np.eye(width)
    small = 10.0 ** rng.uniform(-7, -1)

    def with_scores(second: float) -> Weights:
        sizes = np.zeros(width)
        sizes[:2] = 1.0, second
        return edited(weights, lambda layer, head, tensors: tensors | {"Q": sizes[:, None] * frame, "K": frame})

    return Pair("one direction", with_scores(0.0), move(with_scores(small), rng, 1), False if small > CLEARLY else None)


def rank_deficient(rng: np.random.Generator) -> Pair:
    """Factors of lower rank than their size, exactly or up to rounding."""
    weights = float_weights(random_architecture(rng, any_kind(rng), attention=[3] * 3, layers=3), rng)

    def edit(layer: int, head: int, tensors: Tensors) -> Tensors:
        for name in rng.choice(list(tensors), size=2, replace=False):
            tensors[name] = np.outer(tensors[name][:, 0], tensors[name][0])
        return tensors

    return moved_or_changed("rank deficient", edited(weights, edit), rng)


def zero_middle(rng: np.random.Generator) -> Pair:
    """A layer that adds nothing beside a skip, or kills everything without one: its other weights are not seen."""
    residual = bool(rng.integers(2))
    width = int(rng.integers(1, 4))
    drawn = random_architecture(rng, any_kind(rng), layers=3, widths=[width] * 4, residual=residual)
    first, other = (float_weights(drawn, rng) for _ in range(2))

    def silence(layer: int, head: int, tensors: Tensors) -> Tensors:
        return tensors | ({"V": tensors["V"] * 0.0} if layer == 1 else {})

    second = edited(other, silence)
    if residual:
        second = with_layers(first, [list(first.layers[0]), list(second.layers[1]), list(first.layers[2])])
    return Pair("zero in the middle", edited(first, silence), move(second, rng, 1), True)


def of_single_precision(rng: np.random.Generator) -> Pair:
    """Weights of float32 moved along the orbit, or beside those that they were rounded from."""
    weights = float_weights(random_architecture(rng, any_kind(rng)), rng)
    rounded = Weights.from_vector(weights.architecture, weights.vector().astype(np.float32).astype(np.float64), RR)
    if rng.integers(2):
        return Pair("float32", rounded, move(rounded, rng, 2), True)
    return Pair("float32", rounded, weights, None)


def exact_beside_floats(rng: np.random.Generator) -> Pair:
    """Rational weights against floats."""
    pair = moved_or_changed("exact beside floats", float_weights(random_architecture(rng, any_kind(rng)), rng), rng)
    return Pair(pair.name, pair.first.to(QQ), pair.second, pair.same)


def equal_norms(rng: np.random.Generator) -> Pair:
    """Heads that are rotations of one: in another order they are the same, with their values exchanged they are not."""
    heads, width = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    architecture = random_architecture(
        rng, any_kind(rng), heads=heads, value_width=2, layers=2, widths=[width] * 3, attention=2
    )
    weights = float_weights(architecture, rng)
    layers = []
    for row in weights.layers:
        turns = [np.linalg.qr(rng.standard_normal((width, width)))[0] for _ in row]
        layers.append([Head(**{**row[0].tensors, "Q": row[0].Q @ turn, "V": row[0].V @ turn}) for turn in turns])
    first = with_layers(weights, layers)
    if rng.integers(2):
        second = with_layers(first, [[row[k] for k in rng.permutation(heads)] for row in first.layers])
        return Pair("equal norms", first, move(second, rng, 1), True)
    swapped = [[Head(**{**one.tensors, "V": two.V}) for one, two in zip(row, row[1:] + row[:1])] for row in layers]
    return judged("equal norms", first, with_layers(first, swapped), rng)


def cancelling(rng: np.random.Generator) -> Pair:
    """Two heads that cancel up to 1e-1 … 1e-6 of their size; what is left is moved, or doubled."""
    width, layers = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    architecture = random_architecture(
        rng, any_kind(rng), heads=2, value_width=width, layers=layers, widths=[width] * (layers + 1)
    )
    weights = float_weights(architecture, rng)
    left = 10.0 ** rng.uniform(-6, -1)

    def cancel(share: float) -> Weights:
        rows = [[row[0], Head(**{**row[0].tensors, "V": -(1 - share) * row[0].V})] for row in weights.layers]
        return with_layers(weights, rows)

    if rng.integers(2):
        return Pair("cancelling", cancel(left), move(cancel(left), rng, 1), True)
    return judged("cancelling", cancel(left), cancel(2 * left), rng)


def value_widths(rng: np.random.Generator) -> Pair:
    """Value maps through one coordinate, or through more than there are."""
    drawn = random_architecture(rng, any_kind(rng), heads=int(rng.integers(1, 4)), value_width=int(rng.choice([1, 5])))
    return moved_or_changed("value widths", float_weights(drawn, rng), rng)


def narrow_passage(rng: np.random.Generator) -> Pair:
    """Layer 1 shrinks one direction by up to 1e7, and only there the second layers differ."""
    width = int(rng.integers(2, 4))
    architecture = Architecture((width,) * 3, width, kind=draw_kind(rng), tokens=int(rng.integers(1, 4)))
    weights = float_weights(architecture, rng)
    sizes = np.ones(width)
    sizes[0] = 10.0 ** rng.uniform(-7, 0)
    change = 10.0 ** rng.uniform(-3, 1)

    def edit(factor: float) -> Weights:
        def within(layer: int, head: int, tensors: Tensors) -> Tensors:
            if layer == 0:
                return tensors | {"V": sizes[:, None] * tensors["V"]}
            columns = np.ones(width)
            columns[0] = factor
            return tensors | {name: tensors[name] * columns for name in "QKV"}

        return edited(weights, within)

    return judged("narrow passage", edit(1.0), move(edit(1.0 + change), rng, 1), rng)


def saturated_sigmoid(rng: np.random.Generator) -> Pair:
    """Sigmoid attention with scores of size 1e2 … 1e6."""
    weights = float_weights(random_architecture(rng, "sigmoid"), rng)
    size = 10.0 ** rng.uniform(2, 6)
    large = edited(weights, lambda layer, head, tensors: tensors | {"Q": tensors["Q"] * size})
    return moved_or_changed("saturated sigmoid", large, rng)


def mixed(rng: np.random.Generator) -> Pair:
    """Masks, skips, heads and temperatures between 1e-3 and 1e3 together."""
    kind = str(rng.choice(["softmax", "sigmoid"]))
    drawn = random_architecture(
        rng,
        kind,
        temperature=str(rng.choice(["1/300", "1/7", "3/2", "40"])),
        causal=bool(rng.integers(2)),
        residual=bool(rng.integers(2)),
    )
    return moved_or_changed("mixed", float_weights(drawn, rng), rng)


def deep_and_thin(rng: np.random.Generator) -> Pair:
    """Four to seven layers of width 1 or 2."""
    layers, width = int(rng.integers(4, 8)), int(rng.integers(1, 3))
    architecture = Architecture(
        (width,) * (layers + 1), width, kind=any_kind(rng), residual=bool(rng.integers(2)), tokens=2
    )
    return moved_or_changed("deep and thin", float_weights(architecture, rng), rng)


def wide(rng: np.random.Generator) -> Pair:
    """Widths 12 to 24 with errors of a tenth of the tolerance."""
    width, layers = int(rng.integers(12, 25)), int(rng.integers(1, 4))
    architecture = Architecture((width,) * (layers + 1), int(rng.integers(2, 9)), kind=any_kind(rng))
    first = float_weights(architecture, rng)
    return Pair("wide", first, noisy(move(first, rng, 1), TOLERANCE / 10, rng), True)


MORE: tuple[Maker, ...] = (
    one_output,
    one_direction,
    rank_deficient,
    zero_middle,
    of_single_precision,
    exact_beside_floats,
    equal_norms,
    cancelling,
    value_widths,
    narrow_passage,
    saturated_sigmoid,
    mixed,
    deep_and_thin,
    wide,
)


def all_float_pairs(count: int, seed: int) -> Iterator[Pair]:
    """Float pairs of all kinds, those of the four modules, in turn."""
    makers = (*FLOATS, *EXTREMES, *MORE, *HEADS)
    for index in range(count):
        with np.errstate(all="ignore"):
            pair = makers[index % len(makers)](np.random.default_rng([seed, index]))
        yield pair
