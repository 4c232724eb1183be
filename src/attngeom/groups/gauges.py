"""One pair of matrices for every orbit of (C T, C⁻ᵀ S): the gauges in which GL(n) is fixed.

echelon: an identity at pivot columns of T, all entries at most 1.05; pivots hang on the span of the rows alone, so that
no gap of singular values amplifies the rounding of two copies. balanced: SᵀT split by its singular values, of least
norm. rotated: balanced, then a Hadamard matrix (for quantisation).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups.balance import balance
from attngeom.groups.pivots import choose_pivots, tall_qr
from attngeom.limits.rounding import SINGULAR_CONDITION

Gauge = Literal["echelon", "balanced", "rotated"]
DEFAULT: Gauge = "echelon"


def fix_pair(left: Array, right: Array, gauge: Gauge) -> tuple[Array, Array]:
    """The chosen gauge of a pair with leftᵀ right kept.

    >>> [part.tolist() for part in fix_pair(np.array([[2.0, 4.0]]), np.array([[3.0]]), "echelon")]
    [[[0.5, 1.0]], [[12.0]]]
    """
    if gauge == "echelon":
        return _to_echelon(left, right)
    left, right = balanced_pair(left, right)
    if gauge == "rotated":
        matrix = hadamard(len(left))
        return matrix @ left, matrix @ right
    return left, right


def balanced_pair(left: Array, right: Array, cut: float = 1e-14) -> tuple[Array, Array]:
    """left (a, m) and right (a, n) with leftᵀ right kept, rows orthogonal on both sides, of equal norms, decreasing.

    Singular values of at most ``cut`` times the largest, and the missing ones, give rows of zeros.
    """
    pair = balance(left, right, cut)
    return pair.T, pair.S


def _to_echelon(left: Array, right: Array) -> tuple[Array, Array]:
    """An identity in columns of left that its row space alone determines; rows of zeros if left has no full rank."""
    q, r = tall_qr(left.T)
    if len(r) < len(left) or lapack.cond(r) > SINGULAR_CONDITION:
        left, right = balanced_pair(left, right, 10 / SINGULAR_CONDITION)
        rank = int(np.any(left, axis=1).sum())
        if rank:
            left[:rank], right[:rank] = _to_echelon(left[:rank], right[:rank])
        return left, right
    pivots, _ = choose_pivots(q.T)
    rows = lapack.inv(q.T[:, pivots]) @ q.T
    rows[:, pivots] = np.eye(len(left))
    # Adding zero makes −0.0 to 0.0: entries that the gauge fixes are equal in all bits.
    return rows + 0.0, left[:, pivots].T @ right + 0.0


def hadamard(size: int) -> Array:
    """An orthogonal matrix that spreads coordinates: Hadamard blocks of the largest power of two that divides size."""
    if not size:
        return np.zeros((0, 0))
    power, block = size & -size, np.ones((1, 1))
    while len(block) < power:
        block = np.block([[block, block], [block, -block]])
    return np.kron(np.eye(size // power), block / np.sqrt(power))
