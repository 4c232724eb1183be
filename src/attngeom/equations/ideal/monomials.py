"""Monomials of one degree and one weight, by recursion over dominant weights, with sorted integer keys for lookup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise, product

import numpy as np

from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.limits import check
from attngeom.equations.variety import Variety
from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.partitions import Weight, dominant, dominant_weights
from attngeom.limits.memory import MONOMIAL_CODE


def encode_monomials(factors: Array, base: int) -> Array:
    """Codes of monomials, rows of numbers below ``base``, in lexicographic order: integers, or bytes if these overflow.

    >>> encode_monomials(np.array([[0, 1], [1, 1]]), 3).tolist()
    [1, 4]
    """
    degree = factors.shape[1]
    if base**degree >= MONOMIAL_CODE:
        if base > 255:
            raise SizeError(
                f"degree {degree} in {base} variables given; at most 255 variables or {base}^degree < 2^63 is required"
            )
        return np.ascontiguousarray(factors + 1, dtype=np.uint8).view(f"S{degree}")[:, 0]
    codes = np.zeros(len(factors), dtype=np.int64)
    for column in factors.T:
        codes = codes * base + column
    return codes


def repetition_factorials(factors: Array) -> Array:
    """Π multiplicity! of monomials, rows of sorted numbers: their Fischer norms where every variable has norm 1.

    >>> repetition_factorials(np.array([[0, 0, 1], [2, 2, 2]])).tolist()
    [2, 6]
    """
    norms = run = np.ones(len(factors), dtype=np.int64)
    for before, column in pairwise(factors.T):
        run = np.where(column == before, run + 1, 1)
        norms = norms * run
    return norms


@dataclass(frozen=True)
class MonomialSpace:
    """The monomials of one weight: rows of ``factors`` are sorted coordinate indices, ``keys`` increasing codes."""

    factors: Array
    keys: Array

    def __len__(self) -> int:
        return len(self.keys)


class MonomialTable:
    """All monomial spaces of a variety that were asked for; only dominant weights are stored.

    >>> len(MonomialTable(Variety(d=2, a=1)).space(2, ((2, 2), (1, 1))))
    3
    """

    def __init__(self, variety: Variety) -> None:
        self.variety = variety
        self.coordinates = coordinates(variety)
        self.base = len(self.coordinates.all)
        self._shifts = np.array([[x for part in weight for x in part] for weight in self.coordinates.weights])
        self._ends = tuple(accumulate(variety.groups))
        self._spaces: dict[tuple[int, Weight], MonomialSpace] = {}
        self._relabeled: dict[Weight, tuple[Weight, Array]] = {}

    def quotients(self, weight: Weight) -> list[tuple[int, Weight]]:
        """(coordinate, weight without it) for every coordinate that a monomial of the weight may contain.

        >>> MonomialTable(Variety(d=2, a=1, targets=1)).quotients(((3, 1), (2,)))
        [(0, ((1, 1), (1,))), (1, ((2, 0), (1,)))]
        """
        rests = np.array([x for part in weight for x in part]) - self._shifts
        quotients = []
        for coordinate in np.flatnonzero((rests >= 0).all(axis=1)).tolist():
            entries = rests[coordinate].tolist()
            rest = tuple(tuple(entries[end - size : end]) for size, end in zip(self.variety.groups, self._ends))
            quotients.append((coordinate, rest))
        return quotients

    def encode(self, factors: Array) -> Array:
        """The codes of monomials given as rows of sorted coordinate indices."""
        return encode_monomials(factors, self.base)

    def dominant_weights(self, degree: int) -> tuple[Weight, ...]:
        """The dominant weights of the degree that have monomials, largest first."""
        sizes = {tuple(map(sum, weight)) for weight in self.coordinates.weights}
        totals = {(0,) * len(self.variety.groups)}
        for _ in range(degree):
            totals = {tuple(x + y for x, y in zip(a, b)) for a, b in product(totals, sizes)}
        dominant = [w for total in totals for w in dominant_weights(total, self.variety.groups)]
        return tuple(w for w in sorted(dominant, reverse=True) if len(self.space(degree, w)))

    def relabelings(self, weights: Sequence[Weight]) -> Array:
        """Maps of coordinates, one in each row, that carry the dominant weights of the orbits to the given weights."""
        # A stable sort by falling entries: equal weights always get the same permutation.
        parts = [np.array(part) for part in zip(*weights)]
        return self.coordinates.permute([np.argsort(-part, axis=1, kind="stable") for part in parts])

    def relabel(self, weight: Weight) -> tuple[Weight, Array]:
        """The dominant weight in the orbit and the map of coordinates that carries it to the given weight."""
        if weight not in self._relabeled:
            self._relabel_all([weight])
        return self._relabeled[weight]

    def _relabel_all(self, weights: Sequence[Weight]) -> None:
        missing = [weight for weight in weights if weight not in self._relabeled]
        if missing:
            for weight, moved in zip(missing, self.relabelings(missing)):
                self._relabeled[weight] = dominant(weight), moved

    def space(self, degree: int, weight: Weight) -> MonomialSpace:
        """The monomials of the degree and the dominant weight."""
        if (degree, weight) not in self._spaces:
            self._spaces[degree, weight] = self._build(degree, weight)
        return self._spaces[degree, weight]

    def factors_of(self, degree: int, weight: Weight) -> Array:
        """The monomials of any weight, in the order of the dominant weight that they are permuted from."""
        top, moved = self.relabel(weight)
        return np.sort(moved[self.space(degree, top).factors], axis=1)

    def times(self, degree: int, weight: Weight, coordinate: int) -> Array:
        """Products of the monomials of any weight with one coordinate, as rows of sorted indices."""
        factors = self.factors_of(degree, weight)
        extra = np.full((len(factors), 1), coordinate, dtype=factors.dtype)
        return np.sort(np.concatenate([factors, extra], axis=1), axis=1)

    def _build(self, degree: int, weight: Weight) -> MonomialSpace:
        if degree == 0:
            count = int(not any(map(any, weight)))
            return MonomialSpace(np.zeros((count, 0), dtype=np.int64), np.zeros(count, dtype=np.int64))
        codes: list[Array] = []
        quotients = self.quotients(weight)
        self._relabel_all([rest for _, rest in quotients])
        for coordinate, rest in quotients:
            largest = len(self.space(degree - 1, self.relabel(rest)[0]))
            check(size=2 * 8 * degree * (largest + sum(len(part) for part in codes)))
            factors = self.factors_of(degree - 1, rest)
            if degree > 1:
                factors = factors[factors[:, -1] <= coordinate]
            codes.append(np.concatenate([factors, np.full((len(factors), 1), coordinate)], axis=1))
        factors = np.concatenate(codes) if codes else np.zeros((0, degree), dtype=np.int64)
        keys = self.encode(factors)
        order = np.argsort(keys)
        return MonomialSpace(factors[order], keys[order])


@lru_cache(maxsize=2)
def monomial_table(variety: Variety) -> MonomialTable:
    """The monomials of a variety. Few tables are kept: a run, its generators and their modules need the same spaces."""
    return MonomialTable(variety)


def evaluate_monomials(factors: Array, points: Array, p: int) -> Array:
    """The values of monomials (rows of coordinate indices) at points (rows of residues): points × monomials.

    >>> evaluate_monomials(np.array([[0, 1], [1, 1]]), np.array([[2, 3]]), 7).tolist()
    [[6, 2]]
    """
    values = np.ones((len(points), len(factors)), dtype=np.int64)
    for column in factors.T:
        values *= points[:, column]
        values %= p
    return values
