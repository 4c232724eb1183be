"""Many minors of many matrices: points along the last axis, so that gathering entries copies whole rows of memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from attngeom.exact.determinants import laplace_expansion
from attngeom.exact.domains import Array, Domain

MAX_BLOCK = 2**17


def points_last(matrix: Array) -> Array:
    """(…, R, C) as a contiguous array (R, C, points)."""
    flat = matrix.reshape(-1, *matrix.shape[-2:])
    return np.ascontiguousarray(np.moveaxis(flat, 0, -1))


def points_first(values: Array, batch: tuple[int, ...]) -> Array:
    """(n, points) as (…, n), the inverse of :func:`points_last` on values."""
    return np.moveaxis(values, 0, -1).reshape(*batch, values.shape[0])


def blocks(count: int, points: int) -> Iterator[slice]:
    """Parts of so many rows of values, each small enough for the cache."""
    step = max(1, MAX_BLOCK // max(points, 1))
    return (slice(start, start + step) for start in range(0, count, step))


def pair_table(matrix: Array, domain: Domain) -> Array:
    """All 2×2 minors of (R, C, points) in lexicographic order: (C(R,2), C(C,2), points)."""
    rows = np.array(list(combinations(range(matrix.shape[0]), 2)), dtype=np.int64).reshape(-1, 2)
    columns = np.array(list(combinations(range(matrix.shape[1]), 2)), dtype=np.int64).reshape(-1, 2)
    out = np.empty((len(rows), len(columns), matrix.shape[2]), dtype=matrix.dtype)
    for place, (i, j) in enumerate(rows):
        first, second = matrix[i], matrix[j]
        straight = domain.reduce(first[columns[:, 0]] * second[columns[:, 1]])
        out[place] = domain.reduce(straight - domain.reduce(first[columns[:, 1]] * second[columns[:, 0]]))
    return out


def submatrix_minors(matrix: Array, rows: Array, columns: Array, domain: Domain) -> Array:
    """det matrix[rows[i], columns[i]] for every i, along a new last axis; rows and columns have shape (n, r).

    >>> from attngeom.exact import QQ
    >>> submatrix_minors(QQ.convert([[1, 2], [3, 4]]), np.array([[0, 1]]), np.array([[0, 1]]), QQ).tolist()
    [-2]
    """
    n, r = rows.shape
    if r > 4:
        return np.asarray(domain.det(matrix[..., rows[:, :, None], columns[:, None, :]]))
    y = points_last(matrix)
    out = np.empty((n, y.shape[-1]), dtype=y.dtype)
    for part in blocks(n, y.shape[-1]):
        entries = [[y[rows[part, i], columns[part, j]] for j in range(r)] for i in range(r)]
        out[part] = laplace_expansion(entries, domain.reduce)
    return points_first(out, matrix.shape[:-2])
