"""Many minors of many matrices: points along the last axis, so that gathering entries copies whole rows of memory."""

from __future__ import annotations

from itertools import combinations
from math import comb

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


def block_size(points: int) -> int:
    """How many rows of values fit into the cache at once."""
    return max(1, MAX_BLOCK // max(points, 1))


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


def _pair_place(n: int, i: Array, j: Array) -> Array:
    """The place of the pair i < j among the 2-subsets of n."""
    return np.asarray(i * (2 * n - i - 1) // 2 + j - i - 1)


def submatrix_minors(matrix: Array, rows: Array, columns: Array, domain: Domain) -> Array:
    """det matrix[rows[i], columns[i]] for every i, along a new last axis; rows and columns have shape (n, r).

    Minors of size 3 and 4 are expanded in a table of all 2×2 minors if enough of them are asked for.

    >>> from attngeom.exact import QQ
    >>> submatrix_minors(QQ.convert([[1, 2], [3, 4]]), np.array([[0, 1]]), np.array([[0, 1]]), QQ).tolist()
    [-2]
    """
    n, r = rows.shape
    batch = matrix.shape[:-2]
    if r > 4:
        return np.asarray(domain.det(matrix[..., rows[:, :, None], columns[:, None, :]]))
    y = points_last(matrix)
    R, C, points = y.shape
    table = pair_table(y, domain) if r >= 3 and n >= comb(R, 2) * comb(C, 2) else None
    out = np.empty((n, points), dtype=y.dtype)
    for start in range(0, n, block_size(points)):
        part = slice(start, start + block_size(points))
        out[part] = _block(y, table, rows[part], columns[part], domain)
    return points_first(out, batch)


def _block(y: Array, table: Array | None, rows: Array, columns: Array, domain: Domain) -> Array:
    r = rows.shape[1]
    if table is None:
        entries = [[y[rows[:, i], columns[:, j]] for j in range(r)] for i in range(r)]
        return np.asarray(laplace_expansion(entries, domain.reduce))
    R, C = y.shape[:2]
    top = _pair_place(R, rows[:, 0], rows[:, 1])
    total = None
    for pair in combinations(range(r), 2):
        rest = [k for k in range(r) if k not in pair]
        sign = (-1) ** (sum(pair) + 1)
        left = table[top, _pair_place(C, columns[:, pair[0]], columns[:, pair[1]])]
        if r == 3:
            right = y[rows[:, 2], columns[:, rest[0]]]
        else:
            below = _pair_place(R, rows[:, 2], rows[:, 3])
            right = table[below, _pair_place(C, columns[:, rest[0]], columns[:, rest[1]])]
        term = domain.reduce(left * right)
        total = sign * term if total is None else total + sign * term
    return domain.reduce(np.asarray(total))
