"""Families 14 to 16 of several heads: minors of the flattenings of Σ_h V_h ⊗ A_h, which hold at every size."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from attngeom.equations.minors import CoordinateMatrix, MinorFamily
from attngeom.exact.domains import Array
from attngeom.exact.multisets import pairs


class Flattening(MinorFamily):
    """The coordinates T ∈ R^d' ⊗ S²R^d ⊗ R^m of H heads as a matrix with one of the three factors for its rows.

    A head has rank at most v, v a and a in them (docs/theorems/dimension.md, Lemma U), so minors of size H times that,
    plus one, vanish.
    """

    is_independent: ClassVar[bool] = True
    of_sums = True
    joins_rows = True
    axis: ClassVar[int]
    words: ClassVar[tuple[str, str]]

    @property
    def matrix(self) -> CoordinateMatrix:
        shape = (self.variety.d_out, self.variety.num_pairs, self.variety.num_targets)
        rows = shape[self.axis]

        def entries() -> tuple[Array, Array]:
            places = np.moveaxis(np.arange(np.prod(shape)).reshape(shape), self.axis, 0).reshape(rows, -1)
            return places, np.ones_like(places)

        def name(row: int) -> str:
            return str(pairs(self.variety.d)[row])

        names: tuple[Callable[[int], str] | None, None] = (name if self.axis == 1 else None, None)
        return CoordinateMatrix((rows, int(np.prod(shape)) // rows), entries, self.words, names)


class RowFlattening(Flattening):
    """Rows of the output against everything else: rank at most H min(v, d, d').

    >>> from attngeom.equations.variety import Variety
    >>> RowFlattening(Variety(2, 1, d_out=3, heads=2, value_width=1)).count
    20
    """

    number = 14
    title = "row-flattening"
    source = "minors of the flattening by output rows; not in [I]"
    axis = 0
    words = ("rows", "columns")

    @property
    def size(self) -> int:
        return self.variety.heads * self.variety.value_rank + 1


class ContextFlattening(Flattening):
    """Pairs of context rows against everything else: rank at most H v a, for products of value and key forms.

    >>> from attngeom.equations.variety import Variety
    >>> ContextFlattening(Variety(2, 1, d_out=2, heads=2, value_width=1)).count
    4
    """

    number = 15
    title = "context-flattening"
    source = "minors of the flattening by pairs of context rows; not in [I]"
    axis = 1
    words = ("S", "columns")

    @property
    def size(self) -> int:
        return self.variety.heads * self.variety.value_rank * self.variety.rank_bound + 1


class TargetFlattening(Flattening):
    """Targets against everything else: rank at most H a.

    >>> from attngeom.equations.variety import Variety
    >>> TargetFlattening(Variety(3, 1, d_out=1, heads=2, value_width=1)).count
    20
    """

    number = 16
    title = "target-flattening"
    source = "minors of the flattening by targets; not in [I]"
    axis = 2
    words = ("targets", "columns")

    @property
    def size(self) -> int:
        return self.variety.heads * self.variety.rank_bound + 1
