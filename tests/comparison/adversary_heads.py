"""Float pairs in which a small head sits beside a large one that is silent at some tokens, and heads that hide others.

Truth: True by construction, with errors of at most a tenth of the tolerance; False if outputs, evaluated here by code
of its own at sparse tokens, unit vectors and multiples of one direction, differ by 1,000 times what errors of the
weights change them by (τ of each entry, and rounding errors); else None.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact import RR
from attngeom.network import Architecture, Head, Weights, random_weights
from tests.comparison.adversary import Pair, with_layers
from tests.comparison.adversary_floats import TOLERANCE, Maker, move, noisy, seed_of

CLEARLY = 1000.0
INPUTS, COPIES = 400, 6
Layers = list[list[dict[str, np.ndarray]]]


def outputs(weights: Weights, X: np.ndarray) -> np.ndarray:
    """What the layers add up to, by the definitions; beside a skip connection without the input."""
    shape, Y, total = weights.architecture, X, np.zeros_like(X)
    visible = np.triu(np.ones((X.shape[-1],) * 2, dtype=bool)) if shape.causal else np.ones((1, 1), dtype=bool)
    for heads in weights.layers:
        parts = []
        for head in heads:
            scores = np.swapaxes(head.K @ Y, 1, 2) @ (head.Q @ Y)
            if shape.kind == "sigmoid":
                shares = np.where(visible, 1 / (1 + np.exp(-np.clip(scores, -700, 700))), 0)
            elif shape.kind == "softmax":
                powers = np.exp(
                    np.where(visible, scores, -np.inf) - np.max(np.where(visible, scores, -np.inf), 1)[:, None]
                )
                shares = powers / powers.sum(axis=1, keepdims=True)
            else:
                shares = np.where(visible, scores, 0)
            values = head.V @ Y @ shares
            parts.append(values if head.O is None else head.O @ values)
        total = total + sum(parts) if shape.residual else sum(parts)
        Y = X + total if shape.residual else total
    return total


def telling_inputs(weights: Weights, rng: np.random.Generator) -> np.ndarray:
    """Dense and sparse tokens, unit vectors, multiples of one direction, of many sizes each."""
    d, t = weights.architecture.widths[0], weights.architecture.tokens
    X = rng.standard_normal((INPUTS, d, t))
    units = np.swapaxes(np.eye(d)[rng.integers(d, size=(INPUTS, t))], 1, 2) * rng.choice([-1, 1], (INPUTS, 1, t))
    kinds = (
        X,
        X * (rng.random(X.shape) < 0.5),
        units,
        np.where(rng.random((INPUTS, 1, t)) < 0.5, units, X),
        X[:, :, :1] + 0 * X,
    )
    X = np.choose(np.arange(INPUTS)[:, None, None] % len(kinds), kinds)
    return np.ldexp(X, rng.integers(-4, 9, size=(INPUTS, 1, 1)) + rng.integers(-6, 7, size=(INPUTS, 1, t)))


def with_errors(weights: Weights, rng: np.random.Generator) -> Weights:
    layers = []
    for heads in weights.layers:
        changed = []
        for head in heads:
            tensors = {}
            for name, a in head.tensors.items():
                beside = np.minimum(*(np.abs(a).max(axis=axis, keepdims=True) for axis in (0, 1)))
                own, other = rng.uniform(-1, 1, (2, *a.shape))
                tensors[name] = a * (1 + TOLERANCE * own) + np.where(a != 0, 2.0**-46 * beside * other, 0)
            changed.append(Head(**tensors))
        layers.append(changed)
    return with_layers(weights, layers)


def judged(name: str, first: Weights, second: Weights, rng: np.random.Generator) -> Pair:
    with np.errstate(all="ignore"):
        X = telling_inputs(first, rng)
        given = [outputs(weights, X) for weights in (first, second)]
        noise = np.zeros_like(given[0])
        for weights, output in zip((first, second), given):
            for _ in range(COPIES):
                near = X * (1 + 2.0**-45 * rng.uniform(-1, 1, X.shape))
                noise = np.maximum(noise, np.abs(outputs(with_errors(weights, rng), near) - output))
        difference = np.abs(given[0] - given[1])
        far = np.isfinite(noise) & (difference > CLEARLY * noise) & (np.maximum(*map(np.abs, given)) > 1e-250)
    return Pair(name, first, second, False if np.any(far) else None)


def draw(rng: np.random.Generator, **fixed: object) -> tuple[Weights, Layers]:
    """Random weights of several heads, dyadic ones or not, and their tensors to change."""
    layers, residual = int(rng.integers(1, 4)), bool(rng.integers(3) == 0)
    widths = [int(rng.integers(2, 4))] * (layers + 1) if residual else rng.integers(1, 4, layers + 1).tolist()
    chosen: dict[str, object] = {
        "tokens": int(rng.choice([2, 2, 3, 4])),
        "kind": str(rng.choice(["lightning", "softmax", "sigmoid"])),
        "heads": int(rng.choice([2, 2, 3])),
        "value_width": int(rng.integers(1, 4)),
        "causal": bool(rng.integers(3) == 0),
    } | fixed
    architecture = Architecture(widths, rng.integers(1, 4, layers).tolist(), residual=residual, **chosen)
    weights = random_weights(architecture, RR, seed_of(rng))
    if rng.integers(2):
        weights = Weights.from_vector(architecture, np.rint(4 * weights.vector()) / 4, RR)
    return weights, [
        [{name: a.copy() for name, a in head.tensors.items()} for head in heads] for heads in weights.layers
    ]


def build(weights: Weights, layers: Layers) -> Weights:
    return with_layers(weights, [[Head(**head) for head in heads] for heads in layers])


def moved(weights: Weights, rng: np.random.Generator) -> Weights:
    return move(weights, rng, float(rng.choice([0, 1, 3]))) if rng.integers(3) else weights


def silence(head: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Zeros that make a head silent at some tokens, or scores that are saturated off."""
    fate = int(rng.integers(5))
    if fate in (0, 3):
        head["V"][:, rng.integers(head["V"].shape[1])] = 0
    if fate == 1:
        head["O"][rng.integers(len(head["O"]))] = 0
    if fate == 2:
        head["V"][rng.integers(len(head["V"])), rng.integers(head["V"].shape[1])] = 0
        head["Q"][:, 0] = 0
    if fate == 3:
        head["Q"] *= 8
    if fate == 4:
        head["Q"] = -4 * head["K"]


