"""Canonical forms: one representative of every orbit of a folded layer, each factor fixed in the gauge.

echelon, the default: identity blocks at pivot columns of K, V and unit pivots, all entries at most 1.05, and after a
LayerNorm readers with last column zero, triangles in the maps to latents: as many entries are exactly 0 or 1 as the
layer has redundant ones. balanced: KᵀQ and OV split by their singular values, pairs and units with equal norms on both
sides: least norm. rotated: balanced, then Hadamard matrices on the plain coordinates (for quantisation). In all of them
signs and phases follow the first of the largest entries, heads and units are sorted by invariants.
"""

from __future__ import annotations

from typing import get_args

from attngeom.errors import InputError
from attngeom.groups.gauges import DEFAULT, Gauge
from attngeom.models.layer import LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry import factors


def canonical(
    block: TransformerBlock, layer: LayerWeights, gauge: Gauge = DEFAULT, *, ordered: bool = False
) -> LayerWeights:
    """The canonical form of a folded layer; ``ordered`` keeps the order of heads (tables of relative positions)."""
    if gauge not in get_args(Gauge):
        raise InputError(f"gauge {str(gauge)[:40]!r} given; echelon, balanced or rotated is required")
    for factor in factors(block, ordered):
        layer = factor.fix(layer, gauge)
    return layer


__all__ = ["DEFAULT", "Gauge", "canonical"]
