"""Affine maps of a layer, batched over heads; readers of norms, folded when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.memory import CACHED_ENTRIES


def row_blocks(array: Array) -> Iterator[slice]:
    """Slices of the first axis of about `CACHED_ENTRIES` entries each, for passes that stay in the cache."""
    step = max(1, CACHED_ENTRIES * len(array) // max(array.size, 1))
    return (slice(start, start + step) for start in range(0, len(array), step))


def multiply(matrix: Array, x: Array) -> Array:
    """matrix @ x; a matrix of narrower floats is widened block by block, never as a whole.

    >>> multiply(np.ones((2, 3), np.float32), np.ones((3, 1))).dtype
    dtype('float64')
    """
    if matrix.ndim != 2 or not matrix.size or np.result_type(matrix, x) == matrix.dtype:
        return np.asarray(matrix @ x)
    if matrix.flags.f_contiguous and not matrix.flags.c_contiguous:
        return np.asarray(sum(matrix[:, part] @ x[part] for part in row_blocks(matrix.T)))
    return np.concatenate([matrix[part] @ x for part in row_blocks(matrix)])


class Affine:
    """x ↦ weight x + bias, batched: weight (…, out, in) and bias (…, out), real or complex.

    >>> Affine(np.array([[2.0]]), np.array([1.0]))(np.array([[3.0]])).tolist()
    [[7.0]]
    """

    def __init__(self, weight: Array, bias: Array) -> None:
        self._weight = weight
        self._bias = bias

    @property
    def weight(self) -> Array:
        return self._weight

    @property
    def bias(self) -> Array:
        return self._bias

    @classmethod
    def linear(cls, weight: Array) -> Affine:
        return cls(weight, np.zeros(weight.shape[:-1], weight.dtype))

    @property
    def rows(self) -> Array:
        """(weight | bias), the bias as a last column."""
        return np.concatenate([self.weight, self.bias[..., None]], axis=-1)

    def __call__(self, x: Array) -> Array:
        """Values at the columns of x (in, t): (…, out, t)."""
        values = multiply(self.weight, x)
        return np.asarray(values + self.bias[..., None])

    def then(self, matrix: Array) -> Affine:
        """matrix ∘ self, the matrix batched like the weight."""
        return Affine(matrix @ self.weight, (matrix @ self.bias[..., None])[..., 0])

    def scaled(self, factors: Array) -> Affine:
        """Every output multiplied by its factor; factors (…, out)."""
        return Affine(self.weight * factors[..., None], self.bias * factors)

    def after_norm(self, gain: Array, shift: Array, *, centred: bool = False) -> Affine:
        """The same map read from n where u = gain ∘ n + shift was read, rows ``centred`` if n has mean zero.

        Heads come to lie one after the other; the rows of an MLP or of a vocabulary wait until they are asked for.
        """
        bias = self.bias + (self.weight @ shift if np.any(shift) else 0.0)
        means = self.weight @ (gain / len(gain)) if centred else np.zeros(0)
        folded = FoldedReader(self, gain, means, bias)
        return folded if self.weight.ndim == 2 else Affine(folded.weight, bias)

    @property
    def by_columns(self) -> bool:
        """Whether a matrix lies in memory column by column."""
        return self.weight.flags.f_contiguous and not self.weight.flags.c_contiguous

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.weight.shape)

    @property
    def dtype(self) -> Any:
        return self.weight.dtype

    def parts(self, *, columns: bool = False) -> Iterator[slice]:
        """Rows, or columns, of a matrix in parts for passes that stay in the cache."""
        return row_blocks(np.broadcast_to(0.0, self.shape[::-1] if columns else self.shape))

    def piece(self, part: slice, order: Array | None = None, *, columns: bool = False) -> Array:
        """Rows ``part``, or such columns; with an ``order`` of the rows a copy, taken from rows in that order."""
        if order is None:
            return self.weight[:, part] if columns else self.weight[part]
        # Indices are known to be good: mode clip only spares numpy a buffer.
        rows = self.weight
        return np.take(rows[:, part].T, order, axis=1, mode="clip").T if columns else rows[order[part]]

    def project(self, directions: Array) -> Array:
        """weight @ directions, for few directions."""
        return np.asarray((directions.T @ self.weight.T).T if self.by_columns else self.weight @ directions)

    @cached_property
    def column_squares(self) -> Array:
        """Σ over all rows of |w|², per column, without a copy of the weight."""
        rows = self.weight.reshape(-1, self.weight.shape[-1])
        parts = (rows.real, rows.imag) if np.iscomplexobj(rows) else (rows,)
        return np.asarray(np.sum([np.einsum("ij,ij->j", part, part) for part in parts], axis=0, dtype=np.float64))

    @property
    def size(self) -> float:
        """The Frobenius norm of the weight."""
        return float(np.linalg.norm(self.weight.ravel(order="K")))

    def pick(self, order: Array | slice) -> Affine:
        """Entries of the first axis in the given order; a slice copies nothing."""
        weight = self.weight
        if weight.ndim == 2 and isinstance(order, np.ndarray):
            return Affine(pick_columns(weight.T, order).T, self.bias[order])
        return Affine(weight[order], self.bias[order])


class FoldedReader(Affine):
    """x ↦ (W ∘ gain − means 1ᵀ) x + bias: a reader of a norm, whose weight is made when it is asked for.

    Who only measures reads it piece by piece, in the cache.
    """

    def __init__(self, reader: Affine, gain: Array, means: Array, bias: Array) -> None:
        super().__init__(np.zeros(0), bias)
        self.reader: Affine | None = reader
        self.gain = gain
        self.means = means

    @property
    def weight(self) -> Array:
        if self.reader is not None:
            # The arrays that it is made of go.
            self._weight, self.reader = self._folded(self.reader), None
        return self._weight

    def _folded(self, reader: Affine) -> Array:
        source = reader.weight
        weight = np.empty_like(source) if source.ndim == 2 else np.empty(source.shape, source.dtype)
        columns = source.ndim == 2 and reader.by_columns
        for part in self.parts(columns=columns):
            place = (slice(None), part) if columns else part
            np.multiply(source[place], self.gain[part] if columns else self.gain, out=weight[place])
            if self.means.size:
                weight[place] -= self.means[..., None] if columns else self.means[part, ..., None]
        return weight

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.bias.shape, len(self.gain))

    @property
    def dtype(self) -> Any:
        return self.gain.dtype

    @property
    def by_columns(self) -> bool:
        return super().by_columns if self.reader is None else self.reader.by_columns

    def piece(self, part: slice, order: Array | None = None, *, columns: bool = False) -> Array:
        if self.reader is None:
            return super().piece(part, order, columns=columns)
        rows = self.reader.piece(part, order, columns=columns)
        rows = np.multiply(rows, self.gain[part] if columns else self.gain, out=None if order is None else rows)
        if self.means.size:
            means = self.means if order is None else self.means[order]
            rows -= means[:, None] if columns else means[part, None]
        return rows

    def __call__(self, x: Array) -> Array:
        if self.reader is None:
            return super().__call__(x)
        values = multiply(self.reader.weight, self.gain[:, None] * x)
        shifts = self.bias[..., None] - (self.means[..., None] * x.sum(axis=0) if self.means.size else 0.0)
        return np.asarray(values + shifts)

    def project(self, directions: Array) -> Array:
        if self.reader is None:
            return super().project(directions)
        projected = self.reader.project(self.gain[:, None] * directions)
        return projected - np.outer(self.means, directions.sum(axis=0)) if self.means.size else projected

    @property
    def size(self) -> float:
        """By the columns that were read, unless most of them is the mean that was taken away."""
        if self.reader is None:
            return super().size
        whole = float(self.reader.column_squares @ self.gain**2)
        rest = whole - len(self.gain) * float(self.means @ self.means)
        return float(np.sqrt(rest)) if rest > 1e-3 * whole else super().size


def pick_columns(matrix: Array, order: Array) -> Array:
    """matrix[:, order], by rows of the transpose where that is how the matrix lies in memory."""
    if matrix.flags.f_contiguous:
        return matrix.T[order].T
    # Indices are known to be good: mode clip only spares numpy a buffer.
    return np.take(matrix, order, axis=1, mode="clip")
