"""The field Q(θ) of a root θ of a rational cubic, for linear factors that need one; signs at a real root."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import flint
import numpy as np
from flint import arb, fmpq, fmpq_poly, fmpz

from attngeom.errors import FormatError


@dataclass(frozen=True)
class CubicNumber:
    """The residue of a rational polynomial in θ modulo the monic cubic ``modulus`` (coefficients from the constant up).

    >>> root = CubicNumber.generator((fmpq(-2), fmpq(0), fmpq(0), fmpq(1)))
    >>> (root * root * root).coefficients
    (2, 0, 0)
    """

    coefficients: tuple[fmpq, fmpq, fmpq]
    modulus: tuple[fmpq, ...]

    @classmethod
    def generator(cls, modulus: tuple[fmpq, ...]) -> CubicNumber:
        """θ itself."""
        return cls((fmpq(0), fmpq(1), fmpq(0)), modulus)

    def _new(self, polynomial: fmpq_poly) -> CubicNumber:
        rest = [polynomial[k] for k in range(3)]
        return CubicNumber((rest[0], rest[1], rest[2]), self.modulus)

    def _polynomial(self) -> fmpq_poly:
        return fmpq_poly(list(self.coefficients))

    def _coerce(self, other: Any) -> CubicNumber | None:
        if isinstance(other, CubicNumber):
            return other
        if isinstance(other, (int, fmpz, fmpq, np.integer)):
            number = fmpq(int(other)) if isinstance(other, np.integer) else fmpq(other)
            return CubicNumber((number, fmpq(0), fmpq(0)), self.modulus)
        return None

    def __add__(self, other: Any) -> CubicNumber:
        y = self._coerce(other)
        if y is None:
            return NotImplemented
        a, b = self.coefficients, y.coefficients
        return CubicNumber((a[0] + b[0], a[1] + b[1], a[2] + b[2]), self.modulus)

    def __neg__(self) -> CubicNumber:
        a = self.coefficients
        return CubicNumber((-a[0], -a[1], -a[2]), self.modulus)

    def __sub__(self, other: Any) -> CubicNumber:
        y = self._coerce(other)
        return NotImplemented if y is None else self + (-y)

    def __rsub__(self, other: Any) -> CubicNumber:
        return -self + other

    def __mul__(self, other: Any) -> CubicNumber:
        y = self._coerce(other)
        if y is None:
            return NotImplemented
        return self._new(self._polynomial() * y._polynomial() % fmpq_poly(list(self.modulus)))

    __radd__ = __add__
    __rmul__ = __mul__

    def inverse(self) -> CubicNumber:
        """1/x; ZeroDivisionError if x is not invertible."""
        gcd, s, _ = self._polynomial().xgcd(fmpq_poly(list(self.modulus)))
        if gcd != 1:
            raise ZeroDivisionError("inverse of a zero divisor")
        return self._new(s % fmpq_poly(list(self.modulus)))

    def __truediv__(self, other: Any) -> CubicNumber:
        y = self._coerce(other)
        return NotImplemented if y is None else self * y.inverse()

    def __rtruediv__(self, other: Any) -> CubicNumber:
        return self.inverse() * other

    def __eq__(self, other: object) -> bool:
        y = self._coerce(other)
        return NotImplemented if y is None else self.coefficients == y.coefficients

    def __hash__(self) -> int:
        return hash((self.coefficients, self.modulus))

    def __bool__(self) -> bool:
        return any(c != 0 for c in self.coefficients)

    def sign(self) -> int:
        """The sign at the least real root of the modulus; exact, by enclosures of growing precision."""
        if not self:
            return 0
        for precision in (64, 256, 1024, 4096, 16384):
            before = flint.ctx.prec
            flint.ctx.prec = precision
            try:
                root = least_real_root(self.modulus, precision)
                a, b, c = (arb(x) for x in self.coefficients)
                value = a + root * (b + root * c)
                if value > 0:
                    return 1
                if value < 0:
                    return -1
            finally:
                flint.ctx.prec = before
        raise ArithmeticError("the sign of a number was not decided with 16384 bits")

    def to_json(self) -> list[str]:
        return [str(c) for c in self.coefficients]


@lru_cache(maxsize=64)
def least_real_root(modulus: tuple[fmpq, ...], precision: int) -> arb:
    """An enclosure of the least real root of a squarefree cubic; a cubic has at least one."""
    before = flint.ctx.prec
    flint.ctx.prec = precision
    try:
        roots: Any = fmpq_poly(list(modulus)).numer().complex_roots()
        real = [root.real for root, _ in roots if root.imag == 0]
    finally:
        flint.ctx.prec = before
    return min(real, key=lambda x: float(x.mid()))


def read_modulus(value: Any) -> tuple[fmpq, ...]:
    """A monic squarefree rational cubic from JSON: four strings from the constant coefficient up."""
    if type(value) is not list or len(value) != 4 or any(type(x) is not str for x in value):
        raise FormatError("a modulus of four rational strings is required")
    found = tuple(fmpq(*map(int, x.split("/"))) for x in value)
    if [str(x) for x in found] != value or found[3] != 1:
        raise FormatError("a monic modulus in lowest terms is required")
    polynomial = fmpq_poly(list(found))
    if polynomial.gcd(polynomial.derivative()) != 1:
        raise FormatError("a squarefree modulus is required")
    return found
