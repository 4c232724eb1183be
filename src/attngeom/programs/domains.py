"""Every coefficient domain as one in which programs run: exponentials, logarithms and roots where it has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq

from attngeom.errors import DomainError
from attngeom.exact.arrays import Array
from attngeom.exact.domains import Domain
from attngeom.programs.arithmetic import Arithmetic, RealArithmetic

FUNCTIONS: dict[str, tuple[Callable[[arb], arb], Callable[[arb], arb]]] = {
    "exp": (arb.exp, arb.exp),
    "log": (arb.log, lambda x: 1 / x),
    "sin": (arb.sin, arb.cos),
    "cos": (arb.cos, lambda x: -x.sin()),
}
"""Functions of balls with their derivatives."""


class DomainArithmetic(Arithmetic):
    """The arithmetic of a domain of :mod:`attngeom.exact.domains`: Q, GF(p), balls, polynomials.

    >>> from attngeom.exact.domains import GF
    >>> DomainArithmetic(GF(7)).invert(np.array([3])).tolist()
    [5]
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def constant(self, entries: Sequence[Fraction], shape: tuple[int, ...]) -> Array:
        numbers = [fmpq(x.numerator, x.denominator) for x in map(Fraction, entries)]
        return self.domain.convert(np.array(numbers, dtype=object)).reshape(1, *shape)

    def circle(self, classes: Array, multiples: Array, angles: Sequence[float]) -> tuple[Array, Array]:
        self._check("circle points")
        exact = [arb(angle) for angle in angles]
        radians = [exact[c] * int(n) for c, n in zip(classes.tolist(), multiples.tolist())]
        cos, sin = (np.array([f(x) for x in radians], dtype=object) for f in (arb.cos, arb.sin))
        return cos, sin

    def matmul(self, a: Array, b: Array) -> Array:
        return self.domain.matmul(a, b)

    def reduce(self, a: Array) -> Array:
        return self.domain.reduce(a)

    def times(self, a: Array, b: Array) -> Array:
        return np.asarray(self.domain.times(a, b))

    def invert(self, a: Array) -> Array:
        return np.asarray(self.domain.invert(a))

    def root(self, a: Array) -> Array:
        self._check("a root")
        return self._each(arb.sqrt, a)

    def function(self, name: str, a: Array, below: Array | None) -> tuple[Array, Array]:
        self._check(name)
        if name not in FUNCTIONS:
            raise DomainError(f"{name} in balls was asked for; floats or GF(p) are required")
        value, slope = (self._each(f, a) for f in FUNCTIONS[name])
        return value, slope

    @staticmethod
    def _each(f: Callable[[Any], Any], a: Array) -> Array:
        return np.asarray(np.frompyfunc(f, 1, 1)(a), dtype=object)

    def _check(self, what: str) -> None:
        if not self.domain.encloses:
            raise DomainError(f"{what} over {self.domain.name} was asked for; floats or balls are required")


def arithmetic_of(domain: Domain) -> Arithmetic:
    """The arithmetic in which programs run over a domain."""
    return RealArithmetic() if domain.rounds else DomainArithmetic(domain)
