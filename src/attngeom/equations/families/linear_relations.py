"""Families 1 and 2, linear: copies across the sequence agree, and single-column coefficients are symmetrizations."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from attngeom.equations.family import Family, mixed_radix
from attngeom.equations.terms import Terms, Variable, linear
from attngeom.equations.variety import Points
from attngeom.exact.domains import Array
from attngeom.exact.multisets import pair_orbits, pairs, splits, triple_index, triple_orbits, triples


def single_variable(row: int, column: int, R: tuple[int, int, int]) -> Variable:
    """The variable y_R of an output coordinate; column 0 has the short name."""
    return ("s", row, *R) if column == 0 else ("sc", row, column, *R)


def cross_variable(row: int, column: int, context: int, S: tuple[int, int], m: int) -> Variable:
    """The variable y_{S,m} of an output coordinate and context column; target 0 with context 1 has the short name."""
    return ("y", row, *S, m) if (column, context) == (0, 1) else ("yc", row, column, context, *S, m)


@dataclass(frozen=True)
class SequenceCopy(Family):
    """y^{(ij)}_R does not depend on the target column j, y^{(ij),n}_{S,m} not on (j, n), n ≠ j.

    Each copy minus the first one: d_out ((t−1) C(d+2,3) + (t(t−1)−1) D m) linear forms, linearly independent.

    >>> from attngeom.equations.variety import Variety
    >>> SequenceCopy(Variety(2, 1)).count
    10
    """

    number: ClassVar[int] = 1
    source: ClassVar[str] = "linear invariants, [I] Proposition 9"

    @property
    def name(self) -> str:
        return "sequence-copy"

    @property
    def degree(self) -> int:
        return 1

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Members per row: of single-column kind, of cross-column kind, and the cross coordinates of one copy."""
        variety = self.variety
        t, block = variety.tokens, variety.num_pairs * variety.num_targets
        single = (t - 1) * comb(variety.d + 2, 3) if variety.has_single else 0
        return single, max(t * (t - 1) - 1, 0) * block, block

    @property
    def count(self) -> int:
        single, cross, _ = self._sizes
        return self.variety.d_out * (single + cross)

    @property
    def dimension(self) -> int:
        return self.count

    def _place(self, index: int) -> tuple[Variable, Variable]:
        """The copy and the first coordinate whose difference is member ``index``."""
        single, cross, block = self._sizes
        row, k = divmod(index, single + cross)
        if k < single:
            column, place = divmod(k, comb(self.variety.d + 2, 3))
            R = triples(self.variety.d)[place]
            return single_variable(row, column + 1, R), single_variable(row, 0, R)
        copy, place = divmod(k - single, block)
        column, context = self._columns(copy + 1)
        s, m = divmod(place, self.variety.num_targets)
        S = pairs(self.variety.d)[s]
        return cross_variable(row, column, context, S, m), cross_variable(row, 0, 1, S, m)

    def _columns(self, copy: int) -> tuple[int, int]:
        column, place = divmod(copy, self.variety.tokens - 1)
        return column, place + (place >= column)

    def label(self, index: int) -> str:
        copy, first = self._place(index)
        kind, row, *rest = copy
        if kind == "sc":
            return f"row={row} column={rest[0]} R={tuple(rest[1:])}"
        return f"row={row} column={rest[0]} context={rest[1]} S={tuple(rest[2:4])} m={first[-1]}"

    def terms(self, index: int) -> Terms:
        copy, first = self._place(index)
        return linear([(copy, 1), (first, -1)])

    def evaluate(self, points: Points, start: int = 0, stop: int | None = None) -> Array:
        start, stop = self.check_range(start, stop)
        assert points.cross is not None
        parts = []
        batch = points.cross.shape[:-5]
        if points.single is not None and self.variety.has_single:
            difference = points.single[..., 1:, :] - points.single[..., :1, :]
            parts.append(difference.reshape(*batch, self.variety.d_out, -1))
        copies = points.cross.reshape(*batch, self.variety.d_out, -1, self._sizes[2])
        parts.append((copies[..., 1:, :] - copies[..., :1, :]).reshape(*batch, self.variety.d_out, -1))
        values = points.domain.reduce(np.concatenate(parts, axis=-1))
        return values.reshape(*batch, -1)[..., start:stop]


@dataclass(frozen=True)
class Symmetrization(Family):
    """|orb R| y_R = Σ |orb S| y_{S,m} over all ways to write R = S ⊎ {m}, in every output coordinate.

    d_out t C(d+2,3) linear forms, with the first context column of each target, linearly independent.

    >>> from attngeom.equations.variety import Variety
    >>> Symmetrization(Variety(2, 1)).count
    8
    """

    number: ClassVar[int] = 2
    source: ClassVar[str] = "linear invariants, [I] Proposition 9"

    @property
    def name(self) -> str:
        return "symmetrization"

    @property
    def degree(self) -> int:
        return 1

    @property
    def count(self) -> int:
        return self.variety.d_out * self.variety.tokens * comb(self.variety.d + 2, 3)

    @property
    def dimension(self) -> int:
        return self.count

    def _place(self, index: int) -> tuple[int, int, tuple[int, int, int]]:
        size = comb(self.variety.d + 2, 3)
        row, column, place = mixed_radix(index, self.variety.d_out, self.variety.tokens, size)
        return row, column, triples(self.variety.d)[place]

    def label(self, index: int) -> str:
        row, column, R = self._place(index)
        return f"row={row} column={column} R={R}"

    def terms(self, index: int) -> Terms:
        row, column, R = self._place(index)
        d = self.variety.d
        place = triple_index(R, d)
        context = 1 if column == 0 else 0
        parts = [(single_variable(row, column, R), int(triple_orbits(d)[place]))]
        for r, s, m in zip(*splits(d)):
            if r == place:
                S = pairs(d)[s]
                parts.append((cross_variable(row, column, context, S, int(m)), -int(pair_orbits(d)[s])))
        return linear(parts)

    def evaluate(self, points: Points, start: int = 0, stop: int | None = None) -> Array:
        start, stop = self.check_range(start, stop)
        assert points.single is not None and points.cross is not None
        d, domain = self.variety.d, points.domain
        rows, parts, ends = splits(d)
        values = domain.reduce(points.single * domain.convert(triple_orbits(d)))
        first = domain.reduce(points.cross[..., 0, :, :] * domain.convert(pair_orbits(d))[:, None])
        np.subtract.at(values, (..., rows), first[..., parts, ends])  # type: ignore[arg-type]
        return domain.reduce(values).reshape(*values.shape[:-3], -1)[..., start:stop]
