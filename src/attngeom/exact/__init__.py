"""Exact arithmetic that knows nothing of attention: domains, linear algebra, lifting, polynomials, minors.

The names below are loaded when they are first used, so that a command imports only what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from attngeom.exact.minors import Minor, minor, minor_at
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

_HOMES = {
    "arrays": ("Array",),
    "balls": ("CertifiedRank", "certify_invertible", "certify_rank"),
    "combinations": ("combination_at", "combination_rank", "multiset_at", "multiset_count", "multiset_rank"),
    "domains": (
        "GF",
        "QQ",
        "RR",
        "BalancedField",
        "Balls",
        "CubicField",
        "CubicNumber",
        "Domain",
        "PolynomialDomain",
        "Quadratic",
        "QuadraticField",
    ),
    "lifting": ("Lift", "crt", "lift_nullspace", "reconstruct"),
    "minors": ("Minor", "minor", "minor_at"),
    "modular": ("Echelon", "Pivots", "echelon_mod_p", "nullspace_mod_p", "rank_mod_p", "rref_mod_p", "solve_mod_p"),
    "polynomials": ("Polynomial", "polynomial_ring"),
    "primes": ("BIG_PRIME", "BLAS_PRIME", "SMALL_PRIME", "WORD_PRIME"),
}
_NAMES = {name: module for module, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'attngeom.exact' has no attribute {name!r}")
    return getattr(importlib.import_module(f"attngeom.exact.{_NAMES[name]}"), name)
