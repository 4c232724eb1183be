"""Exact arithmetic that knows nothing of attention: domains, linear algebra, lifting, polynomials.

The names below are loaded when they are first used, so that a command imports only what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attngeom.rooms import open_room

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
    from attngeom.exact.domains.polynomials import Polynomial
    from attngeom.exact.modular import rank_mod_p
    from attngeom.exact.numbers import BIG_PRIME, BLAS_PRIME, SMALL_PRIME, WORD_PRIME

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
    **dict.fromkeys(("BIG_PRIME", "BLAS_PRIME", "SMALL_PRIME", "WORD_PRIME"), "numbers"),
    "Polynomial": "domains.polynomials",
    "rank_mod_p": "modular",
}


__getattr__, __dir__ = open_room(__name__, _NAMES)
