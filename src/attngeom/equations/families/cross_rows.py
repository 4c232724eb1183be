"""Families 10 and 11 across output rows: rank of the coefficient block, and Segre quadrics."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from math import comb

import numpy as np

from attngeom.equations.family import Family, combination_array
from attngeom.equations.minors import CoordinateMatrix, MinorFamily
from attngeom.equations.variety import Points, Variety
from attngeom.exact.domains import Array
from attngeom.exact.multisets import combination_at, multiset_at, pair_orbits, pairs


class CrossRowRank(MinorFamily):
    """The d_out rows of coefficients of one target column are V·B(A): the block has rank ≤ d, its (d+1)-minors vanish.

    Columns of the block: the single-column coordinates, then the cross-column ones. Members are (rows, columns):
    C(d_out, d+1) C(N, d+1) of degree d+1; nontrivial if d_out > d.

    >>> from attngeom.equations.variety import Variety
    >>> CrossRowRank(Variety(2, 1, tokens=2, d_out=3)).count
    120
    """

    number = 10
    title = "cross-row-rank"
    source = "cross-row determinants, [I] Proposition 44"

    uses = "both"
    joins_rows = True

    @classmethod
    def applies(cls, variety: Variety) -> bool:
        return variety.is_plain and (variety.has_cross or variety.has_single)

    @property
    def size(self) -> int:
        return self.variety.d + 1

    @property
    def matrix(self) -> CoordinateMatrix:
        def name(column: int) -> str:
            letter, indices = self.coordinate(column)
            return f"{letter}{indices}"

        return CoordinateMatrix((self.variety.d_out, sum(self.numbers.values())), names=(None, name))


class SegreQuadrics(Family):
    """The table of quadrics α_m(z) ν_n(z) has rank one: T_{nm} T_{sr} − T_{nr} T_{sm} = 0 as quartics in z.

    Members are (rows n < s, targets m < r, W): the coefficient of z^W, W a 4-multiset of the context:
    C(d_out,2) C(m,2) C(d+3,4) quadrics, a basis of Λ²(rows) ⊗ S⁴V ⊗ Λ²U.

    >>> from attngeom.equations.variety import Variety
    >>> SegreQuadrics(Variety(2, 2, d_out=2)).count
    5
    """

    number = 11
    title = "segre-quadric"
    source = "rank one of the table of quadrics; not in [I]"
    degree = 2

    @property
    def sizes(self) -> tuple[int, ...]:
        variety = self.variety
        return comb(variety.d_out, 2), comb(variety.num_targets, 2), comb(variety.d + 3, 4)

    def describe(self, *index: int) -> str:
        i, j, w = index
        rows, targets = combination_at(self.variety.d_out, 2, i), combination_at(self.variety.num_targets, 2, j)
        return f"rows={rows} targets={targets} W={multiset_at(self.variety.d, 4, w)}"

    def values(self, points: Points, *index: Array) -> Array:
        d, domain = self.variety.d, points.domain
        i, j, w = index
        c = domain.times(points.first_cross, domain.convert(pair_orbits(d))[:, None])
        rows = combination_array(self.variety.d_out, 2, i)
        targets = combination_array(self.variety.num_targets, 2, j)
        values = domain.zeros((*c.shape[:-3], len(w)))
        splits = quartic_splits(d)
        for step in range(6):
            chosen = np.flatnonzero([len(splits[k]) > step for k in w])
            if not len(chosen):
                break
            S, T = np.array([splits[k][step] for k in w[chosen]]).T
            (n, s), (m, r) = rows[chosen].T, targets[chosen].T
            straight = domain.times(c[..., n, S, m], c[..., s, T, r])
            swapped = domain.times(c[..., n, S, r], c[..., s, T, m])
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
