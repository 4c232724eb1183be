"""Recover the symmetry between two folded layers, factor by factor: orders by matching, matrices by least squares.

`recover(block, L, M)` returns parts s with act(M, s) ≈ L where one exists; it never fails, the relative errors decide.
The condition numbers of the matrices say how far rounding in the files may show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from attngeom.models.layer import LayerWeights
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry import Part, Symmetry, Units, act, factors


@dataclass(frozen=True, eq=False)
class Recovered:
    """The symmetry, and the largest condition number of its matrices.

    ``aligned`` is the source after all parts but those of hidden units, which are most of a layer: who only measures
    takes ``units`` (by the names of `LayerWeights.hidden`) and reads unit by unit, who writes takes `moved`.
    """

    block: TransformerBlock
    symmetry: Symmetry
    aligned: LayerWeights
    units: Mapping[str, Units]
    condition: float

    @cached_property
    def moved(self) -> LayerWeights:
        """The source after the whole symmetry."""
        return act(self.block, self.aligned, list(self.units.values()))


def recover(block: TransformerBlock, target: LayerWeights, source: LayerWeights, *, ordered: bool = False) -> Recovered:
    """Parts that move the folded ``source`` onto the folded ``target``; ``ordered`` keeps the order of heads."""
    symmetry: list[Part] = []
    units: dict[str, Units] = {}
    moved = source
    del source  # its arrays go as they are moved
    for factor in sorted(factors(block, ordered), key=lambda factor: (factor.is_deferred, not factor.is_discrete)):
        part = factor.match(target, moved)
        if part is None:
            continue
        symmetry.append(part)
        if isinstance(part, Units):
            units[factor.place] = part
        else:
            moved = part.act(block, moved)
    return Recovered(block, tuple(symmetry), moved, units, max((part.condition for part in symmetry), default=1.0))
