"""The quadratic field Q(√D), D ≠ 0, 1 squarefree: weights that need one square root, real or imaginary."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from flint import arb, fmpq, fmpz

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains.balls import Balls
from attngeom.exact.domains.extension import ExtensionField
from attngeom.exact.numbers import as_fmpq

_RATIONAL = r"\d+(?:/\d+)?"
_SUM = re.compile(rf"(?:([+-]?{_RATIONAL})(?=[+-]))?([+-]?)(?:({_RATIONAL})\*)?sqrt\((-?\d+)\)")


@dataclass(frozen=True, slots=True)
class Quadratic:
    """The number a + b√D.

    >>> x = Quadratic(fmpq(1), fmpq(2), -1)
    >>> x * x.conjugate(), 1 / x
    (Quadratic('5'), Quadratic('1/5-2/5*sqrt(-1)'))
    """

    a: fmpq
    b: fmpq
    D: int

    @property
    def coefficients(self) -> tuple[fmpq, ...]:
        return self.a, self.b

    def _coerce(self, other: Any) -> Quadratic | None:
        if isinstance(other, Quadratic):
            if other.D != self.D:
                raise DomainError(f"elements of Q(√{self.D}) and Q(√{other.D}) given; one field is required")
            return other
        if isinstance(other, (int, fmpz, fmpq, Fraction, np.integer)) and not isinstance(other, bool):
            return Quadratic(as_fmpq(other), fmpq(0), self.D)
        return None

    def __add__(self, other: Any) -> Any:
        y = self._coerce(other)
        return NotImplemented if y is None else Quadratic(self.a + y.a, self.b + y.b, self.D)

    def __sub__(self, other: Any) -> Any:
        y = self._coerce(other)
        return NotImplemented if y is None else Quadratic(self.a - y.a, self.b - y.b, self.D)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        y = self._coerce(other)
        if y is None:
            return NotImplemented
        return Quadratic(self.a * y.a + self.D * self.b * y.b, self.a * y.b + self.b * y.a, self.D)

    def __truediv__(self, other: Any) -> Any:
        y = self._coerce(other)
        return NotImplemented if y is None else self * y.inverse()

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Quadratic:
        return Quadratic(-self.a, -self.b, self.D)

    def __pow__(self, exponent: int) -> Quadratic:
        base = self if exponent >= 0 else self.inverse()
        result = Quadratic(fmpq(1), fmpq(0), self.D)
        for bit in bin(abs(exponent))[2:]:
            result = result * result
            if bit == "1":
                result = result * base
        return result

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, Quadratic) and other.D != self.D:
            return self.b == other.b == 0 and bool(self.a == other.a)
        y = self._coerce(other)
        return NotImplemented if y is None else bool(self.a == y.a and self.b == y.b)

    def __hash__(self) -> int:
        return hash(self.a) if self.b == 0 else hash((self.a, self.b, self.D))

    def __bool__(self) -> bool:
        return bool(self.a != 0 or self.b != 0)

    def conjugate(self) -> Quadratic:
        """a − b√D."""
        return Quadratic(self.a, -self.b, self.D)

    def norm(self) -> fmpq:
        """a² − D b², zero only for zero."""
        return self.a * self.a - self.D * self.b * self.b

    def inverse(self) -> Quadratic:
        """1/x for x ≠ 0."""
        norm = self.norm()
        if norm == 0:
            raise ZeroDivisionError("inverse of zero")
        return Quadratic(self.a / norm, -self.b / norm, self.D)

    def __complex__(self) -> complex:
        if self.D > 0:
            return complex(float(self))
        return complex(float(self.a), _round_to_float(lambda: arb(self.b) * arb(-self.D).sqrt()))

    def __float__(self) -> float:
        if self.D < 0 and self.b != 0:
            raise DomainError(f"{self} given, not a real number; use complex() or a field with D > 0")
        return _round_to_float(lambda: arb(self.a) + arb(self.b) * arb(abs(self.D)).sqrt())

    def __str__(self) -> str:
        if self.b == 0:
            return str(self.a)
        tail = f"{self.b}*sqrt({self.D})"
        if self.a == 0:
            return tail
        return f"{self.a}{'' if self.b < 0 else '+'}{tail}"

    def __repr__(self) -> str:
        return f"Quadratic({str(self)!r})"


def _round_to_float(compute: Callable[[], arb]) -> float:
    """The value to full double precision, whatever cancels: the working precision is doubled until it suffices."""
    precision = 128
    while True:
        with Balls(precision).working():
            value = compute()
        if value.rel_accuracy_bits() >= 60 or value.is_zero():
            return float(value.mid())
        precision *= 2


def _is_squarefree(n: int) -> bool:
    """Whether n has no square factor; from 2^63 on only whether it is no square, for factoring would take too long."""
    if abs(n) >= 2**63:
        return n < 0 or isqrt(n) ** 2 != n
    return all(exponent == 1 for _, exponent in fmpz(abs(n)).factor())


@dataclass(frozen=True)
class QuadraticField(ExtensionField):
    """The field Q(√D); arrays have object dtype with :class:`Quadratic` entries.

    >>> field = QuadraticField(2)
    >>> field.matmul(field.convert([["sqrt(2)", 1]]), field.convert([["sqrt(2)"], ["1/2"]]))[0, 0]
    Quadratic('5/2')
    """

    D: int
    name: ClassVar[str] = "quadratic"

    def __post_init__(self) -> None:
        if isinstance(self.D, bool) or not isinstance(self.D, int):
            raise InputError(f"D = {self.D!r} given; a squarefree integer is required")
        if self.D in (0, 1) or not _is_squarefree(self.D):
            raise InputError(f"D = {self.D} given; a squarefree integer other than 0 and 1 is required")

    @property
    def is_real(self) -> bool:
        return self.D > 0

    @property
    def label(self) -> str:
        return f"Q(√{self.D})"

    @property
    def written(self) -> str:
        return f"Q(sqrt({self.D}))"

    def minimal_polynomial(self) -> tuple[fmpq, ...]:
        return fmpq(-self.D), fmpq(0), fmpq(1)

    def element(self, a: Any, b: Any = 0) -> Quadratic:
        """a + b√D."""
        return Quadratic(as_fmpq(a), as_fmpq(b), self.D)

    def parse(self, text: str) -> Quadratic:
        """The element written as "a", "b*sqrt(D)" or "a+b*sqrt(D)" with rational a and b.

        >>> QuadraticField(5).parse("1/2-sqrt(5)")
        Quadratic('1/2-1*sqrt(5)')
        """
        match = _SUM.fullmatch(text.replace(" ", ""))
        if match is None:
            return self.element(text)
        a, sign, b, D = match.groups()
        if str(self.D) != D:
            raise InputError(f"entry {text[:40]!r} given; an element of Q(√{self.D}) is required")
        return self.element(a or 0, sign + (b or "1"))

    def entry(self, x: Any) -> Quadratic:
        if isinstance(x, Quadratic):
            if x.D != self.D:
                raise InputError(f"entry {x} given; an element of Q(√{self.D}) is required")
            return x
        return self.parse(x) if isinstance(x, str) else self.element(x)

    def number(self, *coefficients: fmpq) -> Quadratic:
        a, b = coefficients
        return Quadratic(a, b, self.D)
