"""Orthogonal matrices that keep the vector 1, as LayerNorms ask for."""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array


def complement_of_ones(d: int) -> Array:
    """Columns: an orthonormal basis of the vectors with sum zero.

    >>> bool(np.allclose(complement_of_ones(3).sum(axis=0), 0))
    True
    """
    return lapack.qr(np.concatenate([np.full((d, 1), d**-0.5), np.eye(d)[:, 1:]], axis=1))[0][:, 1:]


def fixing_ones(matrix: Array) -> Array:
    """The orthogonal factor of a matrix on the complement of 1, which stays."""
    basis, d = complement_of_ones(len(matrix)), len(matrix)
    u, _, w = lapack.svd(basis.T @ matrix @ basis)
    return np.asarray(np.full((d, d), 1.0 / d) + basis @ (u @ w) @ basis.T)