def with_small_head(rng: np.random.Generator) -> tuple[Weights, Layers, dict[str, np.ndarray]]:
    weights, layers = draw(rng)
    heads = layers[int(rng.integers(len(layers)))]
    heads[-1]["O"] *= 2.0 ** -int(rng.integers(10, 60))
    for head in heads[:-1]:
        silence(head, rng)
    return weights, layers, heads[-1]


def small_head(rng: np.random.Generator) -> Pair:
    """A head 1e-3 … 1e-18 times as large as the one beside it: other signs, twice as large, or other scores."""
    weights, layers, head = with_small_head(rng)
    first = build(weights, layers)
    name, factor = [("O", -1.0), ("O", 2.0), ("Q", 1.5), ("V", -1.0)][int(rng.integers(4))]
    head[name] = head[name] * factor
    return judged("small head", first, moved(build(weights, layers), rng), rng)


def small_head_moved(rng: np.random.Generator) -> Pair:
    weights, layers, _ = with_small_head(rng)
    first = build(weights, layers)
    return Pair("small head, moved", first, noisy(moved(first, rng), TOLERANCE / 10 * int(rng.integers(2)), rng), True)


def sparse(rng: np.random.Generator) -> Pair:
    """Zeros and rows of many sizes; moved, or one entry with another sign."""
    weights, layers = draw(rng)
    for heads in layers:
        for head in heads:
            for name, a in head.items():
                sizes = 2.0 ** rng.integers(-40, 10, size=(len(a), 1)) if rng.integers(4) == 0 else 1.0
                head[name] = a * (rng.random(a.shape) < 0.7) * sizes
    first = build(weights, layers)
    if rng.integers(2):
        return Pair("sparse, moved", first, noisy(moved(first, rng), TOLERANCE / 10 * int(rng.integers(2)), rng), True)
    head = layers[int(rng.integers(len(layers)))][int(rng.integers(len(layers[0])))]
    name = str(rng.choice(list(head)))
    place = tuple(int(rng.integers(n)) for n in head[name].shape)
    head[name][place] = -head[name][place] or 2.0 ** -int(rng.integers(0, 40))
    return judged("sparse, one entry", first, moved(build(weights, layers), rng), rng)


def signs(rng: np.random.Generator) -> Pair:
    """(A, V) → (−A, −V) for two heads with V_1 + V_2 = 0, which two tokens do not see; or for one head alone."""
    weights, layers = draw(rng, tokens=2, kind=str(rng.choice(["softmax", "sigmoid"])))
    for heads in layers:
        heads[1] |= {"V": heads[0]["V"].copy(), "O": -heads[0]["O"]}
    first, both = build(weights, layers), bool(rng.integers(2))
    for heads in layers:
        for head in heads[: 2 if both else 1]:
            head |= {"Q": -head["Q"], "V": -head["V"]}
    second = moved(build(weights, layers), rng)
    return Pair("signs of two heads", first, second, True) if both else judged("sign of one head", first, second, rng)


def shared_scores(rng: np.random.Generator) -> Pair:
    """Two heads with one A and one O, the values distributed in two ways; or with a quarter more."""
    weights, layers = draw(rng, heads=3)
    for heads in layers:
        heads[1] |= {name: heads[0][name].copy() for name in "QKO"}
    first, is_same = build(weights, layers), bool(rng.integers(2))
    for heads in layers:
        part = rng.integers(-4, 5, size=heads[0]["V"].shape) / 2
        heads[0]["V"], heads[1]["V"] = heads[0]["V"] - part, heads[1]["V"] + part
    if is_same:
        return Pair("shared scores", first, moved(build(weights, layers), rng), True)
    layers[0][0]["V"] *= 1.25
    return judged("shared scores, changed", first, moved(build(weights, layers), rng), rng)


HEADS: tuple[Maker, ...] = (small_head, small_head_moved, sparse, signs, shared_scores)
