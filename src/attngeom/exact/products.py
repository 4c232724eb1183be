"""Products of matrices mod p in float64 BLAS, without rounding."""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array, check_product
from attngeom.exact.residues import BalancedResidues

SMALL = 2**12
"""Up to this number of products the overhead of the calls is all that counts."""


def matmul_mod(a: Array, b: Array, p: int) -> Array:
    """a b mod p for int64 residues in [0, p) and p < 2^31, exact, in float64 BLAS; batched over leading axes.

    >>> matmul_mod(np.array([[2, 3]]), np.array([[4], [5]]), 7).tolist()
    [[2]]
    """
    check_product(a, b)
    field = BalancedResidues(p)
    if a.size * b.shape[-1] <= SMALL and b.ndim == 2:
        # A few integer operations on all products at once; sums of k < 2^32 residues fit in int64.
        return np.asarray((a[..., :, :, None] * b % p).sum(axis=-2) % p)
    return field.to_integers(field.multiply(field.from_residues(a), field.from_residues(b)))
