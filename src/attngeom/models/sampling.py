"""Random symmetries of a layer from a seed: a random move of every factor that the block has."""

from __future__ import annotations

from collections.abc import Collection

from attngeom.errors import InputError
from attngeom.groups.sampler import Sampler
from attngeom.models.layer import LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry import Symmetry, factors

PARTS = ("qk", "vo", "heads", "units", "norms", "biases")
"""The topics of factors, by which users choose what is moved."""


def random_symmetry(
    block: TransformerBlock,
    layer: LayerWeights,
    sampler: Sampler,
    *,
    parts: Collection[str] = PARTS,
    ordered: bool = False,
) -> Symmetry:
    """A random symmetry of the chosen parts; ``ordered`` keeps the order of heads (tables of relative positions)."""
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise InputError(f"part {sorted(unknown)[0][:40]!r} given; parts are {', '.join(PARTS)} and residual")
    chosen = (factor for factor in factors(block, ordered) if factor.topic in parts)
    return tuple(part for factor in chosen for part in factor.random(layer, sampler))


__all__ = ["PARTS", "Sampler", "random_symmetry"]
