"""Heads of a layer in floats: the block form of its slices, then (A, V) of every block.

T_{yyᵀ} is the table of quadrics at y. Sources know how to contract themselves with many Z at once, and how to give a
block L T_{yyᵀ} R at many y without the whole table, which at width 768 would not fit in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from attngeom import digits
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.exact.multisets import pair_rows
from attngeom.exact.precise import Rank, measured_rank
from attngeom.heads.float_blocks import Blocks, block_form
from attngeom.layer.float_splitting import split_layer_floats
from attngeom.layer.quadrics import polar_points, polarize
from attngeom.limits.trials import RANDOM_SLICES, WIDE_SLICES
from attngeom.limits.work import EXPANDED_BLOCK, WIDE_SLICES_FROM
from attngeom.network import Weights
from attngeom.results import Failure


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


@dataclass(frozen=True, eq=False)
class FloatHeads:
    """Matrices (A, V) of the heads that were found, the block form behind them, and the relative residual of both.

    ``heads`` has None where a block is no head. ``basis`` holds orthonormal columns that span the outputs; ``ranks``
    are those of the two flattenings of the function.
    """

    heads: tuple[tuple[Array, Array] | None, ...]
    blocks: Blocks
    basis: Array
    ranks: tuple[Rank, Rank]
    residual: float


def find_float_heads(
    source: Slices, heads: int | None, totals: tuple[int, int] | None, noise: float, seed: int
) -> FloatHeads | Failure:
    """The heads of a layer in floats, or why there are none.

    ``totals`` are the flattening ranks Σ v and Σ a, if known; else they are read off the singular values above
    ``noise``. The residual is ‖T − Σ_h T_h‖ / ‖T‖ on slices that were not used.
    """
    rng = np.random.default_rng(seed)
    count = RANDOM_SLICES if source.d < WIDE_SLICES_FROM else WIDE_SLICES
    T = source.contract(random_symmetric(count, source.d, rng))
    size = float(np.linalg.norm(T))
    if not np.isfinite(size):
        return Failure(stage="slices", reason="the slices of the layer overflow double precision; scale the weights")
    if size == 0:
        return Failure(stage="slices", reason="the layer is zero")
    T = T / size
    full = measured_rank(T[0], RR, noise)
    if source.d == source.d_out == full.value and full.is_clear:
        # One slice of full rank shows that both flattenings have it.
        U, R, ranks = np.eye(source.d), np.eye(source.d), (full, full)
        n = m = source.d
    else:
        left, right = (np.concatenate(list(side), axis=1) for side in (T, np.swapaxes(T, 1, 2)))
        U, R = (lapack.svd(wide, full_matrices=False)[0] for wide in (left, right))
        ranks = measured_rank(left, RR, noise), measured_rank(right, RR, noise)
        n, m = ranks[0].value, ranks[1].value
    if totals is None and not (ranks[0].is_clear and ranks[1].is_clear):
        gaps = " and ".join(digits.gap(rank.gap) for rank in ranks)
        return Failure(stage="ranks", reason=f"the flattening ranks are not clear (gaps {gaps}); give the sizes")
    n, m = (n, m) if totals is None else totals
    U, R = U[:, :n], R[:, :m]
    blocks = block_form(U.T @ T @ R, heads, seed)
    if blocks is None:
        return Failure(stage="blocks", reason="the slices show no common block form")
    lefts, rights = U @ blocks.B, blocks.G @ R.T
    left_inverses, right_inverses = lapack.inv(blocks.B) @ U.T, R @ lapack.inv(blocks.G)
    split = tuple(
        _split_block(
            source, lefts[:, rows], left_inverses[rows], rights[columns], right_inverses[:, columns], noise, seed
        )
        for rows, columns in blocks.spans()
    )
    fresh = random_symmetric(2, source.d, rng)
    wanted = source.contract(fresh)
    rest = wanted.copy()
    for head in split:
        if head is not None:
            rest -= head[1] @ fresh @ head[0]
    return FloatHeads(split, blocks, U, ranks, float(np.linalg.norm(rest) / np.linalg.norm(wanted)))


def _split_block(
    source: Slices, left: Array, left_inverse: Array, right: Array, right_inverse: Array, noise: float, seed: int
) -> tuple[Array, Array] | None:
    """(A, V) of the head T_h = left · (left⁻ T right⁻) · right; None if the block is no head."""
    if source.d <= EXPANDED_BLOCK:
        values = source.block(left_inverse, right_inverse, polar_points(source.d).astype(np.float64))
        quadrics = np.ascontiguousarray(np.moveaxis(polarize(np.moveaxis(values, 0, -1), RR), -1, 0))
        table = np.einsum("or,src,cm->oms", left, quadrics, right, optimize=True)
        split = split_layer_floats(table, max(1e-4, 1e4 * noise), seed)
        return (split.points[0].A, split.points[0].V) if split.points else None
    return _from_anchor(source, left, left_inverse, right, right_inverse, np.random.default_rng(seed))


def _from_anchor(
    source: Slices, left: Array, left_inverse: Array, right: Array, right_inverse: Array, rng: np.random.Generator
) -> tuple[Array, Array] | None:
    """(A, V) from T(y) = (V y)(Aᵀ y)ᵀ at 2d + 1 points: linear once V y_0 and Aᵀ y_0 are known at one anchor y_0.

    T(y_0, z) = V y_0 (Aᵀ z)ᵀ + V z (Aᵀ y_0)ᵀ gives V z and Aᵀ z up to (c V y_0, −c Aᵀ y_0), and T(z) gives c.
    """
    d, v, a = source.d, left.shape[1], right.shape[0]
    if v == 1 and a == 1:
        return _from_form(source, left, left_inverse, right, right_inverse, rng)
    candidates = rng.standard_normal((8, d)) / np.sqrt(d)
    values = source.block(left_inverse, right_inverse, candidates)
    anchor = int(np.argmax(np.linalg.norm(values, axis=(1, 2))))
    y = candidates[anchor]
    base_left, strength, base_right = lapack.svd(values[anchor], full_matrices=False)
    root = np.sqrt(strength[0])
    if root == 0:
        return None
    u, b = base_left[:, 0], base_right[0]
    Z = lapack.qr(rng.standard_normal((d, d)))[0] * np.linalg.norm(y)
    squares = source.block(left_inverse, right_inverse, Z.T)
    mixed = source.block(left_inverse, right_inverse, Z.T + y) - squares - values[anchor]
    # mixed = root (u (Aᵀz)ᵀ + (V z) bᵀ): the parts across u and b are read off, along them one number is left.
    across_V = (mixed @ b - np.outer(mixed @ b @ u, u)) / root
    across_A = (np.swapaxes(mixed, 1, 2) @ u - np.outer(np.swapaxes(mixed, 1, 2) @ u @ b, b)) / root
    both = np.einsum("krc,r,c->k", mixed, u, b) / root
    if v > 1:
        # T(z) across u is across_V (Aᵀ z)ᵀ.
        along_A = np.einsum("krc,kr,c->k", squares, across_V, b) / np.sum(across_V**2, axis=1)
        along_V = both - along_A
    else:
        along_V = np.einsum("krc,kc,r->k", squares, across_A, u) / np.sum(across_A**2, axis=1)
        along_A = both - along_V
    V = (across_V + along_V[:, None] * u).T
    At = (across_A + along_A[:, None] * b).T
    inverse = Z.T / np.linalg.norm(y) ** 2
    return (At @ inverse).T @ right, left @ (V @ inverse)


def _from_form(
    source: Slices, left: Array, left_inverse: Array, right: Array, right_inverse: Array, rng: np.random.Generator
) -> tuple[Array, Array] | None:
    """(A, V) = (k q, o w) of a head of width one from its form (w·y)(k·y), a symmetric matrix S of rank two."""
    d = source.d
    y = rng.standard_normal((2, d)) / np.sqrt(d)

    def form(points: Array) -> Array:
        return source.block(left_inverse, right_inverse, points)[:, 0, 0]

    unit = np.eye(d)
    own = form(unit)
    columns = np.stack([(form(unit + z) - own - form(z[None])) / 2 for z in y], axis=1)
    middle = y @ columns
    S = columns @ lapack.pinv((middle + middle.T) / 2, 1e-15) @ columns.T
    values, vectors = lapack.eigh((S + S.T) / 2)
    if not (values[-1] > 0 > values[0] or abs(values[0]) < 1e-9 * values[-1] or values[-1] < 1e-9 * abs(values[0])):
        return None
    plus, minus = np.sqrt(max(values[-1], 0)) * vectors[:, -1], np.sqrt(max(-values[0], 0)) * vectors[:, 0]
    return np.outer(plus + minus, right[0]), np.outer(left[:, 0], plus - minus)


def balanced(A: Array, V: Array) -> tuple[Array, Array]:
    """The same lightning head with ‖A‖ = ‖V‖."""
    size_A, size_V = np.linalg.norm(A), np.linalg.norm(V)
    if size_A == 0 or size_V == 0:
        return A, V
    root = np.sqrt(size_V / size_A)
    return A * root, V / root
