"""Orbits of layers under the factors of their block: random points, one point of each, the way between two.

Canonical points, by their gauge. echelon, the default: identity blocks at pivot columns of K, V and unit pivots, all
entries at most 1.05, and after a LayerNorm readers with last column zero, triangles in the maps to latents: as many
entries are exactly 0 or 1 as the layer has redundant ones. balanced: KᵀQ and OV split by their singular values, pairs
and units with equal norms on both sides: least norm. rotated: balanced, then Hadamard matrices on the plain coordinates
(for quantisation). In all of them signs and phases follow the first of the largest entries, heads and units are sorted
by invariants.

`recover(block, L, M)` returns parts s with act(M, s) ≈ L where one exists, orders by matching and matrices by least
squares; it never fails, the relative errors decide. The condition numbers of the matrices say how far rounding in the
files may show.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.groups.gauges import DEFAULT, Gauge
from attngeom.groups.sampler import Sampler
from attngeom.limits.rounding import UNEVEN_ROWS
from attngeom.models.layer import LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry import Factor, Part, RowFactor, Symmetry, act, factors

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


def canonical(
    block: TransformerBlock, layer: LayerWeights, gauge: Gauge = DEFAULT, *, ordered: bool = False
) -> LayerWeights:
    """The canonical form of a folded layer; ``ordered`` keeps the order of heads (tables of relative positions)."""
    if gauge not in get_args(Gauge):
        raise InputError(f"gauge {str(gauge)[:40]!r} given; echelon, balanced or rotated is required")
    for factor in factors(block, ordered):
        layer = factor.fix(layer, gauge)
    return layer


@dataclass(frozen=True, eq=False)
class Recovered:
    """The factors of a block, each with the part by which it brings two layers together, if it has one.

    ``aligned`` is the source after all parts but deferred ones, those of hidden units, which are most of a layer: who
    only measures reads unit by unit, who writes takes `moved`.
    """

    block: TransformerBlock
    moves: tuple[tuple[Factor, Part | None], ...]
    aligned: LayerWeights

    @property
    def symmetry(self) -> Symmetry:
        """All parts, in their order."""
        return tuple(part for _, part in self.moves if part is not None)

    @property
    def condition(self) -> float:
        """The largest condition number of the matrices."""
        return max((part.condition for part in self.symmetry), default=1.0)

    @property
    def deferred(self) -> dict[str, Part]:
        """The parts that are not yet made, by the places of their factors."""
        return {factor.place: part for factor, part in self.moves if part is not None and factor.is_deferred}

    @cached_property
    def moved(self) -> LayerWeights:
        """The source after the whole symmetry."""
        return act(self.block, self.aligned, list(self.deferred.values()))


def recover(block: TransformerBlock, target: LayerWeights, source: LayerWeights, *, ordered: bool = False) -> Recovered:
    """Parts that move the folded ``source`` onto the folded ``target``; ``ordered`` keeps the order of heads."""
    moves: list[tuple[Factor, Part | None]] = []
    moved = source
    del source  # its arrays go as they are moved
    for factor in sorted(factors(block, ordered), key=lambda factor: (factor.is_deferred, not factor.is_discrete)):
        part = factor.match(target, moved)
        moves.append((factor, part))
        if part is not None and not factor.is_deferred:
            moved = part.act(block, moved)
    return Recovered(block, tuple(moves), moved)


def even_rows(block: TransformerBlock, layer: LayerWeights) -> tuple[LayerWeights, Symmetry]:
    """The layer with rows of K and Q, and of V and columns of O, of equal norms, if they are far from it.

    Powers of two round nothing. Errors of a head are measured against its largest rows: where a row of K is 10¹⁶ times
    smaller than the others and that of Q as much larger, errors of the small row would not be seen, although its scores
    are as large as any.
    """
    together: dict[tuple[str, str], list[tuple[RowFactor, Array]]] = {}
    for factor in factors(block):
        if isinstance(factor, RowFactor) and not factor.acting(layer).keeps_lengths:
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
    weights, groups = factor.weights(layer), factor.sets(layer)
    if factor.copies(layer) != groups:
        return np.zeros((groups, factor.size(layer)))
    one, two = (np.linalg.norm(slot.weight(weights), axis=-1) for slot in (factor.dual, factor.carried))
    one = one.reshape(groups, len(one) // groups, one.shape[-1]).max(axis=1)
    seen = (one > 0) & (two > 0)
    return np.where(seen, np.rint((np.log2(np.where(seen, one, 1.0)) - np.log2(np.where(seen, two, 1.0))) / 2), 0.0)


def _is_uneven(shifts: Array) -> bool:
    return bool(shifts.size and np.any(np.ptp(shifts, axis=1) > UNEVEN_ROWS))
