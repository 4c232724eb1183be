"""Family 8, Veronese invariants: minors D_{α,K,L} = v_K^α det A_{K,L} of degree r behave like monomials in v."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.families.flattenings import veronese_rows
from attngeom.equations.family import Choice, Family, RowFamily
from attngeom.equations.minors import submatrix_minors
from attngeom.equations.variety import Variety
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import combination_at, pair_index

Exponent = tuple[int, ...]
Symbol = tuple[Exponent, int, int]
"""(α, K, L) with K and L as indices of subsets."""
Column = tuple[Exponent, int]


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

    ``degrees`` are those of β in the rows, ``width`` sets of targets are chosen for the columns (γ, L), |β| + |γ| = r.
    """

    r: int
    number = 8
    is_independent = False
    words: ClassVar[str]
    """A minor in words, with places for its sets and exponents."""

    @classmethod
    def select(cls, variety: Variety, choice: Choice) -> Iterator[Family]:
        if cls.applies(variety):
            yield from (cls(variety, r) for r in range(2, variety.rank_bound + 1))

    @property
    def order(self) -> tuple[int, ...]:
        return self.number, self.r

    @property
    @abstractmethod
    def degrees(self) -> range: ...

    @property
    @abstractmethod
    def width(self) -> int: ...

    @property
    def name(self) -> str:
        return f"{self.title}-{self.r}"

    @property
    def degree(self) -> int:
        return 2 * self.r

    @property
    def num_target_sets(self) -> int:
        return comb(self.variety.num_targets, self.r)

    @property
    def row_sizes(self) -> tuple[int, ...]:
        choices = comb(self.num_target_sets, self.width)
        return comb(self.variety.d, self.r), choices, sum(rows * columns for _, rows, columns in self._pairs())

    def _pairs(self) -> Iterator[tuple[int, int, int]]:
        """For each degree of β the numbers of pairs of rows and of columns."""
        for s in self.degrees:
            columns = self.width * comb(2 * self.r - s - 1, self.r - s)
            yield s, comb(comb(self.r + s - 1, s), 2), comb(columns, 2)

    def _minor(self, choice: int, rest: int) -> tuple[Exponent, Exponent, Column, Column]:
        """Two rows β and two columns (γ, L) of a matrix with entries D_{β+γ,K,L}."""
        matrices = self._pairs()
        s, rows, columns = next(matrices)
        while rest >= rows * columns:
            rest -= rows * columns
            s, rows, columns = next(matrices)
        n = self.num_target_sets
        sets = range(n) if self.width == n else combination_at(n, self.width, choice)
        betas, gammas = exponents(self.r, s), exponents(self.r, self.r - s)
        i, j = divmod(rest, columns)
        b, c = combination_at(len(betas), 2, i)
        (x, l), (z, m) = (divmod(u, self.width) for u in combination_at(self.width * len(gammas), 2, j))
        return betas[b], betas[c], (gammas[x], sets[l]), (gammas[z], sets[m])

    def row_label(self, *index: int) -> str:
        k, *rest = index
        b, c, (g, l), (h, n) = self._minor(*rest)
        (K, L), (_, N) = self._subsets(k, l), self._subsets(k, n)
        return f"r={self.r} " + self.words.format(K=K, L=L, N=N, b=b, c=c, g=g, h=h)

    def _subsets(self, k: int, l: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return combination_at(self.variety.d, self.r, k), combination_at(self.variety.num_targets, self.r, l)

    def row_values(self, y: Array, domain: Domain, *index: Array) -> Array:
        minors = [_symbols(k, *self._minor(*rest)) for k, *rest in zip(*(digit.tolist() for digit in index))]
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
    width = 1

    @property
    def degrees(self) -> range:
        return range(1, self.r // 2 + 1)


class VeroneseCrossTarget(Veronese):
    """2×2 minors of the two columns D_{α,K,L}, D_{α,K,L'} with rows α, for each K and L < L'.

    >>> from attngeom.equations.variety import Variety
    >>> VeroneseCrossTarget(Variety(3, 3), 2).count
    27
    """

    title = "veronese-cross-target"
    source = "two sets of targets, [I] Corollary 32"

    words = "K={K} L={L} L'={N} minor rows {b},{c}"
    width = 2

    @property
    def degrees(self) -> range:
        return range(self.r, self.r + 1)


class VeroneseBlock(Veronese):
    """2×2 minors of the matrix with rows |β| = 1, columns (|γ| = r−1, L) and entries D_{β+γ,K,L}, for each K.

    >>> from attngeom.equations.variety import Variety
    >>> VeroneseBlock(Variety(3, 3), 2).count
    45
    """

    title = "veronese-block"
    source = "block Veronese matrix, [I] Corollary 33"

    words = "K={K} minor rows {b},{c} columns {g}:L={L},{h}:L={N}"
    degrees = range(1, 2)

    @property
    def width(self) -> int:
        return self.num_target_sets


def _symbols(k: int, b: Exponent, c: Exponent, first: Column, second: Column) -> tuple[Symbol, ...]:
    """The entries of a minor: those of the diagonal, then the others."""
    places = ((b, first), (c, second), (b, second), (c, first))
    return tuple((tuple(x + z for x, z in zip(row, g)), k, l) for row, (g, l) in places)
