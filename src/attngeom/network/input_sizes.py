"""Sizes of inputs at which the layers of a network are neither flat nor saturated, as exponents of two."""

from __future__ import annotations

import numpy as np

from attngeom.exact.domains import RR, Array
from attngeom.network.attention.rule import swap
from attngeom.network.forward import forward_layer
from attngeom.network.weights import Weights

BEYOND = 5
MAX_NATURAL, MAX_SIZES, MAX_TRIED = 8, 36, 128
WIDEST = 600
MARGIN = 8
FLAT, SATURATED = 2.0**-7, 2.0**6
"""Scores that differ by less hardly change attention, and where they differ by more one token is all that counts."""


def natural_sizes(first: Weights, second: Weights) -> Array:
    """Exponents e such that inputs of size 2^e give scores of size 1 in some layer, if no layer mixes tokens."""
    architecture = first.architecture
    if architecture.is_homogeneous:
        return np.zeros(1, dtype=np.int64)
    found: set[int] = set()
    temperature = float(architecture.temperature)
    for weights in (first, second):
        gain = 0
        for heads, V in zip(weights.layers, weights.value_matrices()):
            for head, v in zip(heads, V):
                # Softmax: scores of size 1. Lightning beside a skip: as much is added as there was.
                parts = [head.Q, head.K, v] if architecture.rule.is_polynomial else [head.Q, head.K]
                if all(part.any() for part in parts):
                    scores = sum(_exponent(part) for part in parts) - np.log2(temperature)
                    found.add(-round(scores / 2) - gain)
            total = sum(V[1:], V[0])
            if not architecture.residual and total.any():
                gain += _exponent(total)
    return _thinned(sorted(np.clip(list(found), -WIDEST, WIDEST)) or [0], MAX_NATURAL)


def _exponent(a: Array) -> int:
    """About log2 of the size of a matrix, 0 beyond the range of floats."""
    return int(np.frexp(np.max(np.abs(a)) * np.sqrt(max(a.shape)))[1])


def _thinned(ordered: list[int], most: int) -> Array:
    chosen = np.linspace(0, len(ordered) - 1, min(len(ordered), most)).round().astype(int)
    return np.asarray(np.array(ordered, dtype=np.int64)[chosen])


def telling_sizes(first: Weights, second: Weights, seed: int, tried: int = MAX_TRIED) -> Array:
    """The natural sizes, and for deep networks all at which some layer is seen to be neither flat nor saturated.

    Attention makes tokens alike: a layer is often flat at its natural size, and saturated at sizes between that of
    another layer and its own. At most ``tried`` sizes are tried.
    """
    natural = natural_sizes(first, second)
    if first.architecture.is_homogeneous or first.architecture.num_layers == 1:
        return natural
    # A layer hides the next one but for inputs at which its own attention is about to be saturated.
    found = {*natural.tolist(), *(natural[-1] + np.arange(1, BEYOND + 1)).tolist()}
    low, high = int(natural[0]) - MARGIN, int(natural[-1]) + 2 * MARGIN
    sizes = np.arange(low, high + 1, -(-(high + 1 - low) // min(tried, MAX_TRIED)))
    for weights in (first, second):
        found |= set(sizes[_is_lively(weights, sizes, seed)].tolist())
    return _thinned(sorted(found), MAX_SIZES)


def _is_lively(weights: Weights, sizes: Array, seed: int) -> Array:
    """For each size whether scores of some head of some layer differ by a moderate amount at a random input."""
    architecture = weights.architecture
    X = np.random.default_rng(seed).standard_normal((architecture.widths[0], architecture.tokens))
    Y = np.ldexp(X, sizes[:, None, None])
    found = np.zeros(len(sizes), dtype=bool)
    for index, heads in enumerate(weights.layers):
        for head in heads:
            scores = swap(head.K @ Y) @ (head.Q @ Y) / float(architecture.temperature)
            # The scores of one token differ, and where they are not normalised they differ from 0.
            base = scores.min(axis=-2, keepdims=True) if architecture.rule.is_normalised else 0.0
            size = np.max(np.abs(scores - base), axis=(-2, -1))
            if architecture.rule.is_polynomial:
                size = size * np.max(np.abs(head.value_matrix(RR)))
            found |= (size > FLAT) & (size < SATURATED)
        Y = forward_layer(weights, index, Y)
    return found
