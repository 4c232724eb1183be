"""Linear maps mod p that are known by their products: derivatives of networks at a point, and Schur complements.

The rank of such a map is a lower bound for the rank over Q of the derivative, whatever the point is. Networks of every
sort say how vectors are pushed through them; what is eliminated by hand, and how ranks follow, is written here once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from attngeom.exact.domains import Array, BalancedField
from attngeom.exact.modular import choose_minor
from attngeom.limits.memory import PIVOT_ENTRIES


class LinearMap(ABC):
    """A linear map J from GF(p)^size to GF(p)^outputs, by its products with stacks of vectors of balanced residues."""

    field: BalancedField
    size: int
    outputs: int

    @abstractmethod
    def push(self, vectors: Array) -> Array:
        """J times each of the rows (q, size): (q, outputs)."""


class ClearedMap(LinearMap):
    """What is left of (W, u) ↦ (W b_k + M_k u)_k, W with d rows, when r independent vectors b_k clear all others.

    ``rest`` is M, with d outputs for each k, and ``features`` are the b_k, of length r. The columns of W are B ⊗ I: the
    rank is ``cleared`` = r d plus the rank of this map.
    """

    def __init__(self, rest: LinearMap, features: Array, pivots: tuple[int, ...]) -> None:
        self.rest, self.field, self.size = rest, rest.field, rest.size
        self.pivots = np.array(pivots, dtype=np.intp)
        self.others = np.setdiff1d(np.arange(len(features)), self.pivots)
        self.width = rest.outputs // len(features)
        self.cleared, self.outputs = len(pivots) * self.width, len(self.others) * self.width
        inverse = self.field.inverse(features[self.pivots])
        self.clear = self.field.matmul(features[self.others], inverse)

    def push(self, vectors: Array) -> Array:
        moved = self.rest.push(vectors).reshape(len(vectors), self.rest.outputs // self.width, self.width)
        left = moved[:, self.others]
        self.field.subtract_product(left, self.clear, moved[:, self.pivots])
        return left.reshape(len(vectors), self.outputs)


def independent_features(features: Array, p: int) -> tuple[int, ...] | None:
    """Rows of an invertible square part of the vectors b_k; None if these do not span their space.

    >>> independent_features(np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 1.0]]), 101)
    (0, 2)
    """
    minor = choose_minor(features.copy(), p)
    return minor.rows if minor.rank == features.shape[1] else None


def cleared_rank(
    features: Array, rows: Array, pivots: Array, pivot_rows: Callable[[slice], Array], field: BalancedField
) -> int:
    """The rank r d + rank of the cleared rows, for rows of (W, u) ↦ (W b_k + M_k u)_i that are held whole.

    ``rows`` (d, m, n) are those of M_k for each output i, which are overwritten, with ``features`` (d, m, r) as their
    vectors b; ``pivots`` (r, r) is an invertible matrix of further ones, and ``pivot_rows`` gives their rows
    (outputs, r, n) for a slice of outputs i.
    """
    d, m, n = rows.shape
    size = len(pivots)
    clear = field.matmul(features, field.inverse(pivots))
    step = max(1, PIVOT_ENTRIES // max(1, size * n))
    for start in range(0, d, step):
        part = slice(start, start + step)
        field.subtract_product(rows[part], clear[part], pivot_rows(part))
    rank: int = size * d + choose_minor(rows.reshape(d * m, n), field.p).rank
    return rank
