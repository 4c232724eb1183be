"""Heads and units that the function does not determine: where they differ, nothing is shown about the function.

Keys or values without full rank, heads that write nothing, heads with equal scores, units that write or read nothing or
that read the same as another one. Thresholds are far below any rounding of files, so only true degeneracies count.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import DEGENERATE_SIZE
from attngeom.models.findings import equal_rows, find_twins
from attngeom.models.layer import AttentionWeights, LayerWeights, MLPWeights
from attngeom.models.orbits import Recovered
from attngeom.models.symmetry import Units
from attngeom.models.tensor_errors import TensorPart

Hidden = dict[TensorPart, set[int]]
"""Part of a layer → numbers of the heads or units in which it is not determined."""


def hidden_parts(target: LayerWeights, recovered: Recovered) -> Hidden:
    """What is not determined in the target or in the layer that was moved onto it."""
    hidden: Hidden = {}
    for layer in (target, recovered.aligned):
        for place, weights in layer.attentions.items():
            _add_attention(hidden, place, weights)
        if isinstance(layer.mlp, MLPWeights):
            lost, units = _lost_units(layer.mlp), recovered.deferred["mlp"]
            assert isinstance(units, Units)
            places = np.flatnonzero(lost if layer is target else lost[units.order])
            for part in ("gate", "gate_bias", "up", "up_bias", "down"):
                hidden.setdefault(TensorPart("mlp", part), set()).update(int(unit) for unit in places)
    return hidden


def _deficient(rows: Array) -> Array:
    """Per matrix of a batch, whether its rows are dependent."""
    if not rows.shape[1]:
        return np.zeros(len(rows), bool)
    values = lapack.svdvals(rows @ rows.transpose(0, 2, 1))
    return np.asarray(values[:, -1] <= DEGENERATE_SIZE**1.5 * values[:, 0])


def _add_attention(hidden: Hidden, place: str, weights: AttentionWeights) -> None:
    groups, share = weights.groups, weights.heads // weights.groups

    def note(part: str, numbers: Array) -> None:
        hidden.setdefault(TensorPart(place, part), set()).update(int(number) for number in numbers)

    def spread(flags: Array) -> Array:
        return np.flatnonzero(np.repeat(flags, share))

    keys, values = _deficient(weights.key.weight), _deficient(weights.value.weight)
    for part in ("query", "query_bias"):
        note(part, spread(keys))
    note("key", np.flatnonzero(keys))
    note("output", spread(values))
    note("value", np.flatnonzero(values))
    silent = ~np.any(weights.output.reshape(weights.heads, -1), axis=1)
    twins = find_twins(weights, DEGENERATE_SIZE / 16)
    same = np.array([h in twins or h in twins.values() for h in range(weights.heads)])
    for part in ("query", "query_bias", *weights.head_numbers, *weights.head_tables):
        note(part, np.flatnonzero(silent))
    whole = (silent | same).reshape(groups, share).any(axis=1)
    for part in ("key", "key_bias", "value", "value_bias"):
        note(part, np.flatnonzero(whole))
    note("output", np.flatnonzero(same))
    if silent.any() or same.any():
        # Order and matching of the other heads stay fixed, but queries of the heads concerned do not.
        note("query", np.flatnonzero(np.repeat(whole, share)))


def _lost_units(mlp: MLPWeights) -> Array:
    """Per unit, whether it reads what another one reads, or reads or writes nothing."""
    reader = mlp.gate if mlp.gate is not None else mlp.up
    lost = ~np.any(mlp.down, axis=0)
    lost[[unit for units in equal_rows(reader) for unit in units]] = True
    reads = np.concatenate([np.any(mlp.up.piece(part), axis=1) for part in mlp.up.parts()])
    return np.asarray(lost | ~(reads | (mlp.up.bias != 0)))
