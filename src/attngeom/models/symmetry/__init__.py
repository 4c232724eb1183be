"""Symmetries of a layer: the factors of the group of its block, and moves, each with its action and its inverse.

Every move leaves the function of the layer unchanged for every input, by the lemmas of docs/theorems/models.md. It
acts on `LayerWeights` as they are stored, not only on folded ones. `compose` is concatenation, `inverse` reverses.
"""

from __future__ import annotations

from collections.abc import Sequence

from attngeom.models.layer import LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry.attention import GroupedHeadOrder, GroupedQueryKey, GroupedValueOutput, RotaryScales
from attngeom.models.symmetry.block import factors
from attngeom.models.symmetry.factor import Factor, Move, Part, RowFactor
from attngeom.models.symmetry.units import Units

Symmetry = tuple[Part, ...]


def act(block: TransformerBlock, layer: LayerWeights, symmetry: Sequence[Part]) -> LayerWeights:
    """The layer moved by the parts, first to last."""
    for part in symmetry:
        layer = part.act(block, layer)
    return layer


def compose(first: Sequence[Part], second: Sequence[Part]) -> Symmetry:
    """First, then second."""
    return (*first, *second)


def inverse(symmetry: Sequence[Part]) -> Symmetry:
    return tuple(part.inverse() for part in reversed(symmetry))


__all__ = [
    "Factor",
    "GroupedHeadOrder",
    "GroupedQueryKey",
    "GroupedValueOutput",
    "Move",
    "Part",
    "RotaryScales",
    "RowFactor",
    "Symmetry",
    "Units",
    "act",
    "compose",
    "factors",
    "inverse",
]
