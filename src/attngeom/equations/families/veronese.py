"""Family 8, Veronese invariants: minors D_{α,K,L} = v_K^α det A_{K,L} of degree r behave like monomials in v."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.families.syzygies import veronese_rows
from attngeom.equations.family import RowFamily, mixed_radix
from attngeom.equations.minor_tables import submatrix_minors
from attngeom.equations.terms import Terms, add, cross, multiply, variable_determinant
from attngeom.exact.combinations import combination_at, multiset_at
from attngeom.exact.determinants import laplace_expansion
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_index

Exponent = tuple[int, ...]
Symbol = tuple[Exponent, int, int]


@lru_cache(maxsize=64)
def exponents(r: int, degree: int) -> tuple[Exponent, ...]:
    """The exponents α ∈ N^r with |α| = degree, by lexicographic multisets.

    >>> exponents(2, 2)
    ((2, 0), (1, 1), (0, 2))
    """
    words = [multiset_at(r, degree, k) for k in range(comb(r + degree - 1, degree))]
    return tuple(tuple(word.count(p) for p in range(r)) for word in words)


@lru_cache(maxsize=10_000)
def veronese_determinant(alpha: Exponent, K: tuple[int, ...], L: tuple[int, ...], row: int) -> Terms:
    """D_{α,K,L} as a polynomial; on the variety it is v_K^α det A_{K,L}.

    >>> veronese_determinant((1,), (0,), (2,), 0)
    {(('y', 0, 0, 0, 2),): 1}
    """
    images = veronese_rows(alpha)
    factor = 2 ** sum(f != p for p, f in enumerate(images))
    return variable_determinant([[cross(row, K[f], K[p], m) for m in L] for p, f in enumerate(images)], factor)


@dataclass(frozen=True)
class Veronese(RowFamily):
    """2×2 minors of matrices whose entries are D_{α,K,L}, for r-subsets K of the context and L of the targets.

    Row p, column q of D_{α,K,L} is ω·y_{(k_f(p),k_p), l_q} with ω = 1 if the two indices agree and 2 otherwise;
    f: [r]→[r] has |f⁻¹(m)| = α_m and f(m) = m whenever α_m > 0. Other orders of K and L give the same
    determinants up to sign.
    """

    r: int
    number: ClassVar[int] = 8

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
    def _minor(self, index: int) -> tuple[str, Symbol, Symbol, Symbol, Symbol]:
        """A label and the four symbols (α, K, L) of the minor D·D − D·D, with K and L as indices of subsets."""

    def row_label(self, index: int) -> str:
        return f"r={self.r} {self._minor(index)[0]}"

    def row_terms(self, index: int, row: int) -> Terms:
        _, *symbols = self._minor(index)
        first, second, third, fourth = (self._determinant(symbol, row) for symbol in symbols)
        return add((1, multiply(first, second)), (-1, multiply(third, fourth)))

    def _subsets(self, symbol: Symbol) -> tuple[tuple[int, ...], tuple[int, ...]]:
        _, k, l = symbol
        return combination_at(self.variety.d, self.r, k), combination_at(self.variety.num_targets, self.r, l)

    def _determinant(self, symbol: Symbol, row: int) -> Terms:
        K, L = self._subsets(symbol)
        return veronese_determinant(symbol[0], K, L, row)

    def row_evaluate(self, y: Array, domain: Domain, start: int, stop: int) -> Array:
        if start == stop:
            return domain.zeros((*y.shape[:-2], 0))
        minors = [self._minor(index)[1:] for index in range(start, stop)]
        symbols = sorted({symbol for minor in minors for symbol in minor})
        place = {symbol: k for k, symbol in enumerate(symbols)}
        index = pair_index(self.variety.d)
        rows, columns, factors = [], [], []
        for symbol in symbols:
            K, L = self._subsets(symbol)
            images = veronese_rows(symbol[0])
            rows.append([index[K[f], K[p]] for p, f in enumerate(images)])
            columns.append(L)
            factors.append(2 ** sum(f != p for p, f in enumerate(images)))
        values = submatrix_minors(y, np.array(rows), np.array(columns), domain)
        values = domain.reduce(values * domain.convert(np.array(factors)))
        where = np.array([[place[symbol] for symbol in minor] for minor in minors])
        entries = [
            [values[..., where[:, 0]], values[..., where[:, 2]]],
            [values[..., where[:, 3]], values[..., where[:, 1]]],
        ]
        return np.asarray(laplace_expansion(entries, domain.reduce))


@dataclass(frozen=True)
class VeroneseCatalecticant(Veronese):
    """2×2 minors of the catalecticants (D_{β+γ})_{|β|=s, |γ|=r−s}, 1 ≤ s ≤ r/2, for each K and L.

    >>> from attngeom.equations.variety import Variety
    >>> VeroneseCatalecticant(Variety(3, 3), 2).count
    9
    """

    source: ClassVar[str] = "Veronese coordinates, [I] Theorem 30"

    @property
    def name(self) -> str:
        return f"veronese-catalecticant-{self.r}"

    def _split_sizes(self) -> list[tuple[int, int, int]]:
        sizes = [(s, comb(self.r + s - 1, s), comb(2 * self.r - s - 1, self.r - s)) for s in range(1, self.r // 2 + 1)]
        return [(s, comb(rows, 2), comb(columns, 2)) for s, rows, columns in sizes]

    @property
    def row_count(self) -> int:
        return (
            self.num_contexts * self.num_target_sets * sum(rows * columns for _, rows, columns in self._split_sizes())
        )

    def _minor(self, index: int) -> tuple[str, Symbol, Symbol, Symbol, Symbol]:
        sizes = self._split_sizes()
        k, l, rest = mixed_radix(
            index, self.num_contexts, self.num_target_sets, sum(rows * columns for _, rows, columns in sizes)
        )
        ends = list(accumulate(rows * columns for _, rows, columns in sizes))
        s, _, columns = sizes[bisect_right(ends, rest)]
        rest -= sum(r * c for size, r, c in sizes if size < s)
        i, j = divmod(rest, columns)
        left, right = exponents(self.r, s), exponents(self.r, self.r - s)
        b, c = (left[x] for x in combination_at(len(left), 2, i))
        g, h = (right[x] for x in combination_at(len(right), 2, j))
        K, L = self._subsets(((), k, l))
        symbols = [(_sum(b, g), k, l), (_sum(c, h), k, l), (_sum(b, h), k, l), (_sum(c, g), k, l)]
        return (f"K={K} L={L} minor rows {b},{c} columns {g},{h}", *symbols)  # type: ignore[return-value]


@dataclass(frozen=True)
class VeroneseCrossTarget(Veronese):
    """2×2 minors of the two columns D_{α,K,L}, D_{α,K,L'} with rows α, for each K and L < L'.

    >>> from attngeom.equations.variety import Variety
    >>> VeroneseCrossTarget(Variety(3, 3), 2).count
    27
    """

    source: ClassVar[str] = "two sets of targets, [I] Corollary 32"

    @property
    def name(self) -> str:
        return f"veronese-cross-target-{self.r}"

    @property
    def row_count(self) -> int:
        return self.num_contexts * comb(self.num_target_sets, 2) * comb(comb(2 * self.r - 1, self.r), 2)

    def _minor(self, index: int) -> tuple[str, Symbol, Symbol, Symbol, Symbol]:
        rows = exponents(self.r, self.r)
        k, l, i = mixed_radix(index, self.num_contexts, comb(self.num_target_sets, 2), comb(len(rows), 2))
        l, n = combination_at(self.num_target_sets, 2, l)
        a, b = (rows[x] for x in combination_at(len(rows), 2, i))
        (K, L), (_, N) = self._subsets(((), k, l)), self._subsets(((), k, n))
        symbols = [(a, k, l), (b, k, n), (a, k, n), (b, k, l)]
        return (f"K={K} L={L} L'={N} minor rows {a},{b}", *symbols)  # type: ignore[return-value]


@dataclass(frozen=True)
class VeroneseBlock(Veronese):
    """2×2 minors of the matrix with rows |β| = 1, columns (|γ| = r−1, L) and entries D_{β+γ,K,L}, for each K.

    >>> from attngeom.equations.variety import Variety
    >>> VeroneseBlock(Variety(3, 3), 2).count
    45
    """

    source: ClassVar[str] = "block Veronese matrix, [I] Corollary 33"

    @property
    def name(self) -> str:
        return f"veronese-block-{self.r}"

    @property
    def _num_columns(self) -> int:
        return comb(2 * self.r - 2, self.r - 1) * self.num_target_sets

    @property
    def row_count(self) -> int:
        return self.num_contexts * comb(self.r, 2) * comb(self._num_columns, 2)

    def _minor(self, index: int) -> tuple[str, Symbol, Symbol, Symbol, Symbol]:
        k, i, j = mixed_radix(index, self.num_contexts, comb(self.r, 2), comb(self._num_columns, 2))
        units, rest = exponents(self.r, 1), exponents(self.r, self.r - 1)
        b, c = (units[x] for x in combination_at(self.r, 2, i))
        (x, l), (z, n) = (divmod(u, self.num_target_sets) for u in combination_at(self._num_columns, 2, j))
        g, h = rest[x], rest[z]
        (K, L), (_, N) = self._subsets(((), k, l)), self._subsets(((), k, n))
        symbols = [(_sum(b, g), k, l), (_sum(c, h), k, n), (_sum(b, h), k, n), (_sum(c, g), k, l)]
        return (f"K={K} minor rows {b},{c} columns {g}:L={L},{h}:L={N}", *symbols)  # type: ignore[return-value]


def _sum(a: Exponent, b: Exponent) -> Exponent:
    return tuple(x + z for x, z in zip(a, b))
