"""Family 5, slice pencil: every combination of the slices T^(m) = (y_{(k,l),m})_{kl} has rank at most 2."""

from __future__ import annotations

from itertools import combinations, permutations
from math import comb

import numpy as np

from attngeom.equations.family import RowFamily, combination_array
from attngeom.equations.minors import blocks, points_first, points_last
from attngeom.exact.domains import Array, Domain
from attngeom.exact.modular import laplace_expansion
from attngeom.exact.multisets import combination_at, multiset_at, pair_index
from attngeom.exact.partitions import schur_dimension


class SlicePencil(RowFamily):
    """T^(m) = (v a_mᵀ + a_m vᵀ)/2, so Σ c_m T^(m) has rank ≤ 2 and each coefficient in c of each 3×3 minor vanishes.

    Members are (rows I, columns J, targets K), I and J 3-subsets of the context, K a 3-multiset of the targets:
    C(d,3)² C(m+2,3) cubics. (I, J) and (J, I) give the same cubic; their span is S_222 V ⊗ S³U.

    >>> from attngeom.equations.variety import Variety
    >>> SlicePencil(Variety(3, 3)).count
    10
    """

    number = 5
    title = "slice-pencil"
    source = "cross-column relations, [I] Proposition 24"
    degree = 3

    @property
    def row_sizes(self) -> tuple[int, ...]:
        d, m = self.variety.d, self.variety.num_targets
        return comb(d, 3), comb(d, 3), comb(m + 2, 3)

    @property
    def span(self) -> int:
        row = schur_dimension((2, 2, 2), self.variety.d) * comb(self.variety.num_targets + 2, 3)
        return self.variety.d_out * row

    def row_label(self, *index: int) -> str:
        i, j, k = index
        d, m = self.variety.d, self.variety.num_targets
        return f"I={combination_at(d, 3, i)} J={combination_at(d, 3, j)} K={multiset_at(m, 3, k)}"

    def row_values(self, y: Array, domain: Domain, *index: Array) -> Array:
        d, m = self.variety.d, self.variety.num_targets
        i, j, k = index
        slices = combination_array(m + 2, 3, k) - np.arange(3)
        return pencil_values(y, combination_array(d, 3, i), combination_array(d, 3, j), slices, d, domain)


def pencil_values(y: Array, I: Array, J: Array, K: Array, d: int, domain: Domain) -> Array:
    """The cubics (I[n], J[n], K[n]) at coordinates y (…, D, targets), shape (…, n); index arrays have shape (n, 3).

    The coefficient of c^K is the sum of the minors with row I_i from slice K_i, over the distinct orders of K.
    """
    index, values = pair_index(d), points_last(y)
    out = domain.zeros((len(I), values.shape[-1]))
    for order in permutations(range(3)):
        slices = K[:, order]
        # Equal slices are taken in one order only.
        exchanged = [slices[:, p] == slices[:, q] for p, q in combinations(range(3), 2) if order[p] > order[q]]
        chosen = np.flatnonzero(~np.any([np.zeros(len(K), dtype=bool), *exchanged], axis=0))
        for part in blocks(len(chosen), values.shape[-1]):
            own = chosen[part]
            entries = [[values[index[I[own, i], J[own, j]], slices[own, i]] for j in range(3)] for i in range(3)]
            out[own] = domain.reduce(out[own] + laplace_expansion(entries, domain.reduce))
    return points_first(out, y.shape[:-2])
