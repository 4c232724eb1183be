"""Rows of a head in like sizes: a gauge by powers of two, which rounds nothing.

Misfits of a head are measured against its largest rows. Where a row of K is 10¹⁶ times smaller than the others and that
of Q as much larger, errors of the small row would not be seen, although its scores are as large as any.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.layer import AttentionWeights, LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry import GroupedQueryKey, GroupedValueOutput, Symmetry, Which, act

UNEVEN = 8
"""Exponents of two by which rows of a head may differ."""


def even_rows(block: TransformerBlock, layer: LayerWeights) -> tuple[LayerWeights, Symmetry]:
    """The layer with rows of K and Q, and of V and columns of O, of equal norms, if they are far from it."""
    sides: tuple[tuple[Which, AttentionWeights | None], ...] = (("attention", layer.attention), ("cross", layer.cross))
    parts = tuple(part for which, weights in sides if weights is not None for part in _parts(weights, which))
    return act(block, layer, parts), parts


def _parts(weights: AttentionWeights, which: Which) -> Symmetry:
    found: list[GroupedQueryKey | GroupedValueOutput] = []
    groups, is_normed = weights.groups, weights.query_gain is not None or weights.key_gain is not None
    if not is_normed:
        plain = _shifts(weights.query.weight, weights.key.weight, groups)
        turned = _shifts(weights.turned_query.weight, weights.turned_key.weight, weights.turned_groups)
        if weights.turned_groups != groups:
            # One rotated key for all heads, whose scale all of them share, is left as it is.
            turned = np.zeros_like(turned)
        if _is_uneven(np.concatenate([plain, np.resize(turned, (groups, turned.shape[1]))], axis=1)):
            found.append(GroupedQueryKey(np.exp2(-turned).astype(complex), _diagonal(plain), which))
    values = _shifts(np.swapaxes(weights.output, 1, 2), weights.value.weight, groups)
    if _is_uneven(values):
        found.append(GroupedValueOutput(_diagonal(values), which))
    return tuple(found)


def _shifts(outer: Array, inner: Array, groups: int) -> Array:
    """For each group and row the exponent that brings inner up, and outer down, to one norm; 0 for rows of zeros."""
    one, two = (np.linalg.norm(x, axis=-1) for x in (outer, inner))
    one = one.reshape(groups, len(one) // groups, one.shape[-1]).max(axis=1)
    seen = (one > 0) & (two > 0)
    return np.where(seen, np.rint((np.log2(np.where(seen, one, 1.0)) - np.log2(np.where(seen, two, 1.0))) / 2), 0.0)


def _is_uneven(shifts: Array) -> bool:
    return bool(shifts.size and np.any(np.ptp(shifts, axis=1) > UNEVEN))


def _diagonal(shifts: Array) -> Array:
    return np.asarray(np.exp2(shifts)[:, :, None] * np.eye(shifts.shape[1]))
