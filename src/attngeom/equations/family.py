"""One interface for every family of invariants: counted in closed form, listed lazily, evaluated without expansion.

Members are numbered 0 … count−1 in a stable order. A family says how many indices they have (``sizes``), what member
(i, j, …) is (``describe``) and what values members have at points over any domain (``values``); over a ring of
polynomials in the coordinates these are the members themselves. All indices, in labels and names, are 0-based.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb, prod
from typing import Any, ClassVar

import numpy as np

from attngeom.equations.variety import Points, Variety, ambient_point, generic_point, random_points
from attngeom.errors import InputError
from attngeom.exact.domains import GF, Array, Domain
from attngeom.exact.domains.polynomials import Polynomial, exponent_table
from attngeom.exact.multisets import combination_at
from attngeom.exact.numbers import BIG_PRIME
from attngeom.limits.memory import CHOICES_TABLE
from attngeom.results import plain_card


@dataclass(frozen=True)
class Invariant:
    """One polynomial that vanishes on the variety: a member of a family."""

    family: Family
    index: int

    @property
    def label(self) -> str:
        """The name of the family and what the member is, in words."""
        return f"{self.family.name} {self.family.label(self.index)}"

    @property
    def degree(self) -> int:
        return self.family.degree

    def polynomial(self) -> Polynomial:
        """The polynomial with named variables, those that occur, in sorted order."""
        return self.family.polynomial(self.index)


@dataclass(frozen=True)
class Choice:
    """What is asked of a family: relations of one output column alone, and lines of one's own (pairs of points)."""

    column: int | None = None
    lines: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] | None = None


