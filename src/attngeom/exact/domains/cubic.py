"""The field Q(θ) of a root θ of an irreducible rational cubic; signs are those at its least real root."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from flint import arb, fmpq, fmpq_poly

from attngeom.errors import InputError
from attngeom.exact.domains.balls import Balls
from attngeom.exact.domains.extension import AlgebraicNumber, ExtensionField
from attngeom.exact.numbers import as_fmpq


class CubicNumber(AlgebraicNumber):
    """The number a + bθ + cθ² of a cubic field.

    >>> root = CubicField((-2, 0, 0, 1)).element(0, 1)
    >>> (root * root * root).coefficients, root.sign()
    ((2, 0, 0), 1)
    """

    __slots__ = ()
    field: CubicField

    def sign(self) -> int:
        """The sign at the least real root of the modulus, certified by an enclosure.

        A nonzero number is not zero at any root of an irreducible modulus, so some precision decides.
        """
        if not self:
            return 0
        precision = 64
        while True:
            with Balls(precision).working():
                root = _least_real_root(self.field.modulus, precision)
                a, b, c = (arb(x) for x in self.coefficients)
                value = a + root * (b + root * c)
            if value > 0 or value < 0:
                return 1 if value > 0 else -1
            precision *= 2

    def __str__(self) -> str:
        return " + ".join(f"{c}{power}" for c, power in zip(self.coefficients, ("", "*t", "*t^2")) if c != 0) or "0"


@dataclass(frozen=True)
class CubicField(ExtensionField):
    """Q(θ) for a root θ of a monic rational cubic without rational root, coefficients from the constant one up.

    Modulo a reducible cubic products of nonzero numbers can vanish: such moduli are refused.

    >>> field = CubicField((-2, 0, 0, 1))
    >>> field.rank(field.convert([[field.element(0, 1), 2], [1, field.element(0, 0, 1)]]))
    1
    """

    modulus: tuple[fmpq, ...]
    name: ClassVar[str] = "cubic"
    number: ClassVar[type[AlgebraicNumber]] = CubicNumber

    def __post_init__(self) -> None:
        modulus = tuple(as_fmpq(c) for c in self.modulus)
        if len(modulus) != 4 or modulus[3] != 1:
            raise InputError("a modulus that is no monic cubic given; four coefficients, the last one 1, are required")
        factors = fmpq_poly(list(modulus)).factor()[1]
        if len(factors) != 1 or factors[0][1] != 1:
            raise InputError("a reducible modulus given; a cubic that is irreducible over Q is required")
        object.__setattr__(self, "modulus", modulus)

    @property
    def label(self) -> str:
        return f"Q(t)/({self.polynomial.str(var='t')})"

    def format(self, entry: Any) -> Any:
        return [str(c) for c in entry.coefficients]

    def minimal_polynomial(self) -> tuple[fmpq, ...]:
        return self.modulus


@lru_cache(maxsize=64)
def _least_real_root(modulus: tuple[fmpq, ...], precision: int) -> arb:
    """An enclosure of the least real root of a cubic, which has at least one.

    FLINT isolates the roots: enclosures are disjoint, and those of real roots have imaginary part 0 exactly.
    """
    with Balls(precision).working():
        roots: Any = fmpq_poly(list(modulus)).numer().complex_roots()
        real: list[arb] = [root.real for root, _ in roots if root.imag == 0]
        return next(x for x in real if all(x < y for y in real if y is not x))
