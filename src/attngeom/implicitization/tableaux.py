"""Bases of S_μ(S²V) by semistandard tableaux in the pairs (i ≤ j), as products of left-justified minors of Y.

Y is the D×m matrix of ordinary coefficients: rows are pairs (i ≤ j), D = d(d+1)/2, columns are targets. A tableau of
shape μ stands for the product over its columns of the minors of Y with those rows and the first targets; these products
are the highest weight vectors for GL(U) of weight μ.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from math import prod

import numpy as np
from flint import fmpz_mpoly, fmpz_mpoly_ctx

from attngeom.implicitization.partitions import Partition, kostka, pad, partitions, signed_permutations, strip

Array = np.ndarray
MAX_TAILS = 10**4
"""Parts of tableaux that are kept from one weight to the next."""


@cache
def pairs(d: int) -> tuple[tuple[int, int], ...]:
    """The pairs (i ≤ j) in lexicographic order: a basis of S²(C^d).

    >>> pairs(2)
    ((0, 0), (0, 1), (1, 1))
    """
    return tuple(combinations_with_replacement(range(d), 2))


@cache
def pair_weights(d: int) -> Array:
    """The weight in Z^d of each pair, as rows."""
    weights = np.zeros((len(pairs(d)), d), dtype=np.int64)
    for row, (i, j) in enumerate(pairs(d)):
        weights[row, i] += 1
        weights[row, j] += 1
    return weights


@cache
def column_lengths(shape: Partition) -> tuple[int, ...]:
    """The lengths of the columns of a Young diagram: the conjugate partition.

    >>> column_lengths((3, 1))
    (2, 1, 1)
    """
    return tuple(sum(1 for row in shape if row > j) for j in range(shape[0])) if shape else ()


@cache
def _symmetric_powers(shape: Partition, d: int) -> fmpz_mpoly:
    """The character of ⊗_i S^{shape_i}(S²(C^d))."""
    ctx = fmpz_mpoly_ctx.get([f"x{i}" for i in range(d)], "lex")
    if len(shape) > 1:
        return _symmetric_powers(shape[1:], d) * _symmetric_powers(shape[:1], d)
    x, n = ctx.gens(), sum(shape)
    complete: list[fmpz_mpoly] = [ctx.constant(1)] + [ctx.constant(0)] * n
    for i, j in pairs(d):
        for k in range(1, n + 1):
            complete[k] = complete[k] + complete[k - 1] * x[i] * x[j]
    return complete[n]


@cache
def plethysm(shape: Partition, d: int) -> dict[Partition, int]:
    """The multiplicities of S_λ(C^d) in S_shape(S²(C^d)), by Jacobi–Trudi and Kostka numbers.

    >>> plethysm((1, 1), 3)
    {(3, 1): 1}
    """
    n = sum(shape)
    signs: Counter[Partition] = Counter()
    for permutation, sign in signed_permutations(len(shape)):
        indices = [shape[i] - i + permutation[i] for i in range(len(shape))]
        if min(indices, default=0) >= 0:
            signs[strip(tuple(sorted(indices, reverse=True)))] += sign
    total = sum((sign * _symmetric_powers(powers, d) for powers, sign in signs.items()), 0 * _symmetric_powers((), d))
    dimensions = total.to_dict()
    found: dict[Partition, int] = {}
    # The largest weight that is left is a highest weight; its module is taken away.
    for lam in partitions(2 * n, d):
        explained = sum(count * kostka(larger, lam) for larger, count in found.items())
        count = int(dimensions.get(pad(lam, d), 0)) - explained
        if count:
            found[lam] = count
    return found


class TableauBasis:
    """Semistandard tableaux in the pairs of C^d, found by weight; a column is the number of its row set.

    >>> TableauBasis(2).tableaux((2, 2), (4, 4)).tolist()
    [[0, 2], [1, 1]]
    """

    def __init__(self, d: int) -> None:
        self.d = d
        self.size = len(pairs(d))
        self._columns: dict[int, Array] = {}
        self._weights: dict[int, Array] = {}
        self._faces: dict[int, Array] = {}
        self._follows: dict[tuple[int, int, int], Array] = {}
        self._tails: dict[tuple[tuple[int, ...], int, int, bytes], Array] = {}

    def columns(self, length: int) -> Array:
        """All row sets of one length, as rows of increasing indices."""
        if length not in self._columns:
            sets = list(combinations(range(self.size), length))
            self._columns[length] = np.array(sets, dtype=np.int64).reshape(len(sets), length)
            self._weights[length] = pair_weights(self.d)[self._columns[length]].sum(axis=1)
        return self._columns[length]

    def faces(self, length: int) -> Array:
        """The numbers of the row sets without their i-th element: entry (i, column)."""
        if length not in self._faces:
            columns, smaller = self.columns(length), self.columns(length - 1)
            base = self.size ** np.arange(length - 2, -1, -1, dtype=np.int64)
            codes = [np.delete(columns, i, axis=1) @ base for i in range(length)]
            self._faces[length] = np.searchsorted(smaller @ base, np.array(codes))
        return self._faces[length]

    def tableaux(self, shape: Partition, weight: Partition) -> Array:
        """The tableaux of the shape and the weight: one row for each, of the numbers of its columns."""
        # Tails serve many weights; they are dropped before they fill the memory.
        if len(self._tails) > MAX_TAILS:
            self._tails.clear()
        rest = np.array(pad(weight, self.d), dtype=np.int64)
        return self._complete(column_lengths(shape), 0, -1, rest)

    def _complete(self, lengths: tuple[int, ...], length: int, last: int, rest: Array) -> Array:
        """All ways to go on to the right of the column ``last`` (of the given length) with the remaining weight."""
        if not lengths:
            return np.zeros((0 if rest.any() else 1, 0), dtype=np.int64)
        key = (lengths, length, last, rest.tobytes())
        if key not in self._tails:
            self.columns(lengths[0])
            weights = self._weights[lengths[0]]
            is_last = len(lengths) == 1
            fits = ((weights == rest) if is_last else (weights <= rest)).all(axis=1)
            if last >= 0:
                fits &= self._followers(length, last, lengths[0])
            columns = np.nonzero(fits)[0]
            if is_last:
                self._tails[key] = columns[:, None]
                return self._tails[key]
            found = []
            for column in columns.tolist():
                tails = self._complete(lengths[1:], lengths[0], column, rest - weights[column])
                if len(tails):
                    found.append(np.concatenate([np.full((len(tails), 1), column), tails], axis=1))
            empty = np.zeros((0, len(lengths)), dtype=np.int64)
            self._tails[key] = np.concatenate(found) if found else empty
        return self._tails[key]

    def _followers(self, length: int, last: int, next_length: int) -> Array:
        """Which columns may stand to the right of the column ``last``: rows of a tableau increase weakly."""
        key = (length, last, next_length)
        if key not in self._follows:
            left = self.columns(length)[last, :next_length]
            self._follows[key] = np.all(self.columns(next_length) >= left, axis=1)
        return self._follows[key]

    def expand(self, shape: Partition, tableaux: Array, targets: int) -> tuple[Array, Array, Array]:
        """The tableaux as polynomials in Y: arrays (tableau, sorted variables, sign) of all terms, not collected.

        Variable (row, target) has the number row · targets + target.
        """
        lengths = column_lengths(shape)
        choices = [signed_permutations(c) for c in lengths]
        rows = [self.columns(c)[tableaux[:, j]] for j, c in enumerate(lengths)]
        terms, signs = [], []
        for choice in product(*choices):
            factors = [r * targets + np.array(s) for r, (s, _) in zip(rows, choice)]
            terms.append(np.concatenate(factors, axis=1))
            signs.append(prod(sign for _, sign in choice))
        variables = np.sort(np.concatenate(terms), axis=1)
        count = len(tableaux)
        return np.tile(np.arange(count), len(terms)), variables, np.repeat(signs, count)


class MinorTable:
    """Left-justified minors of Y + εNY at many points mod p, for all row sets: values and derivatives along N."""

    def __init__(self, basis: TableauBasis, points: Array, moved: Array, p: int) -> None:
        self.basis = basis
        self.p = p
        self._points = points
        self._moved = moved
        one = np.ones((len(points), 1), dtype=np.int64)
        self._tables: dict[int, tuple[Array, Array]] = {0: (one, np.zeros_like(one))}

    def table(self, length: int) -> tuple[Array, Array]:
        """(values, derivatives) of the minors of one size: points × row sets. Laplace along the last target."""
        if length not in self._tables:
            values, slopes = self.table(length - 1)
            columns = self.basis.columns(length)
            total = np.zeros((len(self._points), len(columns)), dtype=np.int64)
            slope = np.zeros_like(total)
            for i, smaller in enumerate(self.basis.faces(length)):
                entry = self._points[:, columns[:, i], length - 1]
                change = self._moved[:, columns[:, i], length - 1]
                sign = 1 if (length - 1 - i) % 2 == 0 else -1
                total += sign * (entry * values[:, smaller] % self.p)
                slope += sign * ((entry * slopes[:, smaller] + change * values[:, smaller] % self.p) % self.p)
            self._tables[length] = (total % self.p, slope % self.p)
        return self._tables[length]

    def evaluate(self, shape: Partition, tableaux: Array) -> tuple[Array, Array]:
        """Values and derivatives of the products of minors: points × tableaux."""
        values = np.ones((len(self._points), len(tableaux)), dtype=np.int64)
        slopes = np.zeros_like(values)
        for j, length in enumerate(column_lengths(shape)):
            minors, changes = (table[:, tableaux[:, j]] for table in self.table(length))
            slopes = (slopes * minors % self.p + values * changes) % self.p
            values = values * minors % self.p
        return values, slopes
