"""Minors of matrices, and the k-th combination or multiset without listing the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array, Domain
from attngeom.exact.matrices import determinant


def combination_at(n: int, r: int, k: int) -> tuple[int, ...]:
    """The k-th r-subset of {0, …, n−1} in lexicographic order, 0 ≤ k < C(n, r).

    >>> combination_at(5, 2, 0), combination_at(5, 2, 9)
    ((0, 1), (3, 4))
    """
    if not 0 <= k < comb(n, r):
        raise InputError(f"index {k} given; 0 ≤ index < {comb(n, r)} = C({n}, {r}) is required")
    chosen = []
    start = 0
    for left in range(r, 0, -1):
        while k >= (count := comb(n - start - 1, left - 1)):
            k -= count
            start += 1
        chosen.append(start)
        start += 1
    return tuple(chosen)


def combination_rank(n: int, chosen: Sequence[int]) -> int:
    """The index of an increasing r-subset of {0, …, n−1} in lexicographic order: inverse to combination_at.

    >>> combination_rank(5, (3, 4))
    9
    """
    if any(x >= y for x, y in pairwise(chosen)) or (chosen and not 0 <= chosen[0] <= chosen[-1] < n):
        raise InputError(f"subset {tuple(chosen)} given; increasing numbers below {n} are required")
    r = len(chosen)
    # Subsets after this one, counted through the reflection x ↦ n − 1 − x.
    after = sum(comb(n - 1 - x, r - i) for i, x in enumerate(chosen))
    return comb(n, r) - 1 - after


def multiset_at(n: int, r: int, k: int) -> tuple[int, ...]:
    """The k-th r-multiset of {0, …, n−1}, sorted, in lexicographic order, 0 ≤ k < C(n+r−1, r).

    >>> [multiset_at(2, 2, k) for k in range(3)]
    [(0, 0), (0, 1), (1, 1)]
    """
    return tuple(x - i for i, x in enumerate(combination_at(n + r - 1, r, k))) if r else combination_at(0, 0, k)


def multiset_rank(n: int, chosen: Sequence[int]) -> int:
    """The index of a sorted r-multiset of {0, …, n−1} in lexicographic order: inverse to multiset_at.

    >>> multiset_rank(2, (1, 1))
    2
    """
    return combination_rank(n + len(chosen) - 1, [x + i for i, x in enumerate(chosen)])


def minor(a: Array, rows: Sequence[int], columns: Sequence[int], domain: Domain) -> Any:
    """The determinant of the submatrix with the given rows and columns, in the given order.

    >>> from attngeom.exact.domains import QQ
    >>> minor(QQ.array([[1, 2, 3], [4, 5, 6]]), (0, 1), (0, 2), QQ)
    -6
    """
    if len(rows) != len(columns):
        raise InputError(f"{len(rows)} rows and {len(columns)} columns given; equally many are required")
    return determinants(a[np.ix_(rows, columns)], domain)[()]


def determinants(stack: Array, domain: Domain) -> Array:
    """The determinants of the matrices in the last two axes, one per leading index.

    >>> from attngeom.exact.domains import GF
    >>> determinants(np.array([[[1, 2], [3, 4]], [[1, 1], [1, 1]]]), GF(7)).tolist()
    [5, 0]
    """
    if stack.ndim < 2 or stack.shape[-1] != stack.shape[-2]:
        raise InputError(f"array of shape {stack.shape} given; square matrices are required")
    if domain is RR:
        return np.asarray(np.linalg.det(stack))
    if stack.shape[-1] <= 4:
        return expand_determinants(stack, domain)
    out = np.empty(stack.shape[:-2], dtype=stack.dtype)
    for index in np.ndindex(*stack.shape[:-2]):
        out[index] = determinant(stack[index], domain)
    return out


def expand_determinants(stack: Array, domain: Domain) -> Array:
    """The determinants by Laplace expansion: no divisions, so over any commutative ring; n 2^n products each.

    >>> from attngeom.exact.domains import QQ
    >>> expand_determinants(QQ.array([[0, 2], [3, 4]]), QQ)[()]
    -6
    """
    n = stack.shape[-1]
    if n == 0:
        return domain.reduce(domain.eye(1)[0, 0] + domain.zeros(stack.shape[:-2]))
    rows = [[stack[..., i, j] for j in range(n)] for i in range(n)]
    return np.asarray(laplace_expansion(rows, domain.reduce))


def laplace_expansion(rows: Sequence[Sequence[Any]], reduce: Callable[[Any], Any]) -> Any:
    """The determinant of an n×n matrix, n ≥ 1, over any commutative ring: +, − and * only, n 2^(n−1) products.

    >>> laplace_expansion([[1, 2], [3, 4]], int)
    -2
    """
    n = len(rows)
    # After row i: the minors of rows 0 … i for every set of i + 1 columns.
    minors: dict[tuple[int, ...], Any] = {(j,): rows[0][j] for j in range(n)}
    for i in range(1, n):
        larger = {}
        for columns in combinations(range(n), i + 1):
            total: Any = 0
            for position, j in enumerate(columns):
                term = reduce(rows[i][j] * minors[columns[:position] + columns[position + 1 :]])
                total = total + term if (i - position) % 2 == 0 else total - term
            larger[columns] = reduce(total)
        minors = larger
    return minors[tuple(range(n))]
