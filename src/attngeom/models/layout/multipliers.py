"""Constants by which a family multiplies the values of its maps, multiplied into their weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import LayerWeights
from attngeom.models.tensor_errors import TensorPart

WRITERS = {"output": "output_bias", "down": "down_bias"}
"""Matrices that write, and the fields of their biases."""


def multiplied(layer: LayerWeights, multipliers: Mapping[TensorPart, tuple[float, float]]) -> LayerWeights:
    """The layer with weights and biases of some maps multiplied; ``mlp`` stands for all experts as well."""
    for part, factors in multipliers.items():
        if part.place != "mlp":
            own = getattr(layer, part.place)
            if own is None:
                continue
            layer = layer.with_(**{part.place: own.with_(**_changed(own, part.tensor, *factors))})
            continue
        for name, units in layer.hidden.items():
            layer = layer.with_hidden(name, units.with_(**_changed(units, part.tensor, *factors)))
    return layer


def _changed(own: Any, name: str, weight: float, bias: float) -> dict[str, Affine | Array]:
    """The fields of a map of one sublayer, rotated rows of attention among them, multiplied."""
    if name in WRITERS:
        return {name: getattr(own, name) * weight, WRITERS[name]: getattr(own, WRITERS[name]) * bias}
    fields = {field: getattr(own, field, None) for field in (name, f"rotated_{name}")}
    return {
        field: Affine(reader.weight * weight, reader.bias * bias)
        for field, reader in fields.items()
        if isinstance(reader, Affine)
    }