@dataclass(frozen=True)
class Family(ABC):
    """A family of invariants of one variety.

    ``is_independent``: the members are linearly independent. ``title`` is the name without parameters.
    """

    variety: Variety
    number: ClassVar[int]
    title: ClassVar[str]
    source: ClassVar[str]
    is_independent: ClassVar[bool] = True
    of_sums: ClassVar[bool] = False
    """Whether it is about sums of several heads; else about one head."""

    @classmethod
    def applies(cls, variety: Variety) -> bool:
        """Whether the family is about this variety: by default a layer of at least two tokens without mask or skip."""
        return variety.has_cross and (variety.is_sum if cls.of_sums else variety.is_plain)

    @classmethod
    def select(cls, variety: Variety, choice: Choice) -> Iterator[Family]:
        """The families of this kind that apply; one, unless it has parameters."""
        if cls.applies(variety):
            yield cls(variety)

    @property
    def order(self) -> tuple[int, ...]:
        """What families are sorted by."""
        return (self.number,)

    @property
    def name(self) -> str:
        """The name used in files and on the command line."""
        return self.title

    @property
    @abstractmethod
    def degree(self) -> int:
        """The degree of every member in the coordinates."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """The ranges of the indices of a member; the last one moves fastest."""

    @abstractmethod
    def describe(self, *index: int) -> str:
        """What the member with these indices is, in words."""

    @abstractmethod
    def values(self, points: Points, *index: Array) -> Array:
        """The values (…, n) at all points of the n members with these indices, n ≥ 1, over the domain of the points."""

    @property
    def count(self) -> int:
        """The number of members, in closed form."""
        return prod(self.sizes)

    @property
    def span(self) -> int | None:
        """The dimension of the span of the members, where it is known."""
        return self.count if self.is_independent else None

    def _repr_html_(self) -> str:
        """A card: number, degree, how many members, where it is from, what the first one is."""
        rows = {
            "number": str(self.number),
            "variety": str(self.variety),
            "degree": str(self.degree),
            "members": f"{self.count:,}" + ("" if self.span is None else f", spanning {self.span:,} dimensions"),
            "from": self.source,
            "member 0": self.label(0) if self.count else "none",
        }
        return plain_card(f"<b>{html.escape(self.name)}</b>", rows)

    def label(self, index: int) -> str:
        """What member ``index`` is, in words, without the name of the family."""
        return self.describe(*mixed_radix(index, *self.sizes))

    def evaluate(self, points: Points, start: int = 0, stop: int | None = None) -> Array:
        """The values of members start … stop−1 at all points, shape (…, stop − start), over their domain."""
        start, stop = self.check_range(start, stop)
        if start == stop:
            return points.domain.zeros((*points.batch, 0))
        return self.values(points, *index_digits(start, stop, *self.sizes))

    def polynomial(self, index: int) -> Polynomial:
        """Member ``index`` as a polynomial: its value at the generic point of the ambient space."""
        return without_unused(self.flint_polynomial(index))

    def flint_polynomial(self, index: int) -> Any:
        """Member ``index`` as a FLINT polynomial in all coordinates of the ambient space."""
        return self.evaluate(ambient_point(self.variety), index, index + 1)[0, 0]

    def __getitem__(self, index: int) -> Invariant:
        self.check_range(index, index + 1)
        return Invariant(self, index)

    def __iter__(self) -> Iterator[Invariant]:
        return (Invariant(self, index) for index in range(self.count))

    def check_range(self, start: int, stop: int | None) -> tuple[int, int]:
        """The range with its default; InputError outside 0 … count."""
        stop = self.count if stop is None else stop
        if not 0 <= start <= stop <= self.count:
            given = f"member {start:,}" if stop == start + 1 else f"members {start:,} to {stop:,}"
            raise InputError(f"{given} of {self.name} given; there are {self.count:,}, numbered from 0")
        return start, stop


class RowFamily(Family):
    """A family on the cross-column coordinates of each output row separately: row 0 first, then row 1, …"""

    @property
    @abstractmethod
    def row_sizes(self) -> tuple[int, ...]:
        """The ranges of the indices of a member of one row."""

    @abstractmethod
    def row_label(self, *index: int) -> str: ...

    @abstractmethod
    def row_values(self, y: Array, domain: Domain, *index: Array) -> Array:
        """The values of members of one row at its coordinates y (…, D, targets)."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.variety.d_out, *self.row_sizes)

    def describe(self, *index: int) -> str:
        row, *rest = index
        prefix = f"row={row} " if self.sizes[0] > 1 else ""
        return prefix + self.row_label(*rest)

    def values(self, points: Points, *index: Array) -> Array:
        rows, *rest = index
        y = self.coordinates(points)
        parts = []
        for row in sorted(set(rows.tolist())):
            own = np.flatnonzero(rows == row)
            parts.append(self.row_values(y[..., row, :, :], points.domain, *(digit[own] for digit in rest)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def coordinates(self, points: Points) -> Array:
        """The coordinates that the family uses, with the output row as third last axis."""
        return points.first_cross


class TableFamily(RowFamily):
    """A family whose members of one row are the entries of a table: two indices, and values for lists of both."""

    @abstractmethod
    def table(self, y: Array, domain: Domain, rows: Array, columns: Array) -> Array:
        """The values (…, rows, columns) at the coordinates y (…, D, targets) of one output row; indices increase."""

    def row_values(self, y: Array, domain: Domain, *index: Array) -> Array:
        (rows, where), (columns, which) = (np.unique(digits, return_inverse=True) for digits in index)
        return self.table(y, domain, rows, columns)[..., where, which]


def without_unused(f: Any) -> Polynomial:
    """The record of a FLINT polynomial in those variables that occur in it.

    >>> from attngeom.exact import QQ
    >>> without_unused(QQ.polynomials(("x", "y")).gens()[1])
    Polynomial('y')
    """
    names = f.context().names()
    powers = exponent_table(f)
    used = np.flatnonzero(powers.any(axis=0))
    terms = zip(map(tuple, powers[:, used].tolist()), f.coeffs())
    return Polynomial(tuple(names[k] for k in used), tuple(terms))


def combination_array(n: int, r: int, indices: Array) -> Array:
    """The r-subsets of 0 … n−1 with these lexicographic indices, as rows."""
    if comb(n, r) <= CHOICES_TABLE:
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
    return tuple(int(digit[0]) for digit in index_digits(index, index + 1, *sizes))


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


def vanishes_identically(family: Family, start: int = 0, stop: int | None = None) -> bool:
    """Whether members start … stop−1 vanish on generic weights, as polynomials over Q: a proof for this size.

    >>> from attngeom.equations.registry import find_family
    >>> vanishes_identically(find_family(Variety(2, 1), "sylvester-resultant"))
    True
    """
    point, ring = generic_point(family.variety)
    return ring.is_zero(family.evaluate(point, start, stop))


def vanishes_at_random(family: Family, seed: int, most: int = 2000) -> tuple[bool, float]:
    """Whether the first members vanish at random weights mod 2⁶¹ − 1, and a bound for the error of a yes for each.

    A member of degree n has at most degree 3n in the weights; if it is not zero on the variety it vanishes there with
    probability at most 3n/p (Schwartz and Zippel).

    >>> from attngeom.equations.registry import find_family
    >>> vanishes_at_random(find_family(Variety(4, 4), "pluecker-quartic"), seed=0, most=10)[0]
    True
    """
    field = GF(BIG_PRIME)
    count = min(family.count, most)
    values = family.evaluate(random_points(family.variety, 1, field, np.random.default_rng(seed)), 0, count)
    return field.is_zero(values), 3 * family.degree / BIG_PRIME
