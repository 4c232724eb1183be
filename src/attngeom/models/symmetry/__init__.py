"""Symmetries of a layer: elementary parts, each with its action and its inverse; a symmetry is a sequence of parts.

Every part leaves the function of the layer unchanged for every input, by the lemmas of docs/theorems/models.md. A part
acts on `LayerWeights` as they are stored, not only on folded ones. `compose` is concatenation, `inverse` reverses.
"""

from __future__ import annotations

from attngeom.models.symmetry.attention import GroupedHeadOrder, GroupedQueryKey, GroupedValueOutput
from attngeom.models.symmetry.normalised import HeadMeans, LatentTurn, QKNormTurn, centred_turn, head_means
from attngeom.models.symmetry.norms import ConstantShift, MeanShift, NormMove, OutputSigns, StreamShift
from attngeom.models.symmetry.part import Part, Symmetry, Which, act, compose, inverse
from attngeom.models.symmetry.units import ExpertOrder, Units

__all__ = [
    "ConstantShift",
    "ExpertOrder",
    "GroupedHeadOrder",
    "GroupedQueryKey",
    "GroupedValueOutput",
    "HeadMeans",
    "LatentTurn",
    "MeanShift",
    "NormMove",
    "OutputSigns",
    "Part",
    "QKNormTurn",
    "StreamShift",
    "Symmetry",
    "Units",
    "Which",
    "act",
    "centred_turn",
    "compose",
    "head_means",
    "inverse",
]
