"""Families 10 and 11 across output rows: rank of the coefficient block, and Segre quadrics."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.families.single_column import MAX_EXPANDED
from attngeom.equations.family import Family, combination_array, index_digits, mixed_radix
from attngeom.equations.minor_tables import submatrix_minors
from attngeom.equations.terms import Terms, Variable, add, cross, expand_determinant, linear, multiply
from attngeom.equations.variety import Points
from attngeom.errors import SizeError
from attngeom.exact.combinations import combination_at, multiset_at
from attngeom.exact.domains import Array
from attngeom.exact.multisets import pair_orbits, pairs, triples


@dataclass(frozen=True)
class CrossRowRank(Family):
    """The d_out rows of coefficients of one target column are V·B(A): the block has rank ≤ d, its (d+1)-minors vanish.

    Columns of the block: the single-column coordinates, then the cross-column ones. Members are (rows, columns):
    C(d_out, d+1) C(N, d+1) of degree d+1; nontrivial if d_out > d.

    >>> from attngeom.equations.variety import Variety
    >>> CrossRowRank(Variety(2, 1, d_out=3)).count
    120
    """

    number: ClassVar[int] = 10
    source: ClassVar[str] = "cross-row determinants, [I] Proposition 44"

    @property
    def name(self) -> str:
        return "cross-row-rank"

    @property
    def degree(self) -> int:
        return self.variety.d + 1

    @property
    def _num_single(self) -> int:
        return comb(self.variety.d + 2, 3) if self.variety.has_single else 0

    @property
    def _num_columns(self) -> int:
        cross_columns = self.variety.num_pairs * self.variety.num_targets if self.variety.has_cross else 0
        return self._num_single + cross_columns

    @property
    def count(self) -> int:
        return comb(self.variety.d_out, self.degree) * comb(self._num_columns, self.degree)

    @property
    def dimension(self) -> int:
        return self.count

    def _place(self, index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        r = self.degree
        i, j = mixed_radix(index, comb(self.variety.d_out, r), comb(self._num_columns, r))
        return combination_at(self.variety.d_out, r, i), combination_at(self._num_columns, r, j)

    def _variable(self, row: int, column: int) -> Variable:
        if column < self._num_single:
            return ("s", row, *triples(self.variety.d)[column])
        s, m = divmod(column - self._num_single, self.variety.num_targets)
        return ("y", row, *pairs(self.variety.d)[s], m)

    def label(self, index: int) -> str:
        rows, columns = self._place(index)
        names = []
        for column in columns:
            kind, _, *indices = self._variable(0, column)
            names.append(f"{kind}{tuple(indices)}")
        return f"rows={rows} columns=({', '.join(names)})"

    def terms(self, index: int) -> Terms:
        if self.degree > MAX_EXPANDED:
            raise SizeError(
                f"a minor of size {self.degree} given; up to {MAX_EXPANDED} are expanded: evaluate it instead"
            )
        rows, columns = self._place(index)
        return expand_determinant([[linear([(self._variable(i, j), 1)]) for j in columns] for i in rows])

    def evaluate(self, points: Points, start: int = 0, stop: int | None = None) -> Array:
        start, stop = self.check_range(start, stop)
        blocks = []
        if self._num_single:
            blocks.append(points.first_single)
        if self.variety.has_cross:
            y = points.first_cross
            blocks.append(y.reshape(*y.shape[:-2], -1))
        r = self.degree
        i, j = index_digits(start, stop, comb(self.variety.d_out, r), comb(self._num_columns, r))
        rows, columns = combination_array(self.variety.d_out, r, i), combination_array(self._num_columns, r, j)
        return submatrix_minors(np.concatenate(blocks, axis=-1), rows, columns, points.domain)


@dataclass(frozen=True)
class SegreQuadrics(Family):
    """The table of quadrics α_m(z) ν_n(z) has rank one: T_{nm} T_{sr} − T_{nr} T_{sm} = 0 as quartics in z.

    Members are (rows n < s, targets m < r, W): the coefficient of z^W, W a 4-multiset of the context:
    C(d_out,2) C(m,2) C(d+3,4) quadrics, a basis of Λ²(rows) ⊗ S⁴V ⊗ Λ²U.

    >>> from attngeom.equations.variety import Variety
    >>> SegreQuadrics(Variety(2, 2, d_out=2)).count
    5
    """

    number: ClassVar[int] = 11
    source: ClassVar[str] = "rank one of the table of quadrics; not in [I]"

    @property
    def name(self) -> str:
        return "segre-quadric"

    @property
    def degree(self) -> int:
        return 2

    @property
    def count(self) -> int:
        variety = self.variety
        return comb(variety.d_out, 2) * comb(variety.num_targets, 2) * comb(variety.d + 3, 4)

    @property
    def dimension(self) -> int:
        return self.count

    def _place(self, index: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        rows, m = self.variety.d_out, self.variety.num_targets
        i, j, w = mixed_radix(index, comb(rows, 2), comb(m, 2), comb(self.variety.d + 3, 4))
        return combination_at(rows, 2, i), combination_at(m, 2, j), w

    def label(self, index: int) -> str:
        rows, targets, w = self._place(index)
        return f"rows={rows} targets={targets} W={multiset_at(self.variety.d, 4, w)}"

    def terms(self, index: int) -> Terms:
        (n, s), (m, r), w = self._place(index)
        d = self.variety.d
        orbits, names = pair_orbits(d), pairs(d)
        parts = []
        for S, T in quartic_splits(d)[w]:
            factor = int(orbits[S] * orbits[T])
            for sign, u, v in ((1, m, r), (-1, r, m)):
                left, right = linear([(cross(n, *names[S], u), 1)]), linear([(cross(s, *names[T], v), 1)])
                parts.append((sign * factor, multiply(left, right)))
        return add(*parts)

    def evaluate(self, points: Points, start: int = 0, stop: int | None = None) -> Array:
        start, stop = self.check_range(start, stop)
        d, domain = self.variety.d, points.domain
        c = domain.reduce(points.first_cross * domain.convert(pair_orbits(d))[:, None])
        row_sets, target_sets = comb(self.variety.d_out, 2), comb(self.variety.num_targets, 2)
        i, j, w = index_digits(start, stop, row_sets, target_sets, comb(d + 3, 4))
        rows = combination_array(self.variety.d_out, 2, i)
        targets = combination_array(self.variety.num_targets, 2, j)
        values = domain.zeros((*c.shape[:-3], stop - start))
        splits = quartic_splits(d)
        for step in range(6):
            chosen = np.flatnonzero([len(splits[k]) > step for k in w])
            if not len(chosen):
                break
            S, T = np.array([splits[k][step] for k in w[chosen]]).T
            (n, s), (m, r) = rows[chosen].T, targets[chosen].T
            straight = domain.reduce(c[..., n, S, m] * c[..., s, T, r])
            swapped = domain.reduce(c[..., n, S, r] * c[..., s, T, m])
            values[..., chosen] = domain.reduce(values[..., chosen] + straight - swapped)
        return values


@lru_cache(maxsize=32)
def quartic_splits(d: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each 4-multiset W in lexicographic order: the ordered pairs (S, T) of places of pairs with S ⊎ T = W.

    >>> quartic_splits(2)[1]
    ((0, 1), (1, 0))
    """
    table = defaultdict(list)
    for k, (p, q) in enumerate(pairs(d)):
        for l, (u, v) in enumerate(pairs(d)):
            table[tuple(sorted((p, q, u, v)))].append((k, l))
    return tuple(tuple(table[W]) for W in sorted(table))
