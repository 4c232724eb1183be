"""Raising and lowering operators of the general linear groups, and the Borel subgroup that fixes highest weights.

Y is the D×targets matrix of ordinary coefficients: Y_ii = y_ii, Y_ij = 2 y_ij for i < j.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.monomials import MonomialTable
from attngeom.equations.variety import Variety
from attngeom.exact.arrays import Array
from attngeom.exact.multisets import pair_orbits, pairs
from attngeom.exact.partitions import Partition, Weight, pad

if TYPE_CHECKING:
    from scipy import sparse


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
