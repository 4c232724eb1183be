"""The quadratic field Q(√D), D ≠ 0, 1 squarefree: weights that need one square root, real or imaginary."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any, ClassVar

from flint import arb, fmpq, fmpq_poly, fmpz

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains.balls import Balls
from attngeom.exact.domains.extension import AlgebraicNumber, ExtensionField
from attngeom.exact.domains.rationals import QQ

_RATIONAL = r"\d+(?:/\d+)?"
_SUM = re.compile(rf"(?:([+-]?{_RATIONAL})(?=[+-]))?([+-]?)(?:({_RATIONAL})\*)?sqrt\((-?\d+)\)")


class Quadratic(AlgebraicNumber):
    """The number a + b√D.

    >>> x = QuadraticField(-1).element(1, 2)
    >>> x * x.conjugate(), 1 / x
    (Quadratic('5'), Quadratic('1/5-2/5*sqrt(-1)'))
    """

    __slots__ = ()
    field: QuadraticField

    def conjugate(self) -> Quadratic:
        """a − b√D."""
        a, b = self.coefficients
        return self._new(fmpq_poly([a, -b]))

    def __complex__(self) -> complex:
        (a, b), D = self.coefficients, self.field.D
        if D > 0:
            return complex(float(self))
        return complex(float(a), _round_to_float(lambda: arb(b) * arb(-D).sqrt()))

    def __float__(self) -> float:
        (a, b), D = self.coefficients, self.field.D
        if D < 0 and b != 0:
            raise DomainError(f"{self} given, not a real number; use complex() or a field with D > 0")
        return _round_to_float(lambda: arb(a) + arb(b) * arb(abs(D)).sqrt())

    def __str__(self) -> str:
        a, b = self.coefficients
        if b == 0:
            return str(a)
        sign = "+" if a != 0 and b > 0 else ""
        return f"{a if a != 0 else ''}{sign}{b}*sqrt({self.field.D})"

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
    number: ClassVar[type[AlgebraicNumber]] = Quadratic

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

    def sqrt(self, x: Any) -> Any | None:
        """A root in the field: of x = a + b√D it is u + (b/2u)√D with u² = (a ± √(a² − D b²))/2, or v√D with D v² = a.

        >>> field = QuadraticField(2)
        >>> field.sqrt(field.element(3, 2)), field.sqrt(field.element(3))
        (Quadratic('1+1*sqrt(2)'), None)
        """
        a, b = self.entry(x).coefficients
        norm = QQ.sqrt(a * a - self.D * b * b)
        for half in () if norm is None else ((a + norm) / 2, (a - norm) / 2):
            u = QQ.sqrt(half)
            if u:
                return self.element(u, b / (2 * u))
        v = QQ.sqrt(a / self.D) if b == 0 else None
        return None if v is None else self.element(0, v)

    def parse(self, text: str) -> Any:
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
