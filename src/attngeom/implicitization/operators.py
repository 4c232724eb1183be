"""Raising and lowering operators of the general linear groups, as integer matrices between monomial spaces."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from attngeom.implicitization.models import Coordinate, Model
from attngeom.implicitization.monomials import MonomialTable
from attngeom.implicitization.partitions import Weight

Array = np.ndarray


def replace_index(model: Model, group: int, old: int, new: int) -> list[list[tuple[int, int]]]:
    """The derivation that replaces the index ``old`` of one group by ``new``: images as lists of (factor, coordinate).

    >>> from attngeom.implicitization.models import CrossColumn
    >>> replace_index(CrossColumn(2, 1, targets=1), 0, 0, 1)
    [[(2, 1)], [(1, 2)], []]
    """
    images: list[list[tuple[int, int]]] = []
    for c in model.coordinates:
        image = []
        for place, (part, owner) in enumerate(zip(c.label, c.owners)):
            if owner == group and old in part:
                rest = list(part)
                rest.remove(old)
                label = (*c.label[:place], tuple(sorted([*rest, new])), *c.label[place + 1 :])
                image.append((part.count(old), model.position[Coordinate(label, c.owners, c.tag)]))
        images.append(image)
    return images


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


class Operators:
    """Matrices of the operators on the monomial spaces of one model: a row vector times the matrix is its image."""

    def __init__(self, table: MonomialTable) -> None:
        self.table = table
        self._images: dict[tuple[int, int, int], list[list[tuple[int, int]]]] = {}

    def matrix(self, degree: int, weight: Weight, group: int, old: int, new: int) -> sparse.csr_matrix | None:
        """The operator old → new from any weight (monomials in permuted order) to the space of the image weight.

        The image is in the order of :meth:`MonomialTable.factors_of` if its weight is not dominant.
        """
        target = shift(weight, group, old, new)
        if target is None:
            return None
        key = (group, old, new)
        if key not in self._images:
            self._images[key] = replace_index(self.table.model, *key)
        images = self._images[key]
        most = max((len(image) for image in images), default=0)
        source = self.table.factors_of(degree, weight)
        image_keys = self.table.encode(self.table.factors_of(degree, target))
        order = np.argsort(image_keys)
        rows, columns, values = [], [], []
        for term in range(most):
            factor = np.array([image[term][0] if len(image) > term else 0 for image in images])
            goal = np.array([image[term][1] if len(image) > term else 0 for image in images])
            for position in range(degree):
                active = np.flatnonzero(factor[source[:, position]])
                moved = source[active].copy()
                moved[:, position] = goal[moved[:, position]]
                keys = self.table.encode(np.sort(moved, axis=1))
                rows.append(active)
                columns.append(order[np.searchsorted(image_keys, keys, sorter=order)])
                values.append(factor[source[active, position]])
        shape = (len(source), len(image_keys))
        if not rows:
            return sparse.csr_matrix(shape, dtype=np.int64)
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csr_matrix(entries, shape=shape, dtype=np.int64)

    def raising(self, degree: int, weight: Weight) -> list[sparse.csr_matrix]:
        """The simple raising operators s+1 → s of all groups on one weight space."""
        found = []
        for group, size in enumerate(self.table.model.groups):
            for s in range(size - 1):
                matrix = self.matrix(degree, weight, group, s + 1, s)
                if matrix is not None and matrix.shape[1]:
                    found.append(matrix)
        return found
