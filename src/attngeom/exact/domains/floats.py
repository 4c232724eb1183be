"""Double precision numbers: fast, never a proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from flint import arb

from attngeom.errors import InputError
from attngeom.exact.arrays import Array, check_product, check_square, elementwise
from attngeom.exact.domains.domain import Domain, no_inverse
from attngeom.exact.domains.quadratic import Quadratic
from attngeom.exact.lapack import det, inv
from attngeom.exact.numbers import as_fmpq


@dataclass(frozen=True)
class Floats(Domain):
    """Double precision numbers; quadratic numbers and balls are rounded.

    >>> RR.convert([["1/2", 3]]).tolist()
    [[0.5, 3.0]]
    """

    name: ClassVar[str] = "RR"
    is_exact: ClassVar[bool] = False
    rounds: ClassVar[bool] = True

    def convert(self, data: Any) -> Array:
        if isinstance(data, np.ndarray) and data.dtype.kind in "iuf":
            array = data.astype(np.float64)
        else:
            array = elementwise(_as_float, data).astype(np.float64)
        if not np.all(np.isfinite(array)):
            raise InputError("array with NaN or infinite entries given; finite numbers are required")
        return array

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape)

    def invert(self, a: Any) -> Any:
        if not np.all(a):
            raise no_inverse()
        return 1.0 / a

    def matmul(self, a: Array, b: Array) -> Array:
        check_product(a, b)
        product: Array = np.matmul(a, b)
        return product

    def inverse(self, a: Array) -> Array:
        check_square(a)
        return inv(a)

    def pivot(self, a: Array) -> int:
        """The place of the largest entry."""
        if not np.any(a):
            raise no_inverse()
        return int(np.argmax(np.abs(a)))

    def sqrt(self, x: Any) -> float | None:
        return float(np.sqrt(x)) if x >= 0 else None

    def exp(self, a: Array) -> Array:
        # Beyond the range of floats the exponential is infinite and its inverse 0, as it should be.
        with np.errstate(over="ignore"):
            powers: Array = np.exp(a)
        return powers

    def det(self, a: Array) -> Any:
        """The determinants over the last two axes, rounded."""
        if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            raise InputError(f"array of shape {a.shape} given; square matrices are required")
        return det(a)

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.standard_normal(shape)

    def is_zero(self, a: Array) -> bool:
        return not np.any(a)

    def format(self, entry: Any) -> float:
        return float(entry)


def _as_float(x: Any) -> float:
    if isinstance(x, arb):
        return float(x.mid())
    try:
        return float(x) if isinstance(x, Quadratic) else float(as_fmpq(x))
    except OverflowError:
        # Beyond the range of floats, which convert() refuses.
        return float("inf")


RR = Floats()
