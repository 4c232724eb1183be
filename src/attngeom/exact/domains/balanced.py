"""GF(p) with balanced floating point residues: products are BLAS calls, and nothing is converted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array, check_product, check_square
from attngeom.exact.domains.domain import singular
from attngeom.exact.domains.prime import GF, FiniteField, PrimeField
from attngeom.exact.modular import Echelon
from attngeom.exact.primes import check_prime
from attngeom.exact.residues import BalancedResidues


@dataclass(frozen=True)
class BalancedField(BalancedResidues, FiniteField):
    """GF(p), p < 2^31, with entries in [−p/2, p/2] held in float64, or float32 for p < 2^8.

    >>> BalancedField(7).matmul(np.array([[2.0, 3.0]]), np.array([[2.0], [3.0]])).tolist()
    [[-1.0]]
    """

    def __post_init__(self) -> None:
        check_prime(self.p)
        super().__post_init__()

    @property
    def _integers(self) -> PrimeField:
        """The same field with residues in [0, p)."""
        return GF(self.p)

    def convert(self, data: Any) -> Array:
        return self.from_residues(self._integers.convert(data))

    def reduce(self, a: Array) -> Array:
        return self.balance(np.array(a, dtype=self.dtype))

    def invert(self, a: Any) -> Any:
        return self.from_residues(np.asarray(self._integers.invert(self.to_integers(np.asarray(a)))))[()]

    def matmul(self, a: Array, b: Array) -> Array:
        check_product(a, b)
        return self.multiply(a, b)

    def add(self, a: Array, b: Array) -> Array:
        return self.balance(a + b)

    def add_products(self, a: Array, b: Array, c: Array, d: Array) -> Array:
        if self.is_split or a.shape[-1] + c.shape[-1] > self.depth:
            return super().add_products(a, b, c, d)
        check_product(a, b)
        check_product(c, d)
        # Reduced once: both products together are exact.
        return self.balance(a @ b + c @ d)

    def inverse(self, a: Array) -> Array:
        check_square(a)
        inverse = self.invert_matrix(a)
        if inverse is None:
            raise singular(a)
        return inverse

    def rank(self, a: Array) -> int:
        return self._integers.rank(self.to_integers(a))

    def rref(self, a: Array) -> Echelon:
        echelon = self._integers.rref(self.to_integers(a))
        return Echelon(self.from_residues(echelon.matrix), echelon.pivots)

    def det(self, a: Array) -> Any:
        return self.from_residues(np.asarray(self._integers.det(self.to_integers(a))))[()]

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.from_residues(self._integers.random(shape, rng))
