"""Raising and lowering operators of the general linear groups, as integer maps between monomial spaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from attngeom.equations.ideal.coordinates import Coordinate, coordinates
from attngeom.equations.ideal.monomials import MonomialTable, group_equal
from attngeom.equations.variety import Variety
from attngeom.exact.arrays import Array
from attngeom.exact.partitions import Weight


def replace_index(variety: Variety, group: int, old: int, new: int) -> list[list[tuple[int, int]]]:
    """The derivation that replaces the index ``old`` of one group by ``new``: images as lists of (factor, coordinate).

    >>> replace_index(Variety(2, 1, targets=1), 0, 0, 1)
    [[(2, 1)], [(1, 2)], []]
    """
    images: list[list[tuple[int, int]]] = []
    for c in coordinates(variety).all:
        image = []
        for place, (part, owner) in enumerate(zip(c.label, c.owners)):
            if owner == group and old in part:
                rest = list(part)
                rest.remove(old)
                label = (*c.label[:place], tuple(sorted([*rest, new])), *c.label[place + 1 :])
                image.append((part.count(old), coordinates(variety).position[Coordinate(label, c.owners, c.tag)]))
        images.append(image)
    return images


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


@dataclass(frozen=True, eq=False)
class Operator:
    """A linear map of monomial spaces: monomial ``rows[i]`` goes to ``values[i]`` times ``columns[i]``, added up."""

    rows: Array
    columns: Array
    values: Array
    shape: tuple[int, int]

    def apply(self, vectors: Array) -> Array:
        """The images of row vectors."""
        images = np.zeros((len(vectors), self.shape[1]), dtype=np.int64)
        if len(self.rows):
            order, starts = group_equal(self.columns)
            terms = vectors[:, self.rows[order]] * self.values[order]
            images[:, self.columns[order[starts]]] = np.add.reduceat(terms, starts, axis=1)
        return images

    def transpose(self) -> Array:
        """The dense matrix that multiplies column vectors."""
        matrix = np.zeros(self.shape[::-1], dtype=np.int64)
        np.add.at(matrix, (self.columns, self.rows), self.values)
        return matrix


def operator(table: MonomialTable, degree: int, weight: Weight, group: int, old: int, new: int) -> Operator | None:
    """The operator old → new from any weight (monomials in permuted order) to the space of the image weight.

    The image is in the order of :meth:`MonomialTable.factors_of` if its weight is not dominant.
    """
    target = shift(weight, group, old, new)
    if target is None:
        return None
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
    return Operator(row, columns, factors[term, before], (len(source), len(image_keys)))


def raising_operators(table: MonomialTable, degree: int, weight: Weight) -> list[Operator]:
    """The simple raising operators s+1 → s of all groups on one weight space."""
    steps = [(group, s) for group, size in enumerate(table.variety.groups) for s in range(size - 1)]
    found = (operator(table, degree, weight, group, s + 1, s) for group, s in steps)
    return [E for E in found if E is not None and E.shape[1]]
