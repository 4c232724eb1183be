"""Exact arithmetic that knows nothing of attention: domains, linear algebra, lifting, polynomials.

The names below are loaded when they are first used, so that a command imports only what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attngeom.exact.domains import (
        GF,
        QQ,
        RR,
        BalancedField,
        Balls,
        CubicField,
        Domain,
        PolynomialDomain,
        Quadratic,
        QuadraticField,
    )
    from attngeom.exact.modular import rank_mod_p
    from attngeom.exact.polynomials import Polynomial
    from attngeom.exact.primes import BIG_PRIME, BLAS_PRIME, SMALL_PRIME, WORD_PRIME

__all__ = [
    "BIG_PRIME",
    "BLAS_PRIME",
    "GF",
    "QQ",
    "RR",
    "SMALL_PRIME",
    "WORD_PRIME",
    "BalancedField",
    "Balls",
    "CubicField",
    "Domain",
    "Polynomial",
    "PolynomialDomain",
    "Quadratic",
    "QuadraticField",
    "rank_mod_p",
]

_NAMES = dict.fromkeys(__all__, "domains") | {
    **dict.fromkeys(("BIG_PRIME", "BLAS_PRIME", "SMALL_PRIME", "WORD_PRIME"), "primes"),
    "Polynomial": "polynomials",
    "rank_mod_p": "modular",
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'attngeom.exact' has no attribute {name!r}")
    return getattr(importlib.import_module(f"attngeom.exact.{_NAMES[name]}"), name)
