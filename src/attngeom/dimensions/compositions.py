"""Upper bounds for compositions of lightning layers: parts of a network as polynomial maps of bounded degree.

Layers i+1..j are a map X ↦ Φ(X Xᵀ) X with Φ of degree (3^(j−i) − 1)/2 (no mask, no skip connection), forms of degree
3^(j−i) where all tokens are parallel. A composition of two parts has at most the sum of their dimensions, less s² if
the outputs of the first span the s dimensions between them; see docs/theorems/dimension.md, Lemma U.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb

import numpy as np

from attngeom.dimensions.effective import EffectiveLayer, bounded_rank
from attngeom.exact.domains import GF
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME
from attngeom.limits.recheck import RECHECKED_PARAMETERS
from attngeom.limits.work import CUT_LAYERS
from attngeom.network import Architecture, forward, random_weights


def count_maps(d: int, depth: int, parallel: bool, limit: int) -> int:
    """The dimension of the maps Φ(X Xᵀ) X of one output row, d rows of X, Φ of degree (3^depth − 1)/2, or the limit.

    >>> count_maps(2, 2, False, 100), count_maps(2, 2, True, 100), count_maps(768, 12, False, 10**6)
    (30, 10, 1000000)
    """
    degree = 3**depth
    if parallel:
        return min(limit, _choose(d + degree - 1, degree, limit))
    return min(limit, d * _choose(comb(d + 1, 2) + degree // 2 - 1, degree // 2, limit))


def _choose(n: int, k: int, limit: int) -> int:
    """C(n, k), or a number above the limit: at least every second factor of the product doubles it."""
    product = 1
    for i in range(1, min(k, n - k) + 1):
        product = product * (n - min(k, n - k) + i) // i
        if product > limit:
            break
    return product


def count_part(layers: Sequence[EffectiveLayer], is_masked: bool, limit: int) -> int:
    """The dimension of all polynomial maps of a part of a network, or the limit; there is no bound with a mask.

    >>> from attngeom.dimensions.effective import effective_layers
    >>> count_part(effective_layers(Architecture((2, 4, 1), (1, 2), heads=2, value_width=2)), False, 100)
    30
    """
    first, last = layers[0], layers[-1]
    if is_masked and not first.symmetric:
        return limit
    maps = count_maps(first.d_in, len(layers), first.symmetric, limit)
    return limit if maps >= limit else min(limit, _count_outputs(last, maps))


def _count_outputs(last: EffectiveLayer, maps: int) -> int:
    """Matrices with a row of ``maps`` entries for each output, of the rank that the heads of the last layer allow."""
    return bounded_rank(last.d_out, maps, last.heads * last.value_rank)


def count_on_curve(before: Sequence[EffectiveLayer], after: Sequence[EffectiveLayer]) -> int | None:
    """The dimension of the second part on the plane curve of the first; None if the first has no such image.

    >>> from attngeom.dimensions.effective import effective_layers
    >>> first, second = effective_layers(Architecture((2, 3, 4), (1, 3), 1, heads=4, value_width=1))
    >>> count_on_curve([first], [second])
    36
    """
    if not before[0].symmetric or before[0].d_in != 2 or after[0].d_in != 3:
        return None
    curve, degree = 3 ** len(before), 3 ** len(after)
    multiples = comb(degree - curve + 2, 2) if degree >= curve else 0
    return _count_outputs(after[-1], comb(degree + 2, 2) - multiples)


@lru_cache(maxsize=1024)
def outputs_span(architecture: Architecture) -> bool:
    """Whether the outputs of a generic network span its output space: True is a proof, at one point mod p."""
    field, width = GF(WORD_PRIME), architecture.widths[-1]
    X = field.random((width, architecture.widths[0], architecture.tokens), np.random.default_rng(0))
    outputs = forward(random_weights(architecture, field, seed=1), X)[..., 0]
    return rank_mod_p(outputs, WORD_PRIME) == width


def count_composition(
    architecture: Architecture, layers: Sequence[EffectiveLayer], sizes: Sequence[int], shared: Sequence[int]
) -> int:
    """The least bound for the whole network over all ways to cut it into parts; deep networks are not cut.

    ``sizes`` bounds the maps of each layer, ``shared`` is what the linear groups after each layer take from the sum.
    """
    best: dict[tuple[int, int], int] = {}
    if len(layers) > CUT_LAYERS:
        total = sum(sizes) - sum(shared[: len(layers) - 1])
        return min(total, count_part(layers, architecture.mask.hides, total))
    for length in range(1, len(layers) + 1):
        for i in range(len(layers) - length + 1):
            j = i + length
            counts = [sum(sizes[i:j]) - sum(shared[i : j - 1])]
            counts.append(count_part(layers[i:j], architecture.mask.hides, counts[0]))
            for k in range(i + 1, j):
                second = count_on_curve(layers[i:k], layers[k:j])
                total = best[i, k] + (best[k, j] if second is None else min(second, best[k, j]))
                # Sums that are not below what is known need no forward pass.
                if total - layers[k].d_in ** 2 < min(counts):
                    first = _part(architecture, layers[i:k])
                    if first.num_parameters <= RECHECKED_PARAMETERS and outputs_span(first):
                        counts.append(total - layers[k].d_in ** 2)
            best[i, j] = min(counts)
    return best[0, len(layers)]


def _part(architecture: Architecture, layers: Sequence[EffectiveLayer]) -> Architecture:
    """The network of some effective layers, with at most two tokens: one if its tokens are parallel."""
    first = layers[0]
    return Architecture(
        (first.d_in, *(layer.d_out for layer in layers)),
        tuple(layer.attention for layer in layers),
        1 if first.symmetric else min(architecture.tokens, 2),
        heads=first.heads,
        value_width=architecture.value_width if first.value_width is None else max(x.value_width or 0 for x in layers),
    )
