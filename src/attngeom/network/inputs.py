"""Inputs that tell networks apart: sizes at which layers are neither flat nor saturated, and how many tokens."""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array
from attngeom.exact.numbers import near_exponents
from attngeom.limits.memory import SAMPLE_TOKENS
from attngeom.limits.rounding import INPUT_EXPONENTS, SCORES_FLAT, SCORES_SATURATED
from attngeom.limits.trials import (
    ALL_SIZES,
    SIZE_MARGIN,
    SIZES_BEYOND,
    SIZES_MEASURED,
    TRIED_SIZES,
)
from attngeom.network.architecture import Architecture
from attngeom.network.layer import forward_layer
from attngeom.network.weights import Weights

LayerExponents = tuple[list[int], int]
"""Of one layer about log2 of the scores of each head that is not zero, at inputs of size 1, and of ΣV."""


def natural_sizes(first: Weights, second: Weights) -> Array:
    """Exponents e such that inputs of size 2^e give scores of size 1 in some layer, if no layer mixes tokens."""
    if first.architecture.is_homogeneous:
        return np.zeros(1, dtype=np.int64)
    sizes = sizes_of_scores(first.architecture, [_layer_exponents(weights) for weights in (first, second)])
    return thinned(sorted({*np.clip(sizes, -INPUT_EXPONENTS, INPUT_EXPONENTS)}) or [0], TRIED_SIZES)


def sizes_of_scores(architecture: Architecture, networks: list[list[LayerExponents]]) -> list[int]:
    """The exponents e, increasing, for which the scores of some head are of size 1 at inputs of size 2^e."""
    sizes: set[int] = set()
    temperature = float(np.log2(float(architecture.temperature)))
    for layers in networks:
        gain = 0
        for scores, values in layers:
            sizes |= {-round((exponent - temperature) / 2) - gain for exponent in scores}
            gain += 0 if architecture.residual else values
    return sorted(sizes)


def _layer_exponents(weights: Weights) -> list[LayerExponents]:
    exponents = []
    for heads, V in zip(weights.layers, weights.value_matrices()):
        # Softmax: scores of size 1. Where A has a scale that V takes back: as much is added as there was.
        parts = [[h.Q, h.K, v] if weights.architecture.rule.has_scale else [h.Q, h.K] for h, v in zip(heads, V)]
        scores = [sum(map(_exponent, head)) for head in parts if all(part.any() for part in head)]
        total = sum(V[1:], V[0])
        exponents.append((scores, _exponent(total) if total.any() else 0))
    return exponents


def _exponent(a: Array) -> int:
    """About log2 of the size of a matrix, 0 beyond the range of floats."""
    return int(near_exponents(np.max(np.abs(a)) * np.sqrt(max(a.shape))))


def thinned(ordered: list[int], most: int) -> Array:
    """At most so many of the numbers, the ends among them."""
    chosen = np.linspace(0, len(ordered) - 1, min(len(ordered), most)).round().astype(int)
    return np.asarray(np.array(ordered, dtype=np.int64)[chosen])


def telling_sizes(first: Weights, second: Weights, seed: int, tried: int = SIZES_MEASURED) -> Array:
    """The natural sizes, and for deep networks all at which some layer is seen to be neither flat nor saturated.

    Attention makes tokens alike: a layer is often flat at its natural size, and saturated at sizes between that of
    another layer and its own. At most ``tried`` sizes are tried.
    """
    natural = natural_sizes(first, second)
    if first.architecture.is_homogeneous or first.architecture.num_layers == 1:
        return natural
    # A layer hides the next one but for inputs at which its own attention is about to be saturated.
    chosen = {*natural.tolist(), *(natural[-1] + np.arange(1, SIZES_BEYOND + 1)).tolist()}
    low, high = int(natural[0]) - SIZE_MARGIN, int(natural[-1]) + 2 * SIZE_MARGIN
    sizes = np.arange(low, high + 1, -(-(high + 1 - low) // min(tried, SIZES_MEASURED)))
    for weights in (first, second):
        chosen |= set(sizes[_attention_changes(weights, sizes, seed)].tolist())
    return thinned(sorted(chosen), ALL_SIZES)


def _attention_changes(weights: Weights, sizes: Array, seed: int) -> Array:
    """For each size whether scores of some head of some layer differ by a moderate amount at a random input."""
    architecture = weights.architecture
    X = np.random.default_rng(seed).standard_normal((architecture.widths[0], telling_tokens(architecture)))
    Y = np.ldexp(X, sizes[:, None, None])
    changes = np.zeros(len(sizes), dtype=bool)
    for index, heads in enumerate(weights.layers):
        for head in heads:
            scores = swap(head.K @ Y) @ (head.Q @ Y) / float(architecture.temperature)
            # The scores of one token differ, and where they are not normalised they differ from 0.
            size = np.max(np.abs(scores - architecture.rule.reference_scores(scores)), axis=(-2, -1))
            if architecture.rule.has_scale:
                size = size * np.max(np.abs(head.value_matrix(RR)))
            changes |= (size > SCORES_FLAT) & (size < SCORES_SATURATED)
        Y = forward_layer(weights, index, Y)
    return changes


def telling_tokens(architecture: Architecture, most: int = SAMPLE_TOKENS) -> int:
    """A number s of tokens such that networks that differ at s tokens differ at t, small where there is such a one.

    What the kind of attention says of it, for softmax if t has a divisor from 3 to ``most``.

    >>> [telling_tokens(Architecture((2, 2), 1, tokens=t, kind="softmax")) for t in (5, 67, 1024)]
    [5, 67, 64]
    """
    return architecture.rule.telling_tokens(architecture.tokens, most)


def with_all_tokens(architecture: Architecture, X: Array) -> Array:
    """An input or output at telling tokens as one at t tokens; with a mask the later tokens are left out."""
    return architecture.rule.with_all_tokens(X, architecture.tokens)
