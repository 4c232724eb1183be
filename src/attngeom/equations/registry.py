"""The list of families: every one that applies to a variety, in the order of the numbers in the documentation."""

from __future__ import annotations

from attngeom.equations.families.commutants import CommutantRank, CommutingSlices
from attngeom.equations.families.cross_rows import CrossRowRank, SegreQuadrics
from attngeom.equations.families.flattenings import (
    AttentionRank,
    ContextFlattening,
    DeterminantalSyzygies,
    RowFlattening,
    TargetFlattening,
)
from attngeom.equations.families.linear_relations import SequenceCopy, Symmetrization
from attngeom.equations.families.lines import BinaryRestriction, Line, SylvesterResultants
from attngeom.equations.families.pluecker import PlueckerQuartics
from attngeom.equations.families.slices import LieFlattening, LowRankSlice, SlicePencil
from attngeom.equations.families.veronese import VeroneseBlock, VeroneseCatalecticant, VeroneseCrossTarget
from attngeom.equations.family import Choice, Family
from attngeom.equations.variety import Variety
from attngeom.errors import InputError
from attngeom.network import Architecture

FAMILIES: tuple[type[Family], ...] = (
    SequenceCopy,
    Symmetrization,
    LowRankSlice,
    LieFlattening,
    SlicePencil,
    AttentionRank,
    DeterminantalSyzygies,
    VeroneseCatalecticant,
    VeroneseCrossTarget,
    VeroneseBlock,
    SylvesterResultants,
    CrossRowRank,
    SegreQuadrics,
    BinaryRestriction,
    PlueckerQuartics,
    RowFlattening,
    ContextFlattening,
    TargetFlattening,
    CommutantRank,
    CommutingSlices,
)
"""All families, by number; each says to which varieties it applies."""


def families(variety: Variety, column: int | None = None, lines: tuple[Line, ...] | None = None) -> tuple[Family, ...]:
    """The families that have members for this variety, by number; the linear ones only if tokens are given.

    ``column``: only relations between coefficients of an output entry in this column. ``lines``: pairs of points that
    span the lines of families 9 and 12, instead of those that are enough for all.

    >>> [f.name for f in families(Variety(2, 1, tokens=2))]
    ['sequence-copy', 'symmetrization', 'attention-rank', 'sylvester-resultant']
    """
    if variety.hidden:
        raise InputError("families of a deep network asked for; use implicitize --hidden, or certify --layers")
    if not variety.is_plain and variety.heads == 1:
        raise InputError("families of a layer with mask, skip or bounded values asked for; a plain layer is required")
    choice = Choice(column, lines)
    chosen = [family for kind in FAMILIES for family in kind.select(variety, choice) if family.count > 0]
    return tuple(sorted(chosen, key=lambda family: family.order))


def find_family(
    variety: Variety, name: str, column: int | None = None, lines: tuple[Line, ...] | None = None
) -> Family:
    """The family of this name; InputError if there is none. See :func:`families`."""
    known = {family.name: family for family in families(variety, column, lines)}
    if name not in known:
        raise InputError(f"family {name[:40]!r} given; for this layer there are {', '.join(known) or 'none'}")
    return known[name]


def invariants(architecture: Architecture) -> tuple[Family, ...]:
    """The families that hold on one plain lightning layer of this architecture.

    >>> [family.name for family in invariants(Architecture((2, 1), 1, tokens=2)) if family.degree == 2]
    ['attention-rank']
    """
    if not architecture.is_cubic or architecture.is_factored:
        raise InputError("invariants of a deep, softmax or factored network; one plain lightning layer is required")
    if architecture.residual or architecture.mask.hides:
        raise InputError("invariants of a residual or masked layer; one plain lightning layer is required")
    d, d_out = architecture.widths
    return families(Variety(d, architecture.attention[0], architecture.tokens, d_out))
