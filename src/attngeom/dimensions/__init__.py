"""Dimension of the set of functions that an attention architecture can compute."""

from attngeom.dimensions.answer import Dimension, dimension
from attngeom.dimensions.counts import UpperBound, upper_bound
from attngeom.dimensions.estimate import Estimate
from attngeom.dimensions.formulas import formula, formulas
from attngeom.dimensions.lower_bounds import krylov_lower_bound
from attngeom.dimensions.point import PointRank, rank_at
from attngeom.dimensions.symmetry_bound import symmetry_upper_bound
from attngeom.dimensions.theorems import DimensionFormula
from attngeom.rank.lower import LowerBound

__all__ = [
    "Dimension",
    "DimensionFormula",
    "Estimate",
    "LowerBound",
    "PointRank",
    "UpperBound",
    "dimension",
    "formula",
    "formulas",
    "krylov_lower_bound",
    "rank_at",
    "symmetry_upper_bound",
    "upper_bound",
]


def __dir__() -> list[str]:
    return sorted(__all__)
