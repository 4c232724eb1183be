"""Exact arithmetic that knows nothing of attention: domains, linear algebra, lifting, polynomials, minors."""

from attngeom.exact.arrays import Array
from attngeom.exact.balls import CertifiedRank, certify_invertible, certify_rank
from attngeom.exact.combinations import (
    combination_at,
    combination_rank,
    multiset_at,
    multiset_count,
    multiset_rank,
)
from attngeom.exact.domains import (
    GF,
    QQ,
    RR,
    BalancedField,
    Balls,
    CubicField,
    CubicNumber,
    Domain,
    PolynomialDomain,
    Quadratic,
    QuadraticField,
)
from attngeom.exact.lifting import Lift, crt, lift_nullspace, reconstruct
from attngeom.exact.minors import Minor, minor, minor_at, minors
from attngeom.exact.modular import (
    Echelon,
    Pivots,
    echelon_mod_p,
    nullspace_mod_p,
    rank_mod_p,
    rref_mod_p,
    solve_mod_p,
)
from attngeom.exact.polynomials import Polynomial, polynomial_ring
from attngeom.exact.primes import BIG_PRIME, BLAS_PRIME, SMALL_PRIME, WORD_PRIME

__all__ = [
    "BIG_PRIME",
    "BLAS_PRIME",
    "GF",
    "QQ",
    "RR",
    "SMALL_PRIME",
    "WORD_PRIME",
    "Array",
    "BalancedField",
    "Balls",
    "CertifiedRank",
    "CubicField",
    "CubicNumber",
    "Domain",
    "Echelon",
    "Lift",
    "Minor",
    "Pivots",
    "Polynomial",
    "PolynomialDomain",
    "Quadratic",
    "QuadraticField",
    "certify_invertible",
    "certify_rank",
    "combination_at",
    "combination_rank",
    "crt",
    "echelon_mod_p",
    "lift_nullspace",
    "minor",
    "minor_at",
    "minors",
    "multiset_at",
    "multiset_count",
    "multiset_rank",
    "nullspace_mod_p",
    "polynomial_ring",
    "rank_mod_p",
    "reconstruct",
    "rref_mod_p",
    "solve_mod_p",
]
