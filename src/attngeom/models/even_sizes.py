"""Matched layers in even sizes: what is averaged has rows of the sizes that those of the target have.

Least squares bring keys next to keys, values next to values and up next to up, whatever becomes of the other side: of
models that have little in common the one side shrinks to nothing and the other grows a hundredfold, and an average of
such weights is ruled by one model. Here both sides count alike; equal layers meet exactly all the same.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups.between import between
from attngeom.models.layer import LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry import Factor, Part, RowFactor, act, factors
from attngeom.models.symmetry.units import HiddenUnits, Units


def even_sizes(block: TransformerBlock, target: LayerWeights, layer: LayerWeights) -> LayerWeights:
    """The folded ``layer``, matched to the folded ``target``, with gauges of heads and scales of units in between."""
    parts = [_part(factor, target, layer) for factor in factors(block)]
    return act(block, layer, [part for part in parts if part is not None])


def _part(factor: Factor, target: LayerWeights, layer: LayerWeights) -> Part | None:
    if isinstance(factor, RowFactor):
        goal, pair = (
            (factor.carried.weight(weights), factor.dual.rows(weights))
            for weights in (factor.weights(target), factor.weights(layer))
        )
        element = between(factor.acting(layer), goal, pair) if pair[0].size else None
        return None if element is None else factor.move(layer, element)
    return _scales(factor, target, layer) if isinstance(factor, HiddenUnits) and factor.spec.has_unit_scale else None


def _scales(factor: HiddenUnits, target: LayerWeights, layer: LayerWeights) -> Units:
    """Scales of units: gates as long as those of the target, up and down as near to them as their product allows."""
    goal, mlp, spec = target.hidden[factor.place], layer.hidden[factor.place], factor.spec
    ratio, gates, power = _ratio(goal.down.T, mlp.down.T), None, 1 if spec.gated else max(1, spec.degree)
    if spec.degree and goal.gate is not None and mlp.gate is not None:
        gates = _ratio(goal.gate.rows, mlp.gate.rows)
        ratio = ratio * gates**spec.degree
    scales = _ratio(goal.up.rows, mlp.up.rows) / ratio**power
    return Units(np.arange(mlp.units), scales ** (1 / (1 + power**2)), factor.place, gates)


def _ratio(goal: Array, rows: Array) -> Array:
    """‖goal‖ by ‖rows‖, row by row; 1 where either is zero."""
    one, other = (np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float64)) for x in (goal, rows))
    good = (one > 0) & (other > 0)
    return np.where(good, one, 1.0) / np.where(good, other, 1.0)
