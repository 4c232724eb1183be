"""Family 7, determinantal syzygies: linear relations among the maximal minors of the flattening."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from flint import fmpq

from attngeom.equations.family import RowFamily, combination_array
from attngeom.equations.minors import submatrix_minors
from attngeom.equations.variety import Variety
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.exact.modular import laplace_expansion
from attngeom.exact.multisets import combination_at, combination_rank, pair_index, pairs


class DeterminantalSyzygies(RowFamily):
    """Fl = Φ(v) A, so its maximal minors are those of Φ(v), forms of degree d in v, times det A.

    The C(D,d) minors of Φ(v) span all C(2d−1,d) monomials v^α: for each α one set of rows, {(f(p), p)} with f as in the
    Veronese invariants, has minor v^α up to a factor. Every other set I then gives one relation
    Fl_I − Σ_α c_{I,α} Fl_{I(α)}: (C(D,d) − C(2d−1,d)) C(m,d) forms of degree d, linearly independent.

    >>> from attngeom.equations.variety import Variety
    >>> DeterminantalSyzygies(Variety(3, 3)).count
    10
    """

    number = 7
    title = "determinantal-syzygy"
    source = "determinantal syzygies, [I] Theorem 27"

    @classmethod
    def applies(cls, variety: Variety) -> bool:
        return super().applies(variety) and variety.rank_bound == variety.d >= 3

    @property
    def degree(self) -> int:
        return self.variety.d

    @property
    def row_sizes(self) -> tuple[int, ...]:
        d, m = self.variety.d, self.variety.num_targets
        return comb(self.variety.num_pairs, d) - comb(2 * d - 1, d), comb(m, d)

    def row_label(self, *index: int) -> str:
        relation, targets = index
        d, m = self.variety.d, self.variety.num_targets
        chosen = combination_at(self.variety.num_pairs, d, _row_set(d, relation))
        return f"S=({', '.join(str(pairs(d)[s]) for s in chosen)}) L={combination_at(m, d, targets)}"

    def row_values(self, y: Array, domain: Domain, *index: Array) -> Array:
        d, D, m = self.variety.d, self.variety.num_pairs, self.variety.num_targets
        terms = []
        for column, (relation, l) in enumerate(zip(*(digit.tolist() for digit in index))):
            terms += [(place, l, column, c) for place, c in _relation(d, _row_set(d, relation)).items()]
        needed, where = np.unique([(place, l) for place, l, _, _ in terms], axis=0, return_inverse=True)
        minors = submatrix_minors(
            y, combination_array(D, d, needed[:, 0]), combination_array(m, d, needed[:, 1]), domain
        )
        values = domain.zeros((*y.shape[:-2], len(index[0])))
        factors = domain.convert([c for _, _, _, c in terms])
        for (_, _, column, _), source, factor in zip(terms, where.ravel(), factors):
            values[..., column] = domain.reduce(values[..., column] + domain.times(minors[..., source], factor))
        return values


def veronese_rows(alpha: tuple[int, ...]) -> tuple[int, ...]:
    """f: [r] → [r] with |f⁻¹(p)| = α_p and f(p) = p whenever α_p > 0, the free indices in increasing order.

    >>> veronese_rows((2, 0, 1))
    (0, 0, 2)
    """
    left = [a - 1 for a in alpha]
    images = []
    for p, a in enumerate(alpha):
        if a > 0:
            images.append(p)
        else:
            target = next(q for q, free in enumerate(left) if free > 0)
            left[target] -= 1
            images.append(target)
    return tuple(images)


@lru_cache(maxsize=32)
def _canonical_sets(d: int) -> tuple[dict[tuple[int, ...], int], list[int]]:
    """For each α of degree d in d variables the index of its set of rows; and how many other sets come before each."""
    index, D = pair_index(d), comb(d + 1, 2)
    places = {}
    for word in combinations_with_replacement(range(d), d):
        alpha = tuple(word.count(p) for p in range(d))
        rows = sorted(int(index[q, p]) for p, q in enumerate(veronese_rows(alpha)))
        places[alpha] = combination_rank(D, rows)
    return places, [place - k for k, place in enumerate(sorted(places.values()))]


def _row_set(d: int, relation: int) -> int:
    """The index of the set of rows number ``relation`` among those that are not canonical."""
    return relation + bisect_right(_canonical_sets(d)[1], relation)


@lru_cache(maxsize=100_000)
def _relation(d: int, rows: int) -> Mapping[int, fmpq]:
    """The coefficients {set of rows: c} of the relation led by a set that is not canonical."""
    canonical = _canonical_sets(d)[0]
    relation = {rows: fmpq(1)}
    for alpha, c in _minor_of_phi(d, rows).items():
        place = canonical[alpha]
        relation[place] = -c / _minor_of_phi(d, place)[alpha]
    return relation


@lru_cache(maxsize=100_000)
def _minor_of_phi(d: int, rows: int) -> dict[tuple[int, ...], fmpq]:
    """The maximal minor of Φ(v) with these rows as {α: coefficient of v^α}; row (k, l) is (v_k e_l + v_l e_k)/2."""
    ring = QQ.polynomials([f"v_{k}" for k in range(d)])
    v, zero = ring.gens(), ring.constant(0)
    matrix = []
    for s in combination_at(comb(d + 1, 2), d, rows):
        k, l = pairs(d)[s]
        row = [zero] * d
        row[l] += v[k] * fmpq(1, 2)
        row[k] += v[l] * fmpq(1, 2)
        matrix.append(row)
    minor = laplace_expansion(matrix)
    return {tuple(int(e) for e in exponents): c for exponents, c in minor.terms()}
