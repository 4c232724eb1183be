"""What positions add to scores: learned numbers of classes of distances, or states that maps of contents read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.checked import Checked, require


@dataclass(frozen=True, kw_only=True)
class RelativeTable(Checked):
    """A learned number of every head for each of ``rows`` classes of distances, added to its scores.

    T5's buckets: small distances have a row each, larger ones up to ``distance`` share rows by their logarithm; where
    tokens see both ways, half of the rows are for those behind. ``distance`` is T5's unless another one is given.
    """

    rows: int
    distance: int = 128

    def check_for(self, sees_later: bool) -> None:
        """Refuse a table without rows for small distances, or with more of them than distances."""
        exact = self.rows // (4 if sees_later else 2)
        given = f"{self.rows} rows of relative positions up to {self.distance} given"
        require(0 < exact < self.distance, f"{given}; at least 4 rows, and a larger distance are required")

    def index(self, queries: int, keys: int, sees_later: bool) -> Array:
        """The row of the distance j − i, (queries, keys).

        >>> RelativeTable(rows=8, distance=16).index(1, 4, True)
        array([[0, 5, 6, 6]])
        """
        distance = np.arange(keys)[None, :] - np.arange(queries)[:, None]
        rows, offset = self.rows, np.zeros_like(distance)
        if sees_later:
            rows //= 2
            offset = (distance > 0) * rows
            distance = np.abs(distance)
        else:
            distance = -np.minimum(distance, 0)
        exact = rows // 2
        ratio = np.log(np.maximum(distance, 1) / exact) / math.log(self.distance / exact)
        large = np.minimum(exact + (ratio * (rows - exact)).astype(int), rows - 1)
        return np.asarray(offset + np.where(distance < exact, distance, large))

    def unused(self, sees_later: bool, tokens: int = 0) -> Array:
        """The rows that no distance has: that of +0, where distances have two signs, and some where few are far.

        ``tokens``: how many there are at most, 0 where there is no bound.
        """
        count = min(self.distance + 1, tokens or self.distance + 1)
        used = np.concatenate([self.index(count, 1, sees_later).ravel(), self.index(1, count, sees_later).ravel()])
        return np.setdiff1d(np.arange(self.rows), used)

    @property
    def tokens(self) -> int:
        """How many tokens there are; 0: any number."""
        return 0

    @property
    def shifted(self) -> tuple[Array, ...]:
        """Sets of rows to which one number may be added: softmax forgets what all scores of a token have in common."""
        return (np.arange(self.rows),)

    def places(self, others: int, sees_later: bool) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        """Rows of other tokens, and of the token itself, for each place where it may stand."""
        used = [row for row in range(1, self.rows) if row not in self.unused(sees_later)]
        rows = tuple(product(used, repeat=others))
        return rows, (0,) * len(rows)

    def shrunk(self, rows: int) -> RelativeTable:
        """A small table of the same kind, of so many rows where it may have any number."""
        return replace(self, rows=rows)


@dataclass(frozen=True, kw_only=True)
class WindowTable(RelativeTable):
    """A number of every head for each displacement of two patches of a square image, and for the token in front.

    The image has ``side`` × ``side`` patches; the last rows are those of the first token to patches, of patches to it,
    and of it to itself (BEiT).
    """

    side: int

    @classmethod
    def of(cls, side: int) -> WindowTable:
        return cls(side=side, rows=(2 * side - 1) ** 2 + 3)

    def check_for(self, sees_later: bool) -> None:
        fits = self.side > 0 and self.rows == (2 * self.side - 1) ** 2 + 3
        text = f"a table of {self.rows} rows for an image of {self.side} patches a side given"
        require(fits, f"{text}; one patch at least, and (2 side - 1)^2 + 3 rows, are required")
        require(sees_later, f"{text}, and tokens that see none behind them; let them see all")

    @property
    def tokens(self) -> int:
        return self.side**2 + 1

    def index(self, queries: int, keys: int, sees_later: bool) -> Array:
        """The row of token j for token i, (queries, keys).

        >>> WindowTable.of(2).index(3, 3, True)
        array([[11,  9,  9],
               [10,  4,  3],
               [10,  5,  4]])
        """
        require(max(queries, keys) <= self.tokens, f"{max(queries, keys)} tokens of an image of {self.tokens} given")
        line = np.arange(self.side**2)
        down, right = (np.subtract.outer(axis, axis) + self.side - 1 for axis in (line // self.side, line % self.side))
        rows = np.pad(down * (2 * self.side - 1) + right, ((1, 0), (1, 0)), constant_values=self.rows - 2)
        rows[0] = self.rows - 3
        rows[0, 0] = self.rows - 1
        return np.asarray(rows[:queries, :keys])

    def unused(self, sees_later: bool, tokens: int = 0) -> Array:
        return np.zeros(0, dtype=np.int64)

    @property
    def shifted(self) -> tuple[Array, ...]:
        """Those that patches read, and those that the first token reads."""
        return np.array([*range(self.rows - 3), self.rows - 2]), np.array([self.rows - 3, self.rows - 1])

    def places(self, others: int, sees_later: bool) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        """Every token of the image is the one that attends to all others, whatever their number."""
        rows = self.index(self.tokens, self.tokens, sees_later).tolist()
        return tuple(tuple(row[:i] + row[i + 1 :]) for i, row in enumerate(rows)), tuple(
            row[i] for i, row in enumerate(rows)
        )

    def shrunk(self, rows: int) -> RelativeTable:
        return WindowTable.of(min(self.side, 2))


@dataclass(frozen=True, kw_only=True)
class Disentangled(Checked):
    """Scores of contents against states of distances, 2 ``span`` of them, that the maps of queries and keys read.

    To q_i·k_j is added q_i·k(r) where ``keys``, k_j·q(r) where ``queries``, r the state of the distance i − j. With
    ``buckets``, small distances have a state each, larger ones share them by their logarithm up to ``furthest``.
    """

    span: int
    furthest: int
    buckets: bool = False
    keys: bool = False
    queries: bool = False

    def check(self) -> None:
        middle = self.span // 2
        good = 1 < middle < self.furthest - 1 if self.buckets else self.span > 0
        require(good, f"{self.span} states of distances up to {self.furthest} given; not possible")

    def index(self, queries: int, keys: int) -> Array:
        """The row of the distance i − j, (queries, keys).

        >>> Disentangled(span=2, furthest=2).index(1, 4)
        array([[2, 1, 0, 0]])
        """
        distance = np.arange(queries)[:, None] - np.arange(keys)[None, :]
        if self.buckets:
            middle = self.span // 2
            far = np.maximum(np.abs(distance), middle)
            share = np.log(far / middle) / math.log((self.furthest - 1) / middle)
            large = np.sign(distance) * (np.ceil(share * (middle - 1)).astype(int) + middle)
            distance = np.where(np.abs(distance) <= middle, distance, large)
        return np.asarray(np.clip(distance + self.span, 0, 2 * self.span - 1))

    def used(self, positions: int) -> Array:
        """The rows that contexts of so many positions show, of any length for 0."""
        count = positions or 8 * max(self.furthest, self.span)
        return np.unique(np.concatenate([self.index(count, 1).ravel(), self.index(1, count).ravel()]))
