"""Coefficient domains, one file each: Q, GF(p), balanced residues, floats, balls, quadratic fields, polynomials."""

from attngeom.exact.arrays import Array
from attngeom.exact.domains.balls import Balls
from attngeom.exact.domains.cubic import CubicField, CubicNumber
from attngeom.exact.domains.domain import Domain
from attngeom.exact.domains.floats import RR, Floats
from attngeom.exact.domains.polynomials import PolynomialDomain
from attngeom.exact.domains.prime import GF, BalancedField, FiniteField, PrimeField
from attngeom.exact.domains.quadratic import Quadratic, QuadraticField
from attngeom.exact.domains.rationals import QQ, Rationals
from attngeom.exact.numbers import as_fmpq
from attngeom.exact.residues import matmul_mod

__all__ = [
    "GF",
    "QQ",
    "RR",
    "Array",
    "BalancedField",
    "Balls",
    "CubicField",
    "CubicNumber",
    "Domain",
    "FiniteField",
    "Floats",
    "PolynomialDomain",
    "PrimeField",
    "Quadratic",
    "QuadraticField",
    "Rationals",
    "as_fmpq",
    "matmul_mod",
]
