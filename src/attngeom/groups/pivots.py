"""Pivots that two copies of one span, or of one row, share: the first of the largest, whatever rounding says.

Orthonormal rows of a span come from QR of tall matrices by Gram matrices: two Cholesky steps, an order of magnitude
faster than reflections.
"""

from __future__ import annotations

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import (
    CHOICE_SHARE,
    CHOLESKY_SAFE,
    PIVOT_SWAP,
    PIVOT_TIED,
    SINGULAR_VALUES_EQUAL,
    SMALLEST_DIVISOR,
)


def first_largest(sizes: Array) -> Array:
    """Per row the first place within `PIVOT_TIED` of the largest entry: rounding does not choose between equal ones.

    >>> first_largest(np.array([[0.5, 1.0 - 1e-15, 1.0]])).tolist()
    [1]
    """
    return np.asarray((sizes >= (1 - PIVOT_TIED) * sizes.max(axis=-1, keepdims=True)).argmax(axis=-1))


def pivot_signs(rows: Array) -> Array:
    """±1 per row so that the entry of largest modulus becomes positive; the first one decides ties."""
    if not rows.shape[-1]:
        return np.ones(rows.shape[:-1])
    places = first_largest(np.abs(rows))
    values = np.take_along_axis(rows, places[..., None], axis=-1)[..., 0]
    return np.where(values < 0, -1.0, 1.0).astype(rows.dtype)


def first_large(values: Array) -> tuple[int, bool]:
    """The first place where |value| reaches CHOICE_SHARE of the largest, and whether no other was about to be chosen.

    >>> first_large(np.array([0.1, -1.0, 1.0]))
    (1, True)
    """
    places, clear = first_large_of_rows(values[None])
    return int(places[0]), bool(clear[0])


def first_large_of_rows(values: Array) -> tuple[Array, Array]:
    """The same for every row."""
    sizes = np.abs(values)
    largest = sizes.max(axis=-1, keepdims=True)
    shares = sizes / np.where(largest > 0, largest, 1.0)
    places = np.argmax(shares >= np.where(largest > 0, CHOICE_SHARE, 0.0), axis=-1)
    near = (np.abs(shares - CHOICE_SHARE) < SINGULAR_VALUES_EQUAL) & (largest > 0)
    before = np.arange(sizes.shape[-1]) <= places[..., None]
    return np.asarray(places), np.asarray(~(near & before).any(axis=-1))


def choose_pivots(rows: Array, *, share: float = 1 - PIVOT_TIED, swap: float | None = PIVOT_SWAP) -> tuple[Array, bool]:
    """Columns of large volume of orthonormal rows, the same for all bases of their span, and whether they are clear.

    Start with the columns that stick out farthest of the span of those before, or the first ones of at least ``share``
    of that; then exchange columns while an entry exceeds ``swap``. Not clear: others were about to be chosen.

    >>> choose_pivots(np.array([[0.0, 0.6, 0.8]]), share=0.7, swap=None)[0].tolist()
    [1]
    """
    if rows.shape[0] == rows.shape[1]:
        return np.arange(len(rows)), True
    pivots, is_clear = farthest_columns(rows, share)
    if swap is None:
        return np.sort(pivots), is_clear
    ratios = lapack.inv(rows[:, pivots]) @ rows
    for _ in range(10 * len(rows) + 10):
        sizes = np.abs(ratios)
        row, column = np.unravel_index(int(first_largest(sizes.reshape(-1))), sizes.shape)
        if sizes[row, column] <= swap:
            break
        pivots[row] = column
        change = ratios[:, column].copy()
        change[row] -= 1.0
        ratios -= np.outer(change, ratios[row] / ratios[row, column])
    return np.sort(pivots), is_clear


def farthest_columns(rows: Array, share: float = 1 - PIVOT_TIED) -> tuple[Array, bool]:
    """As many columns as rows: each the first of at least ``share`` of the largest distance to those before.

    Also whether no other column was about to be chosen, which is told for shares below one only.
    """
    is_clear = True
    pivots, basis = np.zeros(len(rows), dtype=np.int64), np.zeros((len(rows), len(rows)))
    heights = np.einsum("ij,ij->j", rows, rows)
    for step in range(len(rows)):
        distances = np.sqrt(np.maximum(heights, 0.0))
        least = share * distances.max()
        pivots[step] = place = int(np.argmax((distances >= least) & (heights > -np.inf)))
        near = np.abs(distances[: place + 1] - least) < SINGULAR_VALUES_EQUAL * distances.max()
        is_clear = is_clear and not bool(near.any())
        column, known = rows[:, place], basis[:, :step]
        for _ in range(2):  # once more for what rounding left
            column = column - known @ (known.T @ column)
        basis[:, step] = column / max(float(np.linalg.norm(column)), SMALLEST_DIVISOR)
        heights -= (basis[:, step] @ rows) ** 2
        heights[place] = -np.inf
    return pivots, is_clear


def tall_qr(matrix: Array) -> tuple[Array, Array]:
    """Q (n, a) with orthonormal columns and R (a, a) upper triangular, Q R = matrix.

    >>> q, r = tall_qr(np.array([[3.0], [0.0], [4.0], [0.0]]))
    >>> float(r[0, 0])
    5.0
    """
    rows, columns = matrix.shape
    if rows < 4 * columns or not columns:
        q, r = lapack.qr(matrix)
        return q, r
    try:
        q, first = _step(matrix)
        pivots = np.abs(np.diag(first))
        if pivots.min() * CHOLESKY_SAFE > pivots.max():
            q, second = _step(q)
            return q, np.asarray(second @ first)
    except SingularError:
        # The Gram matrix is not positive in floats: the columns are dependent, or nearly so.
        pass
    q, r = lapack.qr(matrix)
    return q, r


def _step(matrix: Array) -> tuple[Array, Array]:
    r = lapack.cholesky(matrix.T @ matrix).T
    return np.asarray(matrix @ lapack.inv(r)), np.asarray(r)
