"""Families 6, 7 and 14 to 16: minors of flattenings, of one head and of several, and the syzygies of maximal ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar

import numpy as np
from flint import fmpq

from attngeom.equations.family import RowFamily, combination_array
from attngeom.equations.minors import CoordinateMatrix, MinorFamily, submatrix_minors
from attngeom.equations.variety import Variety
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.exact.modular import laplace_expansion
from attngeom.exact.multisets import combination_at, combination_rank, pair_index, pairs


class AttentionRank(MinorFamily):
    """Fl = (y_{S,m}), D×m, equals Φ(v) A, so rank Fl ≤ rank A ≤ a: its minors of size a+1 vanish.

    Members are (S, L): a+1 pairs of context rows and a+1 targets; C(D, a+1) C(m, a+1) of degree a+1. Minors of a
    generic matrix are linearly independent, so the count is the dimension of the span.

    >>> from attngeom.equations.variety import Variety
    >>> AttentionRank(Variety(3, 2)).count
    20
    """

    number = 6
    title = "attention-rank"
    source = "minors of the flattening, [I] Theorem 25"

    @property
    def size(self) -> int:
        return self.variety.a + 1

    @property
    def matrix(self) -> CoordinateMatrix:
        def name(s: int) -> str:
            return str(pairs(self.variety.d)[s])

        shape = (self.variety.num_pairs, self.variety.num_targets)
        return CoordinateMatrix(shape, words=("S", "L"), names=(name, None))


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


class Flattening(MinorFamily):
    """The coordinates T ∈ R^d' ⊗ S²R^d ⊗ R^m of H heads as a matrix with one of the three factors for its rows.

    A head has rank at most v, v a and a in them (docs/theorems/dimension.md, Lemma U), so minors of size H times that,
    plus one, vanish.
    """

    is_independent: ClassVar[bool] = True
    of_sums = True
    joins_rows = True
    axis: ClassVar[int]
    words: ClassVar[tuple[str, str]]

    @property
    def matrix(self) -> CoordinateMatrix:
        shape = (self.variety.d_out, self.variety.num_pairs, self.variety.num_targets)
        rows = shape[self.axis]

        def entries() -> tuple[Array, Array]:
            places = np.moveaxis(np.arange(np.prod(shape)).reshape(shape), self.axis, 0).reshape(rows, -1)
            return places, np.ones_like(places)

        def name(row: int) -> str:
            return str(pairs(self.variety.d)[row])

        names: tuple[Callable[[int], str] | None, None] = (name if self.axis == 1 else None, None)
        return CoordinateMatrix((rows, int(np.prod(shape)) // rows), entries, self.words, names)


class RowFlattening(Flattening):
    """Rows of the output against everything else: rank at most H min(v, d, d').

    >>> from attngeom.equations.variety import Variety
    >>> RowFlattening(Variety(2, 1, d_out=3, heads=2, value_width=1)).count
    20
    """

    number = 14
    title = "row-flattening"
    source = "minors of the flattening by output rows; not in [I]"
    axis = 0
    words = ("rows", "columns")

    @property
    def size(self) -> int:
        return self.variety.heads * self.variety.value_rank + 1


class ContextFlattening(Flattening):
    """Pairs of context rows against everything else: rank at most H v a, for products of value and key forms.

    >>> from attngeom.equations.variety import Variety
    >>> ContextFlattening(Variety(2, 1, d_out=2, heads=2, value_width=1)).count
    4
    """

    number = 15
    title = "context-flattening"
    source = "minors of the flattening by pairs of context rows; not in [I]"
    axis = 1
    words = ("S", "columns")

    @property
    def size(self) -> int:
        return self.variety.heads * self.variety.value_rank * self.variety.rank_bound + 1


class TargetFlattening(Flattening):
    """Targets against everything else: rank at most H a.

    >>> from attngeom.equations.variety import Variety
    >>> TargetFlattening(Variety(3, 1, d_out=1, heads=2, value_width=1)).count
    20
    """

    number = 16
    title = "target-flattening"
    source = "minors of the flattening by targets; not in [I]"
    axis = 2
    words = ("targets", "columns")

    @property
    def size(self) -> int:
        return self.variety.heads * self.variety.rank_bound + 1
