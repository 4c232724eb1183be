"""The rank of a block Hankel matrix over GF(p), in time quadratic in its size.

A vector (c_0, …, c_{e−1}) of rows c_i of length m is in the left kernel of H = (S_{i+j})_{i<e, j<f} if and only if the
coefficients e−1, …, e+f−2 of c(z) S(z) vanish, c(z) = Σ c_i z^{e−1−i}: c S = q mod z^{e+f−1} with deg q < e−1. All such
(c, q) are the vectors of degree below e in a module over GF(p)[z], q counted one degree higher. A reduced basis of it
has m + n rows, and if δ_i are their degrees then the kernel has dimension Σ max(0, e − δ_i). The basis is built order
by order; only the degrees and what the basis makes of (S, −I), the remainder, are needed.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.domains.prime import BalancedField


def hankel_rank(sequence: Array, rows: int, field: BalancedField) -> int:
    """The rank of (S_{i+j}) with ``rows`` block rows and all block columns that the sequence (L, m, n) allows.

    >>> field = BalancedField(101)
    >>> hankel_rank(np.array([1.0, 1.0, 2.0, 3.0, 5.0]).reshape(5, 1, 1), 3, field)
    2
    """
    length, m, n = sequence.shape
    remainder = np.zeros((m + n, length * n), dtype=field.dtype)
    remainder[:m] = np.moveaxis(sequence, 1, 0).reshape(m, -1)
    remainder[m:, :n] = -np.eye(n, dtype=field.dtype)
    degrees, pending = np.repeat([0, 1], [m, n]), 0
    for start in range(0, length * n, n):
        # The first n independent rows in the order of degrees; every other row is cleared by those before it.
        order = np.argsort(degrees, kind="stable")
        echelon = field.rref(field.balance(remainder[order, start : start + n]).T)
        pivots = order[list(echelon.pivots)]
        factors = np.empty((m + n, n), dtype=field.dtype)
        factors[order] = echelon.matrix.T
        factors[pivots] = 0
        moved = field.balance(remainder[pivots, start:])
        pending = field.accumulate_product(remainder[:, start + n :], factors, moved[:, n:], pending)
        # The pivots are multiplied by z.
        remainder[pivots, start + n :] = moved[:, :-n]
        degrees[pivots] += 1
    return int(rows * m - np.maximum(rows - degrees, 0).sum())
