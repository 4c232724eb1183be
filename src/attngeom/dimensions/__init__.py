"""Dimension of the set of functions that an attention architecture can compute."""

from attngeom.dimensions.answer import Dimension, dimension
from attngeom.dimensions.bounds import Estimate, LowerBound, symmetry_upper_bound
from attngeom.dimensions.checkpoint import PointRank, rank_at
from attngeom.dimensions.counting import UpperBound, upper_bound
from attngeom.dimensions.formulas import Formula, formula, formulas
from attngeom.dimensions.wiedemann import KrylovBound, krylov_lower_bound

__all__ = [
    "Dimension",
    "Estimate",
    "Formula",
    "KrylovBound",
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
