"""Rows of a head in like sizes: a gauge by powers of two, which rounds nothing.

Errors of a head are measured against its largest rows. Where a row of K is 10¹⁶ times smaller than the others and that
of Q as much larger, errors of the small row would not be seen, although its scores are as large as any.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.rounding import UNEVEN_ROWS
from attngeom.models.layer import LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry import RowFactor, Symmetry, act, factors


def even_rows(block: TransformerBlock, layer: LayerWeights) -> tuple[LayerWeights, Symmetry]:
    """The layer with rows of K and Q, and of V and columns of O, of equal norms, if they are far from it."""
    together: dict[tuple[str, str], list[tuple[RowFactor, Array]]] = {}
    for factor in factors(block):
        if isinstance(factor, RowFactor):
            # Errors of rotated and plain rows of a head are measured together, so they are evened together.
            together.setdefault((factor.place, factor.topic), []).append((factor, _shifts(factor, layer)))
    parts = []
    for group in together.values():
        if _is_uneven(np.concatenate([shifts for _, shifts in group], axis=1)):
            parts += [factor.scale(layer, np.exp2(shifts[: factor.copies(layer)])) for factor, shifts in group]
    return act(block, layer, parts), tuple(parts)


def _shifts(factor: RowFactor, layer: LayerWeights) -> Array:
    """For each group and row the exponent that brings the carried row up, and dual ones down, to one norm.

    0 for rows of zeros, and for one rotated key for all heads, whose scale all of them share.
    """
    weights, groups = factor.weights(layer), factor.weights(layer).groups
    if factor.copies(layer) != groups:
        return np.zeros((groups, factor.size(layer)))
    one, two = (np.linalg.norm(slot.weight(weights), axis=-1) for slot in (factor.dual, factor.carried))
    one = one.reshape(groups, len(one) // groups, one.shape[-1]).max(axis=1)
    seen = (one > 0) & (two > 0)
    return np.where(seen, np.rint((np.log2(np.where(seen, one, 1.0)) - np.log2(np.where(seen, two, 1.0))) / 2), 0.0)


def _is_uneven(shifts: Array) -> bool:
    return bool(shifts.size and np.any(np.ptp(shifts, axis=1) > UNEVEN_ROWS))
