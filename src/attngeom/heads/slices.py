"""A layer in floats as a linear map Z ↦ T_Z = Σ_h V_h Z A_h from symmetric d×d matrices to d_out×d matrices.

T_{yyᵀ} is the table of quadrics at y. Sources know how to contract themselves with many Z at once, and how to give a
block L T_{yyᵀ} R at many y without the whole table, which at width 768 would not fit in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from attngeom.exact.domains import Array
from attngeom.exact.multisets import pair_rows
from attngeom.network import Weights


class Slices(Protocol):
    """What the search for heads in floats asks of a layer."""

    d: int
    d_out: int

    def contract(self, Z: Array) -> Array:
        """T_Z for symmetric matrices Z (k, d, d): an array (k, d_out, d)."""

    def block(self, left: Array, right: Array, y: Array) -> Array:
        """left T_{yyᵀ} right for points y (k, d): an array (k, rows of left, columns of right)."""


class TableSlices:
    """The slices of a table of quadrics (d_out, d, d(d+1)/2)."""

    def __init__(self, table: Array) -> None:
        self.table = table
        self.d_out, self.d, _ = table.shape
        self.upper = pair_rows(self.d)

    def contract(self, Z: Array) -> Array:
        values: Array = np.einsum("oms,ks->kom", self.table, Z[:, self.upper[0], self.upper[1]])
        return values

    def block(self, left: Array, right: Array, y: Array) -> Array:
        squares = y[:, self.upper[0]] * y[:, self.upper[1]]
        projected = np.einsum("ro,oms,mc->rsc", left, self.table, right, optimize=True)
        values: Array = np.einsum("rsc,ks->krc", projected, squares)
        return values


class WeightSlices:
    """The slices of weights of one layer, never expanded; head h counts ``scales[h]`` times."""

    def __init__(self, weights: Weights, scales: Sequence[float] | None = None) -> None:
        layer = weights.architecture.layers[0]
        self.d, self.d_out = layer.d_in, layer.d_out
        self.heads: Sequence[tuple[Array, Array, Array, Array]] = [
            ((head.O if head.O is not None else np.eye(self.d_out)) * scale, head.V, head.K, head.Q)
            for head, scale in zip(weights.layers[0], scales or [1.0] * len(weights.layers[0]))
        ]

    def contract(self, Z: Array) -> Array:
        total = np.zeros((len(Z), self.d_out, self.d))
        for O, W, K, Q in self.heads:
            total += O @ (W @ Z @ K.T) @ Q
        return total

    def block(self, left: Array, right: Array, y: Array) -> Array:
        lefts = np.stack([y @ (left @ O @ W).T for O, W, _, _ in self.heads], axis=2)
        rights = np.stack([y @ (K.T @ (Q @ right)) for _, _, K, Q in self.heads], axis=1)
        values: Array = lefts @ rights
        return values


def random_symmetric(count: int, d: int, rng: np.random.Generator) -> Array:
    """Random symmetric matrices of norm about one."""
    Z = rng.standard_normal((count, d, d))
    symmetric: Array = (Z + np.swapaxes(Z, 1, 2)) / np.sqrt(8 * d)
    return symmetric
