"""Family 8, Veronese invariants: minors D_{α,K,L} = v_K^α det A_{K,L} of degree r behave like monomials in v."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.families.syzygies import veronese_rows
from attngeom.equations.family import RowFamily
from attngeom.equations.minors import submatrix_minors
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_index

Exponent = tuple[int, ...]
Symbol = tuple[Exponent, int, int]
"""(α, K, L) with K and L as indices of subsets."""
Column = tuple[Exponent, int]
Minor = tuple[int, Exponent, Exponent, Column, Column]
"""K, two rows β, and two columns (γ, L), of a matrix with entries D_{β+γ,K,L}."""


@lru_cache(maxsize=64)
def exponents(r: int, degree: int) -> tuple[Exponent, ...]:
    """The exponents α ∈ N^r with |α| = degree, by lexicographic multisets.

    >>> exponents(2, 2)
    ((2, 0), (1, 1), (0, 2))
    """
    words = combinations_with_replacement(range(r), degree)
    return tuple(tuple(word.count(p) for p in range(r)) for word in words)


@dataclass(frozen=True)
class Veronese(RowFamily):
    """2×2 minors of matrices whose entries are D_{α,K,L}, for r-subsets K of the context and L of the targets.

    Row p, column q of D_{α,K,L} is ω·y_{(k_f(p),k_p), l_q} with ω = 1 if the two indices agree and 2 otherwise;
    f: [r]→[r] has |f⁻¹(m)| = α_m and f(m) = m whenever α_m > 0. Other orders of K and L give the same
    determinants up to sign.
    """

    r: int
    number = 8
    is_independent = False
    words: ClassVar[str]
    """A minor in words, with places for its sets and exponents."""

    @property
    def name(self) -> str:
        return f"{self.title}-{self.r}"

    @property
    def degree(self) -> int:
        return 2 * self.r

    @property
    def num_contexts(self) -> int:
        return comb(self.variety.d, self.r)

    @property
    def num_target_sets(self) -> int:
        return comb(self.variety.num_targets, self.r)

    @abstractmethod
    def _minor(self, *index: int) -> Minor:
        """The minor with these indices."""

    def row_label(self, *index: int) -> str:
        k, b, c, (g, l), (h, n) = self._minor(*index)
        (K, L), (_, N) = self._subsets(k, l), self._subsets(k, n)
        return f"r={self.r} " + self.words.format(K=K, L=L, N=N, b=b, c=c, g=g, h=h)

    def _subsets(self, k: int, l: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return combination_at(self.variety.d, self.r, k), combination_at(self.variety.num_targets, self.r, l)

    def row_values(self, y: Array, domain: Domain, *index: Array) -> Array:
        minors = [_symbols(*self._minor(*member)) for member in zip(*(digit.tolist() for digit in index))]
        symbols = sorted({symbol for minor in minors for symbol in minor})
        place = {symbol: k for k, symbol in enumerate(symbols)}
        pair = pair_index(self.variety.d)
        rows, columns, factors = [], [], []
        for alpha, k, l in symbols:
            K, L = self._subsets(k, l)
            images = veronese_rows(alpha)
            rows.append([pair[K[f], K[p]] for p, f in enumerate(images)])
            columns.append(L)
            factors.append(2 ** sum(f != p for p, f in enumerate(images)))
        values = submatrix_minors(y, np.array(rows), np.array(columns), domain)
        values = domain.times(values, domain.convert(np.array(factors)))
        where = np.array([[place[symbol] for symbol in minor] for minor in minors])
        first, second, third, fourth = (values[..., column] for column in where.T)
        return domain.reduce(domain.times(first, second) - domain.times(third, fourth))


class VeroneseCatalecticant(Veronese):
    """2×2 minors of the catalecticants (D_{β+γ})_{|β|=s, |γ|=r−s}, 1 ≤ s ≤ r/2, for each K and L.

    >>> from attngeom.equations.variety import Variety
    >>> VeroneseCatalecticant(Variety(3, 3), 2).count
    9
    """

    title = "veronese-catalecticant"
    source = "Veronese coordinates, [I] Theorem 30"

    words = "K={K} L={L} minor rows {b},{c} columns {g},{h}"

    def _split_sizes(self) -> list[tuple[int, int, int]]:
        """For each s the numbers of pairs of rows and of columns."""
        sizes = [(s, comb(self.r + s - 1, s), comb(2 * self.r - s - 1, self.r - s)) for s in range(1, self.r // 2 + 1)]
        return [(s, comb(rows, 2), comb(columns, 2)) for s, rows, columns in sizes]

    @property
    def row_sizes(self) -> tuple[int, ...]:
        minors = sum(rows * columns for _, rows, columns in self._split_sizes())
        return self.num_contexts, self.num_target_sets, minors

    def _minor(self, *index: int) -> Minor:
        k, l, rest = index
        splits = iter(self._split_sizes())
        s, rows, columns = next(splits)
        while rest >= rows * columns:
            rest -= rows * columns
            s, rows, columns = next(splits)
        i, j = divmod(rest, columns)
        b, c = _two(exponents(self.r, s), i)
        g, h = _two(exponents(self.r, self.r - s), j)
        return k, b, c, (g, l), (h, l)


class VeroneseCrossTarget(Veronese):
    """2×2 minors of the two columns D_{α,K,L}, D_{α,K,L'} with rows α, for each K and L < L'.

    >>> from attngeom.equations.variety import Variety
    >>> VeroneseCrossTarget(Variety(3, 3), 2).count
    27
    """

    title = "veronese-cross-target"
    source = "two sets of targets, [I] Corollary 32"

    words = "K={K} L={L} L'={N} minor rows {b},{c}"

    @property
    def row_sizes(self) -> tuple[int, ...]:
        return self.num_contexts, comb(self.num_target_sets, 2), comb(comb(2 * self.r - 1, self.r), 2)

    def _minor(self, *index: int) -> Minor:
        k, sets, i = index
        l, n = combination_at(self.num_target_sets, 2, sets)
        b, c = _two(exponents(self.r, self.r), i)
        zero = (0,) * self.r
        return k, b, c, (zero, l), (zero, n)


class VeroneseBlock(Veronese):
    """2×2 minors of the matrix with rows |β| = 1, columns (|γ| = r−1, L) and entries D_{β+γ,K,L}, for each K.

    >>> from attngeom.equations.variety import Variety
    >>> VeroneseBlock(Variety(3, 3), 2).count
    45
    """

    title = "veronese-block"
    source = "block Veronese matrix, [I] Corollary 33"

    words = "K={K} minor rows {b},{c} columns {g}:L={L},{h}:L={N}"

    @property
    def _num_columns(self) -> int:
        return comb(2 * self.r - 2, self.r - 1) * self.num_target_sets

    @property
    def row_sizes(self) -> tuple[int, ...]:
        return self.num_contexts, comb(self.r, 2), comb(self._num_columns, 2)

    def _minor(self, *index: int) -> Minor:
        k, i, j = index
        b, c = _two(exponents(self.r, 1), i)
        rest = exponents(self.r, self.r - 1)
        (x, l), (z, n) = (divmod(u, self.num_target_sets) for u in combination_at(self._num_columns, 2, j))
        return k, b, c, (rest[x], l), (rest[z], n)


def _two(listed: tuple[Exponent, ...], index: int) -> tuple[Exponent, Exponent]:
    i, j = combination_at(len(listed), 2, index)
    return listed[i], listed[j]


def _symbols(k: int, b: Exponent, c: Exponent, first: Column, second: Column) -> tuple[Symbol, ...]:
    """The entries of a minor: those of the diagonal, then the others."""
    places = ((b, first), (c, second), (b, second), (c, first))
    return tuple((tuple(x + z for x, z in zip(row, g)), k, l) for row, (g, l) in places)
