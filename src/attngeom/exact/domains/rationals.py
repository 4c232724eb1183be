"""The field of rational numbers, in FLINT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from flint import Ordering, fmpq, fmpq_mat, fmpq_mpoly_ctx, nmod_mat
from flint.utils.flint_exceptions import DomainError as NoRootError

from attngeom.exact.arrays import Array, broadcast_product, check_matrix, check_square, elementwise, from_flint
from attngeom.exact.domains.domain import Domain, no_inverse, singular
from attngeom.exact.modular import Echelon
from attngeom.exact.numbers import WORD_PRIME, ClearedMatrix, as_fmpq


@dataclass(frozen=True)
class Rationals(Domain):
    """The field Q; entries are ``fmpq``.

    >>> QQ.inverse(QQ.convert([[1, 2], [3, 4]]))[0, 0]
    -2
    """

    name: ClassVar[str] = "QQ"
    is_exact: ClassVar[bool] = True
    is_rational: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return "Q"

    def convert(self, data: Any) -> Array:
        return elementwise(as_fmpq, data)

    def to_flint(self, a: Array) -> fmpq_mat:
        return fmpq_mat(a.shape[0], a.shape[1], a.ravel().tolist())

    def clear(self, a: Array) -> ClearedMatrix:
        """A matrix as integers over its least denominator: several products in a row are faster that way."""
        return ClearedMatrix(*self.to_flint(a).numer_denom())

    def invert(self, a: Any) -> Any:
        try:
            return np.frompyfunc(lambda x: fmpq(1) / x, 1, 1)(a)
        except ZeroDivisionError:
            raise no_inverse() from None

    def matmul(self, a: Array, b: Array) -> Array:
        return broadcast_product(lambda x, y: from_flint(self.to_flint(x) * self.to_flint(y)), a, b)

    def inverse(self, a: Array) -> Array:
        check_square(a)
        try:
            return from_flint(self.to_flint(a).inv())
        except ZeroDivisionError:
            raise singular(a) from None

    def rank(self, a: Array) -> int:
        """The rank; full rank modulo one prime is full rank, and costs no growth of digits.

        >>> QQ.rank(QQ.convert([["1/2", 1], [1, 2]]))
        1
        """
        check_matrix(a)
        matrix = self.to_flint(a if a.shape[0] >= a.shape[1] else a.T)
        # The integers over the common denominator have the same rank.
        if nmod_mat(matrix.numer_denom()[0], WORD_PRIME).rank() == min(a.shape):
            return int(min(a.shape))
        return int(matrix.rank())

    def rref(self, a: Array) -> Echelon:
        """The reduced row echelon form, without its zero rows.

        >>> QQ.rref(QQ.convert([[2, 4, 1], [1, 2, 0]]))
        Echelon(matrix=array([[1, 2, 0], [0, 0, 1]], dtype=object), pivots=(0, 2))
        """
        check_matrix(a)
        reduced, size = self.to_flint(a).rref()
        matrix = from_flint(reduced)[:size]
        return Echelon(matrix, tuple(next(j for j, x in enumerate(row) if x != 0) for row in matrix))

    def sqrt(self, x: Any) -> Any | None:
        """The root that is not negative.

        >>> QQ.sqrt(fmpq(4, 9)), QQ.sqrt(fmpq(2))
        (2/3, None)
        """
        try:
            return x.sqrt()
        except NoRootError:
            return None

    def _large_det(self, a: Array) -> Any:
        return self.to_flint(a).det()

    def polynomials(self, variables: Sequence[str]) -> fmpq_mpoly_ctx:
        return fmpq_mpoly_ctx.get(tuple(variables), Ordering.degrevlex)


QQ = Rationals()
