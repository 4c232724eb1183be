"""Real balls of any precision: every operation encloses the true value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat

from attngeom.errors import InputError, SingularError
from attngeom.exact.arrays import Array, broadcast_product, check_square, elementwise, from_flint
from attngeom.exact.domains.domain import Domain, no_inverse
from attngeom.exact.numbers import ClearedMatrix, as_fmpq


@dataclass(frozen=True)
class Balls(Domain):
    """Real balls (midpoint and radius): every operation encloses the true value.

    >>> bool(Balls(64).matmul(Balls(64).convert([["1/3"]]), Balls(64).convert([[3]]))[0, 0].contains(1))
    True
    """

    precision: int = 128
    name: ClassVar[str] = "balls"
    is_exact: ClassVar[bool] = False
    encloses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 2 <= self.precision <= 2**20:
            raise InputError(f"precision {self.precision} given; between 2 and 2^20 bits are required")

    @contextmanager
    def working(self) -> Iterator[None]:
        before = flint.ctx.prec
        flint.ctx.prec = self.precision
        try:
            yield
        finally:
            flint.ctx.prec = before

    def convert(self, data: Any) -> Array:
        with self.working():
            if isinstance(data, np.ndarray) and data.ndim == 2 and set(map(type, data.ravel().tolist())) == {fmpq}:
                return from_flint(arb_mat(fmpq_mat(data.shape[0], data.shape[1], data.ravel().tolist())))
            return elementwise(lambda x: x if isinstance(x, arb) else arb(as_fmpq(x)), data)

    def to_flint(self, a: Array) -> arb_mat:
        return arb_mat(a.shape[0], a.shape[1], a.ravel().tolist())

    def from_flint(self, matrix: arb_mat) -> Array:
        return from_flint(matrix)

    def image(self, a: ClearedMatrix) -> arb_mat:
        """The balls around a rational matrix, inside FLINT."""
        with self.working():
            return arb_mat(a.matrix) / a.denominator

    def times(self, a: Any, b: Any) -> Any:
        with self.working():
            return a * b

    def invert(self, a: Any) -> Any:
        with self.working():
            inverses = np.frompyfunc(lambda x: arb(1) / x, 1, 1)(a)
        # Division by a ball around zero gives infinite or indeterminate balls.
        if not all(x.is_finite() for x in np.asarray(inverses).ravel()):
            raise no_inverse()
        return inverses

    def matmul(self, a: Array, b: Array) -> Array:
        with self.working():
            return broadcast_product(lambda x, y: self.from_flint(self.to_flint(x) * self.to_flint(y)), a, b)

    def inverse(self, a: Array) -> Array:
        check_square(a)
        with self.working():
            try:
                return self.from_flint(self.to_flint(a).inv())
            except ZeroDivisionError:
                raise SingularError(
                    f"{a.shape[0]}×{a.shape[1]} matrix of balls not certainly invertible; raise the precision"
                ) from None

    def pivot(self, a: Array) -> int:
        """The place of the entry that is farthest from zero for certain."""
        bounds = [float(x.abs_lower()) for x in a.ravel()]
        if not any(bounds):
            raise no_inverse()
        return int(np.argmax(bounds))

    def exp(self, a: Array) -> Array:
        with self.working():
            powers: Array = np.frompyfunc(lambda x: x.exp(), 1, 1)(a)
            return powers

    def _large_det(self, a: Array) -> arb:
        return self.to_flint(a).det()

    def is_zero(self, a: Array) -> bool:
        return all(x.is_zero() for x in a.ravel())

    def equal(self, a: Array, b: Array) -> bool:
        """Whether all balls of a and b overlap: False proves a difference, True does not prove equality."""
        return a.shape == b.shape and all(x.overlaps(y) for x, y in zip(a.ravel(), b.ravel()))
