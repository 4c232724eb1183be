"""Family 5, slice pencil: every combination of the slices T^(m) = (y_{(k,l),m})_{kl} has rank at most 2."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.family import RowFamily, combination_array
from attngeom.equations.minor_tables import block_size, points_first, points_last
from attngeom.exact.combinations import combination_at, multiset_at
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_index
from attngeom.exact.partitions import schur_dimension


@dataclass(frozen=True)
class SlicePencil(RowFamily):
    """T^(m) = (v a_mᵀ + a_m vᵀ)/2, so Σ c_m T^(m) has rank ≤ 2 and each coefficient in c of each 3×3 minor vanishes.

    Members are (rows I, columns J, targets K), I and J 3-subsets of the context, K a 3-multiset of the targets:
    C(d,3)² C(m+2,3) cubics. (I, J) and (J, I) give the same cubic; their span is S_222 V ⊗ S³U.

    >>> from attngeom.equations.variety import Variety
    >>> SlicePencil(Variety(3, 3)).count
    10
    """

    number: ClassVar[int] = 5
    title: ClassVar[str] = "slice-pencil"
    source: ClassVar[str] = "cross-column relations, [I] Proposition 24"
    degree: ClassVar[int] = 3

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

    The rows I_0, I_1 get two of the slices in both orders, the row I_2 the third one: expansion along that row.
    """
    values = points_last(y)
    points = values.shape[-1]
    out = np.empty((len(I), points), dtype=values.dtype)
    for start in range(0, len(I), block_size(points)):
        part = slice(start, start + block_size(points))
        out[part] = _pencil_block(values, I[part], J[part], K[part], d, domain)
    return points_first(out, y.shape[:-2])


def _pencil_block(y: Array, I: Array, J: Array, K: Array, d: int, domain: Domain) -> Array:
    index = pair_index(d)
    # Mixed 2×2 minors repeat for many members: each distinct one is computed once.
    wanted = []
    for last in range(3):
        a, b = (k for k in range(3) if k != last)
        for skipped in range(3):
            p, q = (j for j in range(3) if j != skipped)
            wanted.append(np.stack([I[:, 0], I[:, 1], J[:, p], J[:, q], K[:, a], K[:, b]], axis=1))
    distinct, where = np.unique(np.concatenate(wanted), axis=0, return_inverse=True)
    mixed = _mixed_minors(y, distinct, index, domain)
    where = where.reshape(3, 3, len(I))
    total = domain.zeros((len(I), y.shape[-1]))
    for last in range(3):
        # Equal slices in the multiset K give the same arrangement: count it for the first of them only.
        fresh = np.ones(len(I), dtype=bool)
        for earlier in range(last):
            fresh &= K[:, earlier] != K[:, last]
        chosen = np.flatnonzero(fresh)
        for skipped in range(3):
            entry = y[index[I[chosen, 2], J[chosen, skipped]], K[chosen, last]]
            term = domain.reduce(entry * mixed[where[last, skipped, chosen]])
            total[chosen] = total[chosen] + term if skipped % 2 == 0 else total[chosen] - term
        total = domain.reduce(total)
    return total


def _mixed_minors(y: Array, labels: Array, index: Array, domain: Domain) -> Array:
    """For rows i, k, columns p, q and slices a, b: the minor with i from a and k from b, plus the exchange if a ≠ b."""
    i, k, p, q, a, b = labels.T

    def minor(first: Array, second: Array) -> Array:
        straight = domain.reduce(y[index[i, p], first] * y[index[k, q], second])
        return domain.reduce(straight - domain.reduce(y[index[i, q], first] * y[index[k, p], second]))

    value = minor(a, b)
    both = np.flatnonzero(a != b)
    if len(both):
        value[both] = domain.reduce(value + minor(b, a))[both]
    return value
