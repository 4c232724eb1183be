"""Minors of matrices, one by one or many at once, over every domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from math import comb
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Balls, Domain, Floats, PrimeField
from attngeom.exact.matrices import determinant

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
    >>> minor(QQ.array([[1, 2, 3], [4, 5, 6]]), (0, 1), (0, 2), QQ)
    -6
    """
    if len(rows) != len(columns):
        raise InputError(f"{len(rows)} rows and {len(columns)} columns given; equally many are required")
    return determinants(a[np.ix_(list(rows), list(columns))], domain)[()]


def minor_at(a: Array, size: int, k: int, domain: Domain) -> Minor:
    """The k-th minor of a size, in lexicographic order of (rows, columns), without computing the others.

    >>> from attngeom.exact.domains import QQ
    >>> minor_at(QQ.array([[1, 2, 3], [4, 5, 6]]), 2, 1, QQ)
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
    >>> [m.value for m in minors(QQ.array([[1, 2, 3], [4, 5, 6]]), 2, QQ)]
    [-3, -6, -3]
    """
    if a.ndim != 2 or size < 0:
        raise InputError(f"array of shape {a.shape} and size {size} given; a matrix and a size ≥ 0 are required")
    choices = product(combinations(range(a.shape[0]), size), combinations(range(a.shape[1]), size))
    while batch := list(islice(choices, _BATCH)):
        rows = np.array([r for r, _ in batch], dtype=np.intp).reshape(len(batch), size, 1)
        columns = np.array([c for _, c in batch], dtype=np.intp).reshape(len(batch), 1, size)
        values = determinants(a[rows, columns], domain)
        yield from (Minor(r, c, value) for (r, c), value in zip(batch, values))


def determinants(stack: Array, domain: Domain) -> Array:
    """The determinants of the matrices in the last two axes, one per leading index.

    >>> from attngeom.exact.domains import GF
    >>> determinants(np.array([[[1, 2], [3, 4]], [[1, 1], [1, 1]]]), GF(7)).tolist()
    [5, 0]
    """
    if stack.ndim < 2 or stack.shape[-1] != stack.shape[-2]:
        raise InputError(f"array of shape {stack.shape} given; square matrices are required")
    if isinstance(domain, Floats):
        return np.asarray(np.linalg.det(stack))
    if stack.shape[-1] <= 4:
        return expand_determinants(stack, domain)
    if isinstance(domain, PrimeField) and domain.fits_word:
        return _determinants_mod_p(stack, domain.p)
    out = np.empty(stack.shape[:-2], dtype=object)
    with domain.working():
        for index in np.ndindex(*stack.shape[:-2]):
            one = stack[index]
            out[index] = domain.to_flint(one).det() if isinstance(domain, Balls) else determinant(one, domain)
    return out


def expand_determinants(stack: Array, domain: Domain) -> Array:
    """The determinants by Laplace expansion, vectorised: no divisions, n 2^(n−1) products each.

    >>> from attngeom.exact.domains import QQ
    >>> expand_determinants(QQ.array([[0, 2], [3, 4]]), QQ)[()]
    -6
    """
    n = stack.shape[-1]
    if n == 0:
        return np.asarray(domain.zeros(stack.shape[:-2]) + domain.eye(1)[0, 0])
    rows = [[stack[..., i, j] for j in range(n)] for i in range(n)]
    with domain.working():
        return np.asarray(laplace_expansion(rows, domain.reduce))


def laplace_expansion(rows: Sequence[Sequence[Any]], reduce: Callable[[Any], Any]) -> Any:
    """The determinant of an n×n matrix, n ≥ 1, over any commutative ring: only +, − and *, then ``reduce``.

    >>> laplace_expansion([[1, 2], [3, 4]], int)
    -2
    """
    n = len(rows)
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


def _determinants_mod_p(stack: Array, p: int) -> Array:
    """Elimination of all matrices at once, p < 2^31: int64 products do not overflow."""
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
        factors = a[:, k + 1 :, k] * _powers(a[:, k, k], p - 2, p)[:, None] % p
        a[:, k + 1 :, k:] = (a[:, k + 1 :, k:] - factors[:, :, None] * a[:, k, None, k:]) % p
    return result.reshape(stack.shape[:-2]) % p


def _powers(x: Array, exponent: int, p: int) -> Array:
    """x^exponent mod p, entry by entry: the inverse for exponent p − 2."""
    result = np.ones_like(x)
    for bit in bin(exponent)[2:]:
        result = result * result % p
        if bit == "1":
            result = result * x % p
    return result
