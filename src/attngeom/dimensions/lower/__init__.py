"""Lower bounds for the dimension, one method each; every one is a proof, whatever the random choices were."""

from attngeom.dimensions.lower.balls import balls_lower_bound
from attngeom.dimensions.lower.bound import LowerBound, Method, sample_tokens
from attngeom.dimensions.lower.krylov import krylov_lower_bound
from attngeom.dimensions.lower.minor import Estimate, estimate_dimension, minor_lower_bound
from attngeom.dimensions.lower.schur import schur_lower_bound

__all__ = [
    "Estimate",
    "LowerBound",
    "Method",
    "balls_lower_bound",
    "estimate_dimension",
    "krylov_lower_bound",
    "minor_lower_bound",
    "sample_tokens",
    "schur_lower_bound",
]
