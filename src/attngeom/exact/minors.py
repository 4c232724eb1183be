"""Minors of matrices, one by one or many at once, over every domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import comb
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Domain

_BATCH = 4096


@dataclass(frozen=True)
class Minor:
    """The determinant of the submatrix with these rows and columns."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    value: Any


def minor(a: Array, rows: Sequence[int], columns: Sequence[int], domain: Domain) -> Any:
    """The determinant of the submatrix with the given rows and columns, in the given order.

    >>> from attngeom.exact.domains import QQ
    >>> minor(QQ.convert([[1, 2, 3], [4, 5, 6]]), (0, 1), (0, 2), QQ)
    -6
    """
    if len(rows) != len(columns):
        raise InputError(f"{len(rows)} rows and {len(columns)} columns given; equally many are required")
    return domain.det(a[np.ix_(list(rows), list(columns))])


def minor_at(a: Array, size: int, k: int, domain: Domain) -> Minor:
    """The k-th minor of a size, in lexicographic order of (rows, columns), without computing the others.

    >>> from attngeom.exact.domains import QQ
    >>> minor_at(QQ.convert([[1, 2, 3], [4, 5, 6]]), 2, 1, QQ)
    Minor(rows=(0, 1), columns=(0, 2), value=-6)
    """
    per_rows = comb(a.shape[1], size)
    total = comb(a.shape[0], size) * per_rows
    if not 0 <= k < total:
        raise InputError(f"index {k} given; 0 ≤ index < {total} is required")
    rows = combination_at(a.shape[0], size, k // per_rows)
    columns = combination_at(a.shape[1], size, k % per_rows)
    return Minor(rows, columns, minor(a, rows, columns, domain))


def minors(a: Array, size: int, domain: Domain) -> Iterator[Minor]:
    """All minors of a size, in lexicographic order of (rows, columns), computed in batches.

    >>> from attngeom.exact.domains import QQ
    >>> [m.value for m in minors(QQ.convert([[1, 2, 3], [4, 5, 6]]), 2, QQ)]
    [-3, -6, -3]
    """
    if a.ndim != 2 or size < 0:
        raise InputError(f"array of shape {a.shape} and size {size} given; a matrix and a size ≥ 0 are required")
    choices = product(combinations(range(a.shape[0]), size), combinations(range(a.shape[1]), size))
    while batch := list(islice(choices, _BATCH)):
        rows = np.array([r for r, _ in batch], dtype=np.intp).reshape(len(batch), size, 1)
        columns = np.array([c for _, c in batch], dtype=np.intp).reshape(len(batch), 1, size)
        values = domain.det(a[rows, columns])
        yield from (Minor(r, c, value) for (r, c), value in zip(batch, values))
