"""Monomials of one degree and one weight, with sorted integer keys for lookup, and the operators between them.

Monomials are listed by recursion over dominant weights. Operators raise and lower weights of the general linear groups;
the Borel subgroup fixes highest weights. Y is the D×targets matrix of ordinary coefficients: Y_ii = y_ii, Y_ij = 2 y_ij
for i < j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise, product
from typing import TYPE_CHECKING

import numpy as np

from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.limits import check
from attngeom.equations.variety import Variety
from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.multisets import pair_orbits, pairs
from attngeom.exact.partitions import Partition, Weight, dominant, dominant_weights, pad
from attngeom.limits.memory import MONOMIAL_CODE

if TYPE_CHECKING:
    from scipy import sparse


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


def replace_index(variety: Variety, group: int, old: int, new: int) -> list[list[tuple[int, int]]]:
    """The derivation that replaces the index ``old`` of one group by ``new``: images as lists of (factor, coordinate).

    >>> replace_index(Variety(2, 1, targets=1), 0, 0, 1)
    [[(2, 1)], [(1, 2)], []]
    """
    return coordinates(variety).replace_index(group, old, new)


@lru_cache(maxsize=256)
def image_tables(variety: Variety, group: int, old: int, new: int) -> tuple[Array, Array]:
    """The images of all coordinates as two arrays, factors and coordinates, terms × coordinates; factors may be 0."""
    images = replace_index(variety, group, old, new)
    most = max((len(image) for image in images), default=0)
    padded = [[*image, *[(0, 0)] * (most - len(image))] for image in images]
    both = np.array(padded, dtype=np.int64).reshape(len(images), most, 2).T
    return both[0], both[1]


def shift(weight: Weight, group: int, old: int, new: int) -> Weight | None:
    """The weight after one index ``old`` became ``new``; None if there is no such index.

    >>> shift(((2, 0),), 0, 0, 1)
    ((1, 1),)
    """
    part = list(weight[group])
    part[old] -= 1
    part[new] += 1
    if part[old] < 0:
        return None
    return (*weight[:group], tuple(part), *weight[group + 1 :])


def operator(table: MonomialTable, degree: int, weight: Weight, group: int, old: int, new: int) -> sparse.csr_matrix:
    """The operator old → new from any weight (monomials in permuted order) to the space of the image weight.

    Its rows are the images. These are in the order of :meth:`MonomialTable.factors_of` if their weight is not dominant.
    """
    from scipy import sparse  # slow to load, and few commands need it

    target = shift(weight, group, old, new)
    assert target is not None
    factors, goals = image_tables(table.variety, group, old, new)
    source = table.factors_of(degree, weight)
    image_keys = table.encode(table.factors_of(degree, target))
    order = np.argsort(image_keys)
    term, row, position = np.nonzero(factors[:, source])
    before = source[row, position]
    moved = source[row]
    moved[np.arange(len(row)), position] = goals[term, before]
    keys = table.encode(np.sort(moved, axis=1))
    columns = order[np.searchsorted(image_keys, keys, sorter=order)]
    return sparse.csr_matrix((factors[term, before], (row, columns)), shape=(len(source), len(image_keys)))


def simple_steps(groups: tuple[int, ...]) -> list[tuple[int, int]]:
    """(group, s) of the simple roots s+1 → s of all groups."""
    return [(group, s) for group, size in enumerate(groups) for s in range(size - 1)]


def raising_operators(table: MonomialTable, degree: int, weight: Weight) -> list[sparse.csr_matrix]:
    """The simple raising operators s+1 → s of all groups on one weight space."""
    steps = [(group, s) for group, s in simple_steps(table.variety.groups) if weight[group][s + 1]]
    operators = (operator(table, degree, weight, group, s + 1, s) for group, s in steps)
    return [E for E in operators if E.shape[1]]


def root_matrix(d: int, old: int, new: int) -> Array:
    """N with E Y = N Y for the operator E on coordinates that replaces the index ``old`` by ``new``, as a derivation.

    >>> root_matrix(2, 1, 0).tolist()
    [[0, 0, 0], [2, 0, 0], [0, 1, 0]]
    """
    orbits = pair_orbits(d)
    N = np.zeros((len(orbits), len(orbits)), dtype=np.int64)
    for row, image in enumerate(replace_index(Variety(d, 1, targets=1), 0, old, new)):
        for factor, target in image:
            N[row, target] += factor * orbits[row] // orbits[target]
    return N


def raising_matrix(d: int) -> Array:
    """The sum of the simple raising operators: Y_{s+1,s+1} → Y_{s,s+1}, Y_{s,s+1} → 2 Y_ss, Y_{s+1,j} → Y_sj.

    They move one weight space to different ones, so their sum kills a weight vector only if each does.
    """
    zero = np.zeros((len(pairs(d)),) * 2, dtype=np.int64)
    return sum((root_matrix(d, s + 1, s) for s in range(d - 1)), start=zero)


def borel_point(d: int, targets: int, a: int) -> Array:
    """An integer point of the variety with a dense Borel orbit: v = (1, …, 1), A the unit matrix of size a in a corner.

    Returns Y, D×targets. The tangent vectors of the orbit have the rank of the variety, which the tests compute.

    >>> borel_point(2, 2, 1).tolist()
    [[1, 0], [1, 0], [0, 0]]
    """
    A = np.eye(d, targets, dtype=np.int64)
    A[min(a, d, targets) :] = 0
    return np.array([A[i] if i == j else A[i] + A[j] for i, j in pairs(d)])


def is_excluded(lam: Partition, mu: Partition, a: int) -> bool:
    """Whether S_λV ⊗ S_μU is proven not to occur in the coordinate ring, given that it occurs in R_n.

    The coordinate ring lies in ⊕ SⁿV ⊗ S_μV ⊗ S_μU, ℓ(μ) ≤ a, so λ/μ must be a horizontal strip (Pieri). For μ =
    (n) one quadric v·a_1 is seen, and swapping its factors leaves S²(SⁿV): λ = (2n-k, k) with k even.

    >>> is_excluded((2, 2, 2), (3,), 3), is_excluded((3, 1), (2,), 3), is_excluded((2, 2), (2,), 1)
    (True, True, False)
    """
    inner, outer = pad(mu, len(lam)), pad(lam, len(mu))
    if len(mu) > a or any(x > y for x, y in zip(inner, outer)):
        return True
    if any(outer[i + 1] > inner[i] for i in range(len(outer) - 1)):
        return True
    return len(mu) == 1 and len(lam) == 2 and lam[1] % 2 == 1
