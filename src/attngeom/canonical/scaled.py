"""Matrices with a power of two and a bound on rounding errors apart, so that products of any size can be formed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.exact.numbers import join_scale, split_scale

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Scaled:
    """array · 2^exponent; ``noise`` is about ‖rounding errors‖ / ‖array‖. Over exact domains both are 0."""

    array: Array
    exponent: int = 0
    noise: float = 0.0

    @property
    def is_zero(self) -> bool:
        """Whether nothing is left but rounding errors."""
        return self.noise >= 1 or not np.any(self.array)

    def split(self, domain: Domain) -> Scaled:
        """The same matrix with entries of size one."""
        if domain.is_exact:
            return self
        unit, exponent = split_scale(self.array)
        return Scaled(unit, self.exponent + exponent, self.noise)

    def join(self, exponent: int = 0) -> Array:
        """The matrix divided by 2^exponent; entries beyond the range of floats become infinite."""
        return self.array if self.exponent == exponent else join_scale(self.array, self.exponent - exponent)

    @property
    def fits(self) -> bool:
        """Whether floats hold the matrix with all its digits."""
        return np.array_equal(join_scale(self.join(), -self.exponent), self.array)

    def transposed(self) -> Scaled:
        return Scaled(self.array.T, self.exponent, self.noise)


def multiply(domain: Domain, *factors: Scaled) -> Scaled:
    """The product of matrices, with what rounding contributes where they cancel.

    >>> from attngeom.exact import RR
    >>> huge = Scaled(np.array([[1e300]])).split(RR)
    >>> multiply(RR, huge, huge, huge).exponent
    2990
    """
    total = factors[0]
    for factor in factors[1:]:
        array = domain.matmul(total.array, factor.array)
        noise = 0.0
        if not domain.is_exact:
            sizes = float(np.linalg.norm(total.array) * np.linalg.norm(factor.array))
            size = float(np.linalg.norm(array))
            noise = (EPSILON + total.noise + factor.noise) * sizes / size if size else 0.0
        total = Scaled(array, total.exponent + factor.exponent, noise).split(domain)
    return total


def add(domain: Domain, terms: list[Scaled]) -> Scaled:
    """The sum of matrices of one shape."""
    if len(terms) == 1:
        return terms[0]
    top = max((term.exponent for term in terms if not term.is_zero), default=0)
    parts = [term.join(top) for term in terms]
    array = domain.reduce(np.sum(parts, axis=0))
    noise = 0.0
    if not domain.is_exact:
        errors = sum((EPSILON + term.noise) * float(np.linalg.norm(part)) for term, part in zip(terms, parts))
        size = float(np.linalg.norm(array))
        noise = errors / size if size else 0.0
    return Scaled(array, top, noise).split(domain)
