"""Dimension of the set of functions that an attention architecture can compute."""

from attngeom.dimension.answer import Dimension, dimension
from attngeom.dimension.bounds import Estimate, LowerBound, symmetry_upper_bound
from attngeom.dimension.checkpoint import PointRank, rank_at
from attngeom.dimension.counting import UpperBound, upper_bound
from attngeom.dimension.formulas import Formula, formula, formulas
from attngeom.dimension.wiedemann import KrylovBound, krylov_lower_bound
from attngeom.packages import make_callable

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

make_callable(__name__, dimension)
