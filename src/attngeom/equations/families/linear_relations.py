"""Families 1 and 2, linear: copies across the sequence agree, and single-column coefficients are symmetrizations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from attngeom.equations.family import Choice, Family, mixed_radix
from attngeom.equations.variety import Points, Variety, coordinate_name
from attngeom.exact.domains import Array
from attngeom.exact.domains.polynomials import Polynomial
from attngeom.exact.multisets import pair_orbits, pairs, splits, triple_orbits, triples


@dataclass(frozen=True)
class LinearFamily(Family):
    """Linear forms in coordinates of all columns, or of one target ``column`` alone, for one entry of the output.

    Then the coordinates without columns in their names are those of this column and its first context.
    """

    column: int | None = None

    source = "linear invariants, [I] Proposition 9"
    degree = 1

    @classmethod
    def applies(cls, variety: Variety) -> bool:
        """Every sum of heads satisfies them."""
        return variety.has_cross and variety.tokens is not None and not variety.is_special

    @classmethod
    def select(cls, variety: Variety, choice: Choice) -> Iterator[Family]:
        if cls.applies(variety):
            yield cls(variety, choice.column)

    @abstractmethod
    def terms(self, *index: int) -> dict[str, int]:
        """The coefficients of a member, by the names of the coordinates."""

    def coordinate(self, row: int, columns: tuple[int, ...], indices: Sequence[int]) -> str:
        """The name of a coordinate."""
        first = () if self.column is None else (self.column, int(self.column == 0))
        named = (0, 1)[: len(columns)] if columns == first[: len(columns)] else columns
        return coordinate_name(self.variety, row, named, indices)

    def polynomial(self, index: int) -> Polynomial:
        self.check_range(index, index + 1)
        terms = self.terms(*mixed_radix(index, *self.sizes))
        names = sorted(terms)
        return Polynomial.from_terms(names, {tuple(int(x == y) for y in names): terms[x] for x in names})


class SequenceCopy(LinearFamily):
    """y^{(ij)}_R does not depend on the target column j, y^{(ij),n}_{S,m} not on (j, n), n ≠ j.

    Each copy minus the first one: d_out ((t−1) C(d+2,3) + (t(t−1)−1) D m) linear forms, linearly independent; for one
    entry of the output (t−2) D m, which compare its contexts.

    >>> from attngeom.equations.variety import Variety
    >>> SequenceCopy(Variety(2, 1, tokens=2)).count
    10
    """

    number = 1
    title = "sequence-copy"

    @property
    def _kinds(self) -> tuple[int, int, int]:
        """Members per row: of single-column kind, of cross-column kind, and the cross coordinates of one copy."""
        variety = self.variety
        t, block = variety.tokens or 1, variety.num_pairs * variety.num_targets
        if self.column is not None:
            return 0, max(t - 2, 0) * block, block
        single = (t - 1) * comb(variety.d + 2, 3) if variety.has_single else 0
        return single, max(t * (t - 1) - 1, 0) * block, block

    @property
    def sizes(self) -> tuple[int, ...]:
        single, cross, _ = self._kinds
        return self.variety.d_out, single + cross

    def _place(self, k: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns (target, or target and context) and the indices of the copy that member k of a row compares."""
        single, _, block = self._kinds
        if k < single:
            column, place = divmod(k, comb(self.variety.d + 2, 3))
            return (column + 1,), triples(self.variety.d)[place]
        copy, place = divmod(k - single, block)
        column, other = divmod(copy + 1, (self.variety.tokens or 1) - 1)
        column = column if self.column is None else self.column
        s, m = divmod(place, self.variety.num_targets)
        return (column, other + (other >= column)), (*pairs(self.variety.d)[s], m)

    def describe(self, *index: int) -> str:
        row, k = index
        columns, indices = self._place(k)
        if len(columns) == 1:
            return f"row={row} column={columns[0]} R={indices}"
        return f"row={row} column={columns[0]} context={columns[1]} S={indices[:2]} m={indices[2]}"

    def terms(self, *index: int) -> dict[str, int]:
        row, k = index
        columns, indices = self._place(k)
        first = (columns[0], int(columns[0] == 0)) if self.column is not None else (0, 1)[: len(columns)]
        return {self.coordinate(row, columns, indices): 1, self.coordinate(row, first, indices): -1}

    def values(self, points: Points, *index: Array) -> Array:
        assert points.cross is not None
        rows, members = index
        parts = []
        if points.single is not None and self.variety.has_single and self.column is None:
            difference = points.single[..., 1:, :] - points.single[..., :1, :]
            parts.append(difference.reshape(*points.batch, self.variety.d_out, -1))
        cross = points.cross if self.column is None else points.cross[..., [self.column], :, :, :]
        copies = cross.reshape(*points.batch, self.variety.d_out, -1, self._kinds[2])
        parts.append((copies[..., 1:, :] - copies[..., :1, :]).reshape(*points.batch, self.variety.d_out, -1))
        return points.domain.reduce(np.concatenate(parts, axis=-1))[..., rows, members]


class Symmetrization(LinearFamily):
    """|orb R| y_R = Σ |orb S| y_{S,m} over all ways to write R = S ⊎ {m}, in every output coordinate.

    d_out t C(d+2,3) linear forms, with the first context column of each target, linearly independent; C(d+2,3) for one
    entry of the output.

    >>> from attngeom.equations.variety import Variety
    >>> Symmetrization(Variety(2, 1, tokens=2)).count
    8
    """

    number = 2

    @classmethod
    def applies(cls, variety: Variety) -> bool:
        return super().applies(variety) and variety.has_single

    title = "symmetrization"

    @property
    def sizes(self) -> tuple[int, ...]:
        columns = 1 if self.column is not None else self.variety.tokens or 1
        return self.variety.d_out, columns, comb(self.variety.d + 2, 3)

    def describe(self, *index: int) -> str:
        row, column, place = index
        return f"row={row} column={self._column(column)} R={triples(self.variety.d)[place]}"

    def _column(self, number: int) -> int:
        return number if self.column is None else self.column

    def terms(self, *index: int) -> dict[str, int]:
        row, column, place = index[0], self._column(index[1]), index[2]
        d, columns = self.variety.d, (column, int(column == 0))
        terms = {self.coordinate(row, (column,), triples(d)[place]): int(triple_orbits(d)[place])}
        for r, s, m in zip(*splits(d)):
            if r == place:
                terms[self.coordinate(row, columns, (*pairs(d)[s], m))] = -int(pair_orbits(d)[s])
        return terms

    def values(self, points: Points, *index: Array) -> Array:
        assert points.single is not None and points.cross is not None
        d, domain = self.variety.d, points.domain
        rows, parts, ends = splits(d)
        values = domain.times(points.single, domain.convert(triple_orbits(d)))
        first = domain.times(points.cross[..., 0, :, :], domain.convert(pair_orbits(d))[:, None])
        np.subtract.at(values, (..., rows), first[..., parts, ends])  # type: ignore[arg-type]
        i, j, k = index
        return domain.reduce(values)[..., i, j if self.column is None else self.column, k]
