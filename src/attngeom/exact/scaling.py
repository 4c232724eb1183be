"""Floats as mantissas times a power of two, so that products of large or small numbers neither overflow nor vanish."""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array

THIRD_ROOT = 2.0 ** (-2 / 3)


def split_scale(array: Array) -> tuple[Array, int]:
    """(m, e) with array = m · 2^e exactly up to underflow, the largest |m| in [1/2, 1); e = 0 for the zero array.

    >>> split_scale(np.array([6.0, -1.0]))
    (array([ 0.75 , -0.125]), 3)
    """
    largest = float(np.max(np.abs(array), initial=0.0))
    exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) else 0
    return join_scale(array, -exponent), exponent


def near_exponents(array: Array) -> Array:
    """For each entry the e with 2^(e − 2/3) ≤ |a| < 2^(e + 1/3), 0 for zeros.

    The ends are third roots, so that powers of two, their square roots and what rounding makes of these have one e.

    >>> near_exponents(np.array([1.0, 1 - 2**-53, 0.75, -4.0])).tolist()
    [0, 0, 0, 2]
    """
    mantissas, exponents = np.frexp(array)
    return np.asarray(exponents - ((mantissas != 0) & (np.abs(mantissas) < THIRD_ROOT)))


def join_scale(array: Array, exponent: int) -> Array:
    """array · 2^exponent; the power itself may leave the range of floats.

    >>> join_scale(np.array([0.5]), 2).item()
    2.0
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(array, exponent))
