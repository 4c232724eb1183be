"""Families of minors: a matrix whose entries are integers times coordinates, and a size."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import ClassVar, Literal

import numpy as np

from attngeom.equations.family import RowFamily, combination_array, without_unused
from attngeom.equations.variety import Points, coordinate_name
from attngeom.errors import SizeError
from attngeom.exact.domains import Array, Domain, PolynomialDomain
from attngeom.exact.domains.polynomials import Polynomial
from attngeom.exact.modular import laplace_expansion
from attngeom.exact.multisets import combination_at, pairs, triples
from attngeom.limits.memory import MINOR_VALUES
from attngeom.limits.work import EXPANDED_MINOR


@dataclass(frozen=True, eq=False)
class CoordinateMatrix:
    """A matrix whose entries are integers times coordinates of one output row.

    ``entries`` gives two arrays of this shape: the numbers of the coordinates, and the integers; without it the entries
    are all coordinates in order. Words and names are those of labels; what has no name is named by its number.
    """

    shape: tuple[int, int]
    entries: Callable[[], tuple[Array, Array]] | None = None
    words: tuple[str, str] = ("rows", "columns")
    names: tuple[Callable[[int], str] | None, Callable[[int], str] | None] = (None, None)

    def fill(self, vector: Array, domain: Domain) -> Array:
        """The matrix for coordinates (…, number)."""
        if self.entries is None:
            return vector.reshape(*vector.shape[:-1], *self.shape)
        places, factors = self.entries()
        return np.asarray(domain.times(vector[..., places], domain.convert(factors)))

    def block(self, rows: Sequence[int], columns: Sequence[int]) -> tuple[Array, Array]:
        """The coordinates and integers of a submatrix."""
        chosen = np.ix_(rows, columns)
        if self.entries is None:
            places = chosen[0] * self.shape[1] + chosen[1]
            return places, np.ones_like(places)
        places, factors = self.entries()
        return places[chosen], factors[chosen]

    def describe(self, *chosen: tuple[int, ...]) -> str:
        """The rows and columns of a minor in words."""
        texts = [
            str(numbers) if name is None else f"({', '.join(map(name, numbers))})"
            for numbers, name in zip(chosen, self.names)
        ]
        return " ".join(f"{word}={text}" for word, text in zip(self.words, texts))


class MinorFamily(RowFamily):
    """The minors of one size of a matrix: a subclass states the matrix and the size.

    There is one matrix for each output row, or with ``joins_rows`` one for the coordinates of all rows, row by row.
    ``uses`` says which coordinates of a row are numbered: single-column ones y_R, cross-column ones y_{S,m} (number
    place(S)·targets + m), or the former and then the latter.
    """

    uses: ClassVar[Literal["single", "cross", "both"]] = "cross"
    joins_rows: ClassVar[bool] = False

    @property
    @abstractmethod
    def size(self) -> int:
        """The size of the minors, which is the degree."""

    @property
    @abstractmethod
    def matrix(self) -> CoordinateMatrix:
        """The matrix for one output row, or for all."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (1 if self.joins_rows else self.variety.d_out, *self.row_sizes)

    @property
    def degree(self) -> int:
        return self.size

    @property
    def row_sizes(self) -> tuple[int, ...]:
        rows, columns = self.matrix.shape
        return comb(rows, self.size), comb(columns, self.size)

    def row_label(self, *index: int) -> str:
        return self.matrix.describe(*self._chosen(*index))

    def _chosen(self, i: int, j: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        rows, columns = self.matrix.shape
        return combination_at(rows, self.size, i), combination_at(columns, self.size, j)

    def coordinates(self, points: Points) -> Array:
        """The matrix at all points, with the output row as third last axis."""
        return self.matrix.fill(self.vector(points), points.domain)

    def vector(self, points: Points) -> Array:
        """The coordinates of each output row in the order of their numbers: (…, rows, number)."""
        parts = [points.first_single] if "single" in self.numbers else []
        if "cross" in self.numbers:
            parts.append(points.first_cross.reshape(*points.first_cross.shape[:-2], -1))
        vector = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return vector.reshape(*vector.shape[:-2], 1, -1) if self.joins_rows else vector

    @property
    def numbers(self) -> dict[str, int]:
        """How many coordinates of each kind are numbered in one row, single-column ones before the others."""
        variety = self.variety
        sizes = {"single": comb(variety.d + 2, 3), "cross": variety.num_pairs * variety.num_targets}
        has = {"single": variety.has_single, "cross": variety.has_cross}
        return {kind: n for kind, n in sizes.items() if self.uses == kind or (self.uses == "both" and has[kind])}

    def coordinate(self, place: int) -> tuple[str, tuple[int, int, int]]:
        """A coordinate by its number in a row: s for a single-column one, y for another, and its three indices."""
        before = self.numbers.get("single", 0)
        if place < before:
            return "s", triples(self.variety.d)[place]
        s, m = divmod(place - before, self.variety.num_targets)
        return "y", (*pairs(self.variety.d)[s], m)

    def variable(self, row: int, place: int) -> str:
        """The name of a coordinate of one output row."""
        if self.joins_rows:
            row, place = divmod(place, sum(self.numbers.values()))
        letter, indices = self.coordinate(place)
        return coordinate_name(self.variety, row, (0,) if letter == "s" else (0, 1), indices)

    def row_values(self, y: Array, domain: Domain, *index: Array) -> Array:
        (rows, columns), (i, j) = y.shape[-2:], index
        I, J = combination_array(rows, self.size, i), combination_array(columns, self.size, j)
        return submatrix_minors(y, I, J, domain)

    def polynomial(self, index: int) -> Polynomial:
        """The minor written out, in the coordinates of its entries alone: any number of coordinates is no obstacle."""
        self.check_range(index, index + 1)
        if self.size > EXPANDED_MINOR:
            raise SizeError(f"a minor of size {self.size} given; up to {EXPANDED_MINOR} are written out: evaluate it")
        row, k = divmod(index, self.count // self.sizes[0])
        I, J = self._chosen(*divmod(k, self.row_sizes[1]))
        places, factors = self.matrix.block(I, J)
        used = np.unique(places).tolist()
        ring = PolynomialDomain(tuple(self.variable(row, place) for place in used))
        lookup = dict(zip(used, ring.ring.gens()))
        entries = [[lookup[p] * int(c) for p, c in zip(*row)] for row in zip(places.tolist(), factors.tolist())]
        return without_unused(ring.det(ring.convert(entries)))


def points_last(matrix: Array) -> Array:
    """(…, R, C) as a contiguous array (R, C, points)."""
    flat = matrix.reshape(-1, *matrix.shape[-2:])
    return np.ascontiguousarray(np.moveaxis(flat, 0, -1))


def points_first(values: Array, batch: tuple[int, ...]) -> Array:
    """(n, points) as (…, n), the inverse of :func:`points_last` on values."""
    return np.moveaxis(values, 0, -1).reshape(*batch, values.shape[0])


def blocks(count: int, points: int) -> Iterator[slice]:
    """Parts of so many rows of values, each small enough for the cache."""
    step = max(1, MINOR_VALUES // max(points, 1))
    return (slice(start, start + step) for start in range(0, count, step))


def submatrix_minors(matrix: Array, rows: Array, columns: Array, domain: Domain) -> Array:
    """det matrix[rows[i], columns[i]] for every i, along a new last axis; rows and columns have shape (n, r).

    >>> from attngeom.exact import QQ
    >>> submatrix_minors(QQ.convert([[1, 2], [3, 4]]), np.array([[0, 1]]), np.array([[0, 1]]), QQ).tolist()
    [-2]
    """
    n, r = rows.shape
    if r > 4:
        return np.asarray(domain.det(matrix[..., rows[:, :, None], columns[:, None, :]]))
    y = points_last(matrix)
    out = np.empty((n, y.shape[-1]), dtype=y.dtype)
    for part in blocks(n, y.shape[-1]):
        entries = [[y[rows[part, i], columns[part, j]] for j in range(r)] for i in range(r)]
        out[part] = laplace_expansion(entries, domain.reduce)
    return points_first(out, matrix.shape[:-2])
