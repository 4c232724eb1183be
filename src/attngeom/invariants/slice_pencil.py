"""Family 5, slice pencil: every combination of the slices T^(m) = (y_{(k,l),m})_{kl} has rank at most 2."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.coefficients.labels import pair_index
from attngeom.exact.combinations import combination_at, multiset_at
from attngeom.exact.domains import Array, Domain
from attngeom.exact.minors import laplace_expansion
from attngeom.invariants.family import RowFamily, combination_array, index_digits, mixed_radix
from attngeom.invariants.tableaux import schur_dimension
from attngeom.invariants.terms import Terms, add, cross, expand_determinant, linear


@dataclass(frozen=True)
class SlicePencil(RowFamily):
    """T^(m) = (v a_mᵀ + a_m vᵀ)/2, so Σ c_m T^(m) has rank ≤ 2 and each coefficient in c of each 3×3 minor vanishes.

    Members are (rows I, columns J, targets K), I and J 3-subsets of the context, K a 3-multiset of the targets:
    C(d,3)² C(m+2,3) cubics. (I, J) and (J, I) give the same cubic; their span is S_222 V ⊗ S³U.

    >>> from attngeom.invariants.variety import Variety
    >>> SlicePencil(Variety(3, 3)).count
    10
    """

    number: ClassVar[int] = 5
    source: ClassVar[str] = "cross-column relations, [I] Proposition 24"

    @property
    def name(self) -> str:
        return "slice-pencil"

    @property
    def degree(self) -> int:
        return 3

    @property
    def row_count(self) -> int:
        return comb(self.variety.d, 3) ** 2 * comb(self.variety.num_targets + 2, 3)

    @property
    def dimension(self) -> int:
        row = schur_dimension((2, 2, 2), self.variety.d) * comb(self.variety.num_targets + 2, 3)
        return self.variety.d_out * row

    def _place(self, index: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        d, m = self.variety.d, self.variety.num_targets
        i, j, k = mixed_radix(index, comb(d, 3), comb(d, 3), comb(m + 2, 3))
        return combination_at(d, 3, i), combination_at(d, 3, j), multiset_at(m, 3, k)

    def row_label(self, index: int) -> str:
        I, J, K = self._place(index)
        return f"I={I} J={J} K={K}"

    def row_terms(self, index: int, row: int) -> Terms:
        I, J, K = self._place(index)
        return pencil_terms(I, J, K, row)

    def row_evaluate(self, y: Array, domain: Domain, start: int, stop: int) -> Array:
        d, m = self.variety.d, self.variety.num_targets
        i, j, k = index_digits(start, stop, comb(d, 3), comb(d, 3), comb(m + 2, 3))
        slices = combination_array(m + 2, 3, k) - np.arange(3)
        return pencil_values(y, combination_array(d, 3, i), combination_array(d, 3, j), slices, d, domain)


def pencil_terms(I: tuple[int, ...], J: tuple[int, ...], K: tuple[int, ...], row: int) -> Terms:
    """The coefficient of c^K in the minor (I, J) of Σ c_m T^(m)."""
    parts = []
    for slices in sorted(set(permutations(K))):
        matrix = [[linear([(cross(row, i, j, m), 1)]) for j in J] for i, m in zip(I, slices)]
        parts.append((1, expand_determinant(matrix)))
    return add(*parts)


def pencil_values(y: Array, I: Array, J: Array, K: Array, d: int, domain: Domain) -> Array:
    """The cubics (I[n], J[n], K[n]) at coordinates y (…, D, targets), shape (…, n); index arrays have shape (n, 3)."""
    index = pair_index(d)
    values = domain.zeros((*y.shape[:-2], len(I)))
    for order in permutations(range(3)):
        slices = K[:, list(order)]
        # One representative of each distinct arrangement: equal slices keep the order of their positions.
        distinct = np.ones(len(I), dtype=bool)
        for u in range(3):
            for w in range(u + 1, 3):
                if order[u] > order[w]:
                    distinct &= slices[:, u] != slices[:, w]
        chosen = np.flatnonzero(distinct)
        if len(chosen):
            entries = [
                [y[..., index[I[chosen, p], J[chosen, q]], slices[chosen, p]] for q in range(3)] for p in range(3)
            ]
            values[..., chosen] = domain.reduce(values[..., chosen] + laplace_expansion(entries, domain.reduce))
    return values
