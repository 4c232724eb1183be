"""S_μ(S²V): bases by semistandard tableaux in the pairs (i ≤ j), and how often S_λV occurs in it, by characters.

Y is the D×m matrix of ordinary coefficients: rows are pairs (i ≤ j), D = d(d+1)/2, columns are targets. A tableau of
shape μ stands for the product over its columns of the minors of Y with those rows and the first targets; these products
are the highest weight vectors for GL(U) of weight μ. Multiplicities are the same for every d ≥ ℓ(λ), and can be read
off from any space on which S_λ does not vanish. For λ_4 ≤ 1 the super space C^{3|1} is such a space, and its characters
are short, however many rows λ has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain, combinations, product
from math import comb, factorial, prod
from typing import NamedTuple

import numpy as np
from flint import fmpz_mpoly, fmpz_mpoly_ctx

from attngeom.equations.ideal.limits import check
from attngeom.exact.arrays import Array
from attngeom.exact.multisets import pairs, signed_permutations
from attngeom.exact.partitions import Partition, column_lengths, kostka, pad, partitions, strip
from attngeom.limits.memory import TABLEAU_TAILS
from attngeom.limits.seconds import EXPANSION_STEP


@cache
def pair_weights(d: int) -> Array:
    """The weight in Z^d of each pair, as rows."""
    weights = np.zeros((len(pairs(d)), d), dtype=np.int64)
    for row, (i, j) in enumerate(pairs(d)):
        weights[row, i] += 1
        weights[row, j] += 1
    return weights


class _Pool(NamedTuple):
    """Columns to choose from: their numbers, their row sets and their weights."""

    numbers: Array
    columns: Array
    weights: Array


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
        self._tails: dict[tuple[tuple[int, ...], tuple[int, ...], bytes], Array] = {}

    def columns(self, length: int) -> Array:
        """All row sets of one length, as rows of increasing indices."""
        if length not in self._columns:
            count = comb(self.size, length)
            check(size=4 * 8 * count * (length + self.d))
            entries = chain.from_iterable(combinations(range(self.size), length))
            self._columns[length] = np.fromiter(entries, np.int64, count * length).reshape(count, length)
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
        if len(self._tails) > TABLEAU_TAILS:
            self._tails.clear()
        rest = np.array(pad(weight, self.d), dtype=np.int64)
        lengths = column_lengths(shape)
        return self._complete(lengths, (), rest, {length: self._pool(length, rest) for length in lengths})

    def _pool(self, length: int, bound: Array) -> _Pool:
        """The columns of one length whose weight does not exceed the bound."""
        columns = self.columns(length)
        numbers = np.flatnonzero((self._weights[length] <= bound).all(axis=1))
        return _Pool(numbers, columns[numbers], self._weights[length][numbers])

    def _complete(
        self, lengths: tuple[int, ...], last: tuple[int, ...], rest: Array, pools: Mapping[int, _Pool]
    ) -> Array:
        """All ways to go on to the right of the column ``last`` with the remaining weight."""
        if not lengths:
            return np.zeros((0 if rest.any() else 1, 0), dtype=np.int64)
        left = last[: lengths[0]]
        key = (lengths, left, rest.tobytes())
        if key not in self._tails:
            check()
            pool = pools[lengths[0]]
            is_last = len(lengths) == 1
            places = np.flatnonzero(((pool.weights == rest) if is_last else (pool.weights <= rest)).all(axis=1))
            if left:
                # Rows of a tableau increase weakly.
                places = places[(pool.columns[places] >= np.array(left)).all(axis=1)]
            if is_last:
                self._tails[key] = pool.numbers[places, None]
                return self._tails[key]
            values = []
            for place in places.tolist():
                column = tuple(pool.columns[place].tolist())
                tails = self._complete(lengths[1:], column, rest - pool.weights[place], pools)
                if len(tails):
                    values.append(np.concatenate([np.full((len(tails), 1), pool.numbers[place]), tails], axis=1))
            empty = np.zeros((0, len(lengths)), dtype=np.int64)
            check(size=2 * sum(part.nbytes for part in values))
            self._tails[key] = np.concatenate(values) if values else empty
        return self._tails[key]

    def expand(self, shape: Partition, tableaux: Array, targets: int) -> tuple[Array, Array, Array]:
        """The tableaux as polynomials in Y: arrays (tableau, sorted variables, sign) of all terms, not collected.

        Variable (row, target) has the number row · targets + target.
        """
        lengths = column_lengths(shape)
        check(size=6 * 8 * sum(shape) * len(tableaux) * prod(factorial(c) for c in lengths))
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
    """Left-justified minors of Y + εNY at points: values and derivatives along N mod p.

    All minors of a size are held, for points that serve many weights, or only those numbered in ``needed``.
    """

    def __init__(
        self, basis: TableauBasis, points: Array, moved: Array, p: int, needed: Mapping[int, Array] | None = None
    ) -> None:
        self.basis = basis
        self.p = p
        self._points = points
        self._moved = moved
        self._needed = needed
        one = np.ones((len(points), 1), dtype=np.int64)
        self._tables: dict[int, tuple[Array, Array]] = {0: (one, np.zeros_like(one))}

    def _places(self, length: int, numbers: Array) -> Array:
        """Where the row sets of these numbers are held."""
        return numbers if self._needed is None or not length else np.searchsorted(self._needed[length], numbers)

    def table(self, length: int) -> tuple[Array, Array]:
        """(values, derivatives) of the minors of one size that are held: points × row sets."""
        if length not in self._tables:
            columns, faces = self.basis.columns(length), self.basis.faces(length)
            if self._needed is not None:
                columns, faces = columns[self._needed[length]], faces[:, self._needed[length]]
            smaller = self.table(length - 1), self._places(length - 1, faces)
            self._tables[length] = _larger_minors(self._points, self._moved, columns, *smaller, self.p)
        return self._tables[length]

    def evaluate(self, shape: Partition, tableaux: Array) -> tuple[Array, Array]:
        """Values and derivatives of the products of minors: points × tableaux."""
        values = np.ones((len(self._points), len(tableaux)), dtype=np.int64)
        slopes = np.zeros_like(values)
        for j, length in enumerate(column_lengths(shape)):
            places = self._places(length, tableaux[:, j])
            minors, changes = (table[:, places] for table in self.table(length))
            slopes = (slopes * minors % self.p + values * changes) % self.p
            values = values * minors % self.p
        return values, slopes


def needed_minors(basis: TableauBasis, shape: Partition, tableaux: Array) -> dict[int, Array]:
    """The numbers of the row sets, by size, whose minors occur when these tableaux are expanded."""
    lengths = column_lengths(shape)
    needed: dict[int, Array] = {}
    for length in range(lengths[0], 0, -1):
        wanted = [tableaux[:, j] for j, other in enumerate(lengths) if other == length]
        if length < lengths[0]:
            wanted.append(basis.faces(length + 1)[:, needed[length + 1]].ravel())
        needed[length] = np.unique(np.concatenate(wanted))
    return needed


def _larger_minors(
    points: Array, moved: Array, columns: Array, smaller: tuple[Array, Array], faces: Array, p: int
) -> tuple[Array, Array]:
    """Laplace along the last target: the minors of the row sets ``columns`` from those without one row."""
    values, slopes = smaller
    length = columns.shape[1]
    entries = len(points) * len(columns)
    check(operations=EXPANSION_STEP * length * entries, size=8 * 8 * entries)
    total = np.zeros((len(points), len(columns)), dtype=np.int64)
    slope = np.zeros_like(total)
    for i, face in enumerate(faces):
        entry = points[:, columns[:, i], length - 1]
        change = moved[:, columns[:, i], length - 1]
        sign = 1 if (length - 1 - i) % 2 == 0 else -1
        total += sign * (entry * values[:, face] % p)
        slope += sign * ((entry * slopes[:, face] + change * values[:, face] % p) % p)
    return total % p, slope % p


ROWS = 3
"""S_λ(C^{3|1}) is zero if and only if λ_4 > 1."""


def multiplicity(lam: Partition, mu: Partition) -> int:
    """How often S_λV ⊗ S_μU occurs in R_n, n = |μ|, for every d ≥ ℓ(λ) and every number of targets ≥ ℓ(μ).

    >>> multiplicity((3, 3), (1, 1, 1)), multiplicity((13, 4, 2, 1, 1, 1), (5, 3, 1, 1, 1))
    (1, 11)
    """
    if max(lam[ROWS:], default=0) <= 1:
        return _hook_plethysm(mu).get(lam, 0)
    return plethysm(mu, len(lam)).get(lam, 0)


@cache
def plethysm(shape: Partition, d: int) -> dict[Partition, int]:
    """The multiplicities of S_λ(C^d) in S_shape(S²(C^d)), for all λ.

    λ has at most n = |shape| rows, because each factor S² adds at most one: d > n gives the same as d = n.

    >>> plethysm((1, 1), 3)
    {(3, 1): 1}
    """
    n = sum(shape)
    if d > n >= 1:
        return plethysm(shape, n)
    check()
    dimensions = _character(shape, d, 0).to_dict()
    multiplicities: dict[Partition, int] = {}
    # The largest weight that is left is a highest weight; its module is taken away.
    for lam in partitions(2 * n, d):
        explained = sum(count * kostka(larger, lam) for larger, count in multiplicities.items())
        count = int(dimensions.get(pad(lam, d), 0)) - explained
        if count:
            multiplicities[lam] = count
    return multiplicities


@cache
def _hook_plethysm(shape: Partition) -> dict[Partition, int]:
    """The multiplicities of all S_λ with λ_4 ≤ 1 in S_shape(S²V), from the character on C^{3|1}.

    S_λ(C^{3|1}) is the sum of S_ν(C^3) over all ν of at most three rows for which λ/ν is a vertical strip: λ = (ν+1_S,
    1^i) for a set S of rows. How often S_ν(C^3) occurs in all is an alternating sum of weights.
    """
    check()
    n = sum(shape)
    dimensions = _character(shape, ROWS, 1).to_dict()
    multiplicities: dict[Partition, int] = {}
    for k in range(n + 1):
        for nu in partitions(2 * n - k, ROWS):
            first = pad(nu, ROWS)
            count = sum(
                sign * int(dimensions.get((*(x + j - i for i, (x, j) in enumerate(zip(first, order))), k), 0))
                for order, sign in signed_permutations(ROWS)
            )
            for size in range(1, min(k, ROWS) + 1):
                for rows in combinations(range(ROWS), size):
                    lam = tuple(x + (i in rows) for i, x in enumerate(first)) + (1,) * (k - size)
                    count -= multiplicities.get(strip(lam), 0)
            if count:
                multiplicities[nu + (1,) * k] = count
    return multiplicities


def _character(shape: Partition, d: int, odd: int) -> fmpz_mpoly:
    """The character of S_shape(S²V) by Giambelli: the determinant of the hooks along the diagonal."""
    columns = column_lengths(shape)
    arms = [row - i - 1 for i, row in enumerate(shape) if row > i]
    legs = [columns[i] - i - 1 for i in range(len(arms))]
    total = fmpz_mpoly_ctx.get(_names(d, odd), "lex").constant(0)
    for order, sign in signed_permutations(len(arms)):
        term = total * 0 + sign
        for arm, place in zip(arms, order):
            term = term * _hook(arm, legs[place], d, odd)
        total = total + term
    return total


@cache
def _hook(arm: int, leg: int, d: int, odd: int) -> fmpz_mpoly:
    """The character of S_(arm+1, 1^leg)(S²V): the alternating sum of S^{arm+1+i} ⊗ Λ^{leg-i}."""
    symmetric, exterior = (_powers(arm + leg + 1, d, odd, is_exterior) for is_exterior in (False, True))
    total = 0 * symmetric[0]
    for i in range(leg + 1):
        total = total + (-1) ** i * symmetric[arm + 1 + i] * exterior[leg - i]
    return total


@cache
def _powers(n: int, d: int, odd: int, is_exterior: bool) -> tuple[fmpz_mpoly, ...]:
    """The characters of S^k(S²V), or of Λ^k(S²V), k ≤ n; S²V has the even weights x_i x_j and the odd ones x_i y."""
    ctx = fmpz_mpoly_ctx.get(_names(d, odd), "lex")
    x = ctx.gens()
    powers = [ctx.constant(1)] + [ctx.constant(0)] * n
    weights = [(x[i] * x[j], is_exterior) for i, j in pairs(d)]
    weights += [(x[i] * x[d], not is_exterior) for i in range(d * odd)]
    for weight, is_once in weights:
        for k in range(n, 0, -1) if is_once else range(1, n + 1):
            powers[k] = powers[k] + powers[k - 1] * weight
    return tuple(powers)


def _names(d: int, odd: int) -> list[str]:
    return [f"x{i}" for i in range(d)] + ["y"] * odd
