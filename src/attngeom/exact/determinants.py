"""Determinants without division, over any commutative ring, and of many matrices at once mod p."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array


def laplace_expansion(rows: Sequence[Sequence[Any]], reduce: Callable[[Any], Any] = lambda x: x) -> Any:
    """The determinant of an n×n matrix, n ≥ 1, over any commutative ring: only +, − and *, then ``reduce``.

    n 2^(n−1) products; entries may be arrays, which gives the determinants of a stack of matrices. ``rows`` are lists:
    NumPy would take a polynomial for a sequence of terms.

    >>> from attngeom.exact import QQ
    >>> x, y = QQ.polynomials(("x", "y")).gens()
    >>> laplace_expansion([[x, y], [y, x]])
    x^2 - y^2
    """
    n = len(rows)
    if not n or any(len(row) != n for row in rows):
        raise InputError(f"{n} rows given; a square matrix with at least one row is required")
    # After row i: the minors of rows 0 … i for every set of i + 1 columns.
    partial: dict[tuple[int, ...], Any] = {(j,): rows[0][j] for j in range(n)}
    for i in range(1, n):
        larger = {}
        for columns in combinations(range(n), i + 1):
            total: Any = 0
            for position, j in enumerate(columns):
                term = reduce(rows[i][j] * partial[columns[:position] + columns[position + 1 :]])
                total = total + term if (i - position) % 2 == 0 else total - term
            larger[columns] = reduce(total)
        partial = larger
    return partial[tuple(range(n))]


def determinants_mod_p(stack: Array, p: int) -> Array:
    """Elimination of all matrices in the last two axes at once, p < 2^31: int64 products do not overflow.

    >>> determinants_mod_p(np.array([[[1, 2], [3, 4]], [[1, 1], [1, 1]]]), 7).tolist()
    [5, 0]
    """
    n = stack.shape[-1]
    a = stack.reshape(-1, n, n) % p
    every = np.arange(len(a))
    result = np.ones(len(a), dtype=np.int64)
    for k in range(n):
        pivot = k + np.argmax(a[:, k:, k] != 0, axis=1)
        result = np.where(pivot == k, result, p - result)
        a[every, pivot], a[:, k] = a[:, k].copy(), a[every, pivot]
        # Without a nonzero pivot the determinant becomes zero here, and its column stays zero.
        result = result * a[:, k, k] % p
        factors = a[:, k + 1 :, k] * powers_mod_p(a[:, k, k], p - 2, p)[:, None] % p
        a[:, k + 1 :, k:] = (a[:, k + 1 :, k:] - factors[:, :, None] * a[:, k, None, k:]) % p
    return result.reshape(stack.shape[:-2]) % p


def powers_mod_p(x: Array, exponent: int, p: int) -> Array:
    """x^exponent mod p < 2^31, entry by entry: the inverse for exponent p − 2.

    >>> powers_mod_p(np.array([3, 0]), 5, 7).tolist()
    [5, 0]
    """
    result = np.ones_like(x)
    for bit in bin(exponent)[2:]:
        result = result * result % p
        if bit == "1":
            result = result * x % p
    return result
