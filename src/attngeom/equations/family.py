"""One interface for every family of invariants: counted in closed form, listed lazily, evaluated without expansion.

A family belongs to a :class:`Variety`. Its members are numbered 0 … count−1 in a stable order; each can be reached
alone. All indices, in labels and in names of variables, are 0-based.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.terms import Terms, variable_name
from attngeom.equations.variety import Points, Variety
from attngeom.errors import InputError
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Domain
from attngeom.exact.polynomials import Polynomial

MAX_TABLE = 200_000


@dataclass(frozen=True)
class Invariant:
    """One polynomial that vanishes on the variety, with its place in its family."""

    family: str
    index: int
    label: str
    degree: int
    terms: Terms

    def polynomial(self, d_out: int = 1) -> Polynomial:
        """The polynomial as a record with named variables, those that occur, in sorted order."""
        variables = sorted({v for monomial in self.terms for v in monomial})
        place = {v: i for i, v in enumerate(variables)}
        exponents = {}
        for monomial, c in self.terms.items():
            powers = [0] * len(variables)
            for v in monomial:
                powers[place[v]] += 1
            exponents[tuple(powers)] = c
        return Polynomial.from_terms([variable_name(v, d_out) for v in variables], exponents)


@dataclass(frozen=True)
class Family(ABC):
    """A family of invariants of one variety."""

    variety: Variety
    number: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """The name used in files and on the command line."""

    @property
    @abstractmethod
    def degree(self) -> int:
        """The degree of every member in the coordinates."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of members, in closed form."""

    @property
    def dimension(self) -> int | None:
        """The dimension of the span of the members, where it is known."""
        return None

    @abstractmethod
    def label(self, index: int) -> str:
        """What member ``index`` is, in words, without the name of the family."""

    @abstractmethod
    def terms(self, index: int) -> Terms:
        """Member ``index`` as a sparse exact polynomial."""

    @abstractmethod
    def evaluate(self, points: Points, start: int = 0, stop: int | None = None) -> Array:
        """The values of members start … stop−1 at all points, shape (…, stop − start), over their domain."""

    def __getitem__(self, index: int) -> Invariant:
        self.check_range(index, index + 1)
        return Invariant(self.name, index, f"{self.name} {self.label(index)}", self.degree, self.terms(index))

    def __iter__(self) -> Iterator[Invariant]:
        return (self[index] for index in range(self.count))

    def check_range(self, start: int, stop: int | None) -> tuple[int, int]:
        """The range with its default; InputError outside 0 … count."""
        stop = self.count if stop is None else stop
        if not 0 <= start <= stop <= self.count:
            raise InputError(f"members {start} to {stop} of {self.name} given; it has {self.count}, numbered from 0")
        return start, stop


@dataclass(frozen=True)
class RowFamily(Family):
    """A family on the cross-column coordinates of each output row separately: row 0 first, then row 1, …"""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The number of members for one output row."""

    @abstractmethod
    def row_label(self, index: int) -> str: ...

    @abstractmethod
    def row_terms(self, index: int, row: int) -> Terms: ...

    @abstractmethod
    def row_evaluate(self, y: Array, domain: Domain, start: int, stop: int) -> Array:
        """The values of members start … stop−1 at the coordinates y (…, D, targets) of one row."""

    @property
    def count(self) -> int:
        return self.variety.d_out * self.row_count

    def label(self, index: int) -> str:
        row, k = divmod(index, self.row_count)
        prefix = f"row={row} " if self.variety.d_out > 1 else ""
        return prefix + self.row_label(k)

    def terms(self, index: int) -> Terms:
        row, k = divmod(index, self.row_count)
        return self.row_terms(k, row)

    def evaluate(self, points: Points, start: int = 0, stop: int | None = None) -> Array:
        start, stop = self.check_range(start, stop)
        y = self.coordinates(points)
        parts = []
        for row in range(self.variety.d_out):
            low, high = max(start - row * self.row_count, 0), min(stop - row * self.row_count, self.row_count)
            if low < high:
                parts.append(self.row_evaluate(y[..., row, :, :], points.domain, low, high))
        if not parts:
            return points.domain.zeros((*y.shape[:-3], 0))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def coordinates(self, points: Points) -> Array:
        """The coordinates that the family uses, with the output row as third last axis."""
        return points.first_cross


def combination_array(n: int, r: int, indices: Array) -> Array:
    """The r-subsets of 0 … n−1 with these lexicographic indices, as rows."""
    if comb(n, r) <= MAX_TABLE:
        return _combination_table(n, r)[indices.astype(np.int64)]
    return np.array([combination_at(n, r, int(k)) for k in indices], dtype=np.int64).reshape(len(indices), r)


@lru_cache(maxsize=256)
def _combination_table(n: int, r: int) -> Array:
    return np.array(list(combinations(range(n), r)), dtype=np.int64).reshape(-1, r)


def mixed_radix(index: int, *sizes: int) -> tuple[int, ...]:
    """The digits of an index, most significant first, in mixed radix.

    >>> mixed_radix(7, 2, 5)
    (1, 2)
    """
    digits = []
    for size in reversed(sizes):
        index, digit = divmod(index, size)
        digits.append(digit)
    return tuple(reversed(digits))


def index_digits(start: int, stop: int, *sizes: int) -> list[Array]:
    """The digits of start … stop−1 in mixed radix, most significant first, as arrays; exact for indices of any size.

    >>> [digit.tolist() for digit in index_digits(4, 7, 2, 5)]
    [[0, 1, 1], [4, 0, 1]]
    """
    indices: Array = np.arange(start, stop) if stop < 2**62 else np.array(list(range(start, stop)), dtype=object)
    digits = []
    for size in reversed(sizes):
        # A radix above the indices needs no division, and might not fit in a word.
        digits.append(indices if size >= stop else indices % size)
        indices = indices * 0 if size >= stop else indices // size
    return digits[::-1]
