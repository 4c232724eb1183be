"""Families 3 to 5 on slices of the coefficients: low rank, the Lie flattening of a split cubic, pencils of rank 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from math import comb

import numpy as np

from attngeom.equations.family import Choice, Family, RowFamily, combination_array
from attngeom.equations.minors import CoordinateMatrix, MinorFamily, blocks, points_first, points_last
from attngeom.equations.variety import Variety
from attngeom.exact.domains import Array, Domain
from attngeom.exact.modular import laplace_expansion
from attngeom.exact.multisets import combination_at, multiset_at, pair_index, triple_index, triple_orbits, triples
from attngeom.exact.partitions import schur_dimension


class LowRankSlice(MinorFamily):
    """N = (y_{kkl})_{k,l} satisfies 3N = diag(v)(A + Aᵀ) + diag(A) vᵀ, so rank N ≤ 2a+1: its (2a+2)-minors vanish.

    Members are (rows I, columns J): C(d, 2a+2)² of degree 2a+2, linearly independent.

    >>> from attngeom.equations.variety import Variety
    >>> LowRankSlice(Variety(4, 1)).count
    1
    """

    number = 3
    title = "low-rank-slice"
    source = "low-rank slice of the single-column coefficients, [I] Proposition 17"
    uses = "single"

    @classmethod
    def applies(cls, variety: Variety) -> bool:
        return variety.is_plain and variety.has_single

    @property
    def size(self) -> int:
        return 2 * self.variety.a + 2

    @property
    def matrix(self) -> CoordinateMatrix:
        d = self.variety.d

        def entries() -> tuple[Array, Array]:
            places = np.array([[triple_index((k, k, l), d) for l in range(d)] for k in range(d)])
            return places, np.ones_like(places)

        return CoordinateMatrix((d, d), entries, words=("I", "J"))


def lie_rank(d: int, a: int) -> int:
    """The largest rank of E ↦ Σ E_uv x_u ∂F/∂x_v on sl_d for cubics F = v(x) q(x), q of rank at most 2a; d ≥ 3.

    The dimension of the orbit SL_d F, see docs/reference/families.md.

    >>> lie_rank(3, 2), lie_rank(4, 1), lie_rank(4, 2)
    (7, 10, 12)
    """
    rho = min(2 * a, d)
    orbit = d + rho * d - rho * (rho - 1) // 2 - 1
    return orbit - 1 if rho == d or (d, rho) == (3, 2) else orbit


@dataclass(frozen=True)
class LieFlattening(MinorFamily):
    """Minors of M_F: sl_d → S³(C^d), E ↦ Σ E_uv x_u ∂F/∂x_v, for the single-column cubic F = v(x) q(x), d ≥ 3.

    A split cubic has an infinite stabilizer, so the maximal minors vanish; for a = 1 those of size lie_rank + 1, which
    ``sharp`` takes in every case. Members are (rows, columns): 3-multisets, and elements E_uv (u ≠ v), then
    E_uu − E_{u+1,u+1}, of a basis.

    >>> from attngeom.equations.variety import Variety
    >>> LieFlattening(Variety(3, 2)).count, LieFlattening(Variety(3, 2)).degree
    (45, 8)
    """

    sharp: bool = False
    number = 4
    title = "lie-flattening"
    source = "Lie flattening of split cubics, [I] Proposition 17"
    is_independent = False
    uses = "single"

    @classmethod
    def applies(cls, variety: Variety) -> bool:
        return variety.is_plain and variety.has_single and variety.d >= 3

    @classmethod
    def select(cls, variety: Variety, choice: Choice) -> Iterator[Family]:
        if cls.applies(variety):
            plain, sharp = cls(variety), cls(variety, sharp=True)
            yield from (plain, sharp) if sharp.degree < plain.degree else (plain,)

    @property
    def name(self) -> str:
        return f"{self.title}-sharp" if self.sharp else self.title

    @property
    def size(self) -> int:
        d, a = self.variety.d, self.variety.a
        return lie_rank(d, a) + 1 if self.sharp or a == 1 else d * d - 1

    @property
    def matrix(self) -> CoordinateMatrix:
        d = self.variety.d
        return CoordinateMatrix((comb(d + 2, 3), d * d - 1), lambda: lie_matrix(d))


@lru_cache(maxsize=32)
def lie_matrix(d: int) -> tuple[Array, Array]:
    """Places and integer factors of the entries of M_F: entry (R, E) is factor × y_{place}, shape C(d+2,3) × (d²−1).

    x_u ∂F/∂x_v has coefficient (mult of v in R − u + v) |orb| y at R; diagonal elements act by mult_u − mult_{u+1}.
    """
    orbits, all_triples = triple_orbits(d), triples(d)
    columns = [(u, v) for u in range(d) for v in range(d) if u != v]
    places = np.zeros((len(all_triples), d * d - 1), dtype=np.int64)
    factors = np.zeros_like(places)
    for i, R in enumerate(all_triples):
        for j, (u, v) in enumerate(columns):
            if u in R:
                rest = list(R)
                rest[rest.index(u)] = v
                source = triple_index((rest[0], rest[1], rest[2]), d)
                places[i, j], factors[i, j] = source, rest.count(v) * orbits[source]
        for u in range(d - 1):
            places[i, len(columns) + u] = i
            factors[i, len(columns) + u] = (R.count(u) - R.count(u + 1)) * orbits[i]
    return places, factors


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
