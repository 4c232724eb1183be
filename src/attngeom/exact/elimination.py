"""Gaussian elimination mod p < 2^31 in floating point BLAS, exact: recursive, in place, rank revealing.

The columns are halved until a block of a few columns is left. After the left half was eliminated, the right half
follows by one block triangular solve and one product, so nearly all work is matrix products, whatever the rank is.
Entries are reduced mod p once, when their turn comes, unless the sums of products would become too long to be exact.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.residues import BalancedResidues
from attngeom.limits.memory import ELIMINATION_BLOCK, TILE_ROWS


class Elimination:
    """The block factorization P a = L U of a matrix of balanced residues, which it overwrites.

    After :meth:`run`: ``columns`` are the pivot columns (lexicographically first), ``order[:rank]`` the pivot rows.
    Pivots come in blocks, rows ``starts[b]`` … ``starts[b + 1] − 1`` of ``a``: L has identity matrices in the diagonal
    blocks and lies in the pivot columns below them; the rows of a block hold U from its first pivot column on.

    >>> e = Elimination(np.array([[0.0, 1.0], [2.0, 3.0]]), 257).run()
    >>> e.rank, e.order.tolist(), e.columns
    (2, [0, 1], [0, 1])
    """

    def __init__(self, a: Array, p: int, keep_upper: bool = True) -> None:
        self.a = a
        self.field = BalancedResidues(p)
        self.keep_upper = keep_upper
        self.order = np.arange(a.shape[0])
        self.columns: list[int] = []
        self.starts = [0]
        self.inverses: list[Array] = []

    @property
    def rank(self) -> int:
        return len(self.columns)

    def run(self) -> Elimination:
        """Eliminate all columns; with ``keep_upper`` false, U is completed only as far as pivots need it."""
        self._eliminate(0, self.a.shape[1], 0)
        return self

    def _eliminate(self, start: int, stop: int, pending: int) -> None:
        """Eliminate columns in the rows from ``rank`` on, whose entries hold ``pending`` unreduced products."""
        if stop - start <= ELIMINATION_BLOCK:
            self._eliminate_block(start, stop)
            return
        row, block = self.rank, len(self.inverses)
        middle = start + ((stop - start) // 2 + ELIMINATION_BLOCK - 1) // ELIMINATION_BLOCK * ELIMINATION_BLOCK
        self._eliminate(start, middle, pending)
        rows_are_left = self.rank < len(self.a)
        if self.rank > row and (rows_are_left or self.keep_upper):
            right = self.a[row : self.rank, middle:stop]
            self._solve_lower(block, len(self.inverses), right, pending)
            before = pending
            for first in range(self.rank, len(self.a), 4 * TILE_ROWS):
                last = min(first + 4 * TILE_ROWS, len(self.a))
                left = self._select(first, last, row, self.rank)
                pending = self.field.accumulate_product(self.a[first:last, middle:stop], left, right, before)
        if rows_are_left:
            self._eliminate(middle, stop, pending)

    def _select(self, first: int, last: int, start: int, stop: int) -> Array:
        """Rows first … last − 1 of the pivot columns of rows start … stop − 1: a view if they are neighbours."""
        columns = self.columns[start:stop]
        if columns[-1] - columns[0] == len(columns) - 1:
            return self.a[first:last, columns[0] : columns[-1] + 1]
        return self.a[first:last, columns]

    def _solve_lower(self, first: int, last: int, b: Array, pending: int) -> None:
        """b ← L⁻¹ b for the blocks first … last − 1, reduced."""
        if last - first == 1:
            self.field.balance(b)
            return
        middle = (first + last) // 2
        start, cut, stop = self.starts[first], self.starts[middle], self.starts[last]
        top, bottom = b[: cut - start], b[cut - start :]
        self._solve_lower(first, middle, top, pending)
        pending = self.field.accumulate_product(bottom, self._select(cut, stop, start, cut), top, pending)
        self._solve_lower(middle, last, bottom, pending)

    def _solve_upper(self, first: int, last: int, b: Array) -> None:
        """b ← U⁻¹ b for the blocks first … last − 1, reduced."""
        if last - first == 1:
            b[:] = self.field.multiply(self.inverses[first], b)
            return
        middle = (first + last) // 2
        start, cut, stop = self.starts[first], self.starts[middle], self.starts[last]
        top, bottom = b[: cut - start], b[cut - start :]
        self._solve_upper(middle, last, bottom)
        self.field.subtract_product(top, self._select(start, cut, cut, stop), bottom)
        self._solve_upper(first, middle, top)

    def _eliminate_block(self, start: int, stop: int) -> None:
        """Invert the uppermost square block of these columns, or a largest minor, and clear the rows below."""
        row, width = self.rank, stop - start
        panel = self.a[row:, start:stop]
        self.field.balance(panel)
        pivots = list(range(width))
        inverse = self.field.invert_matrix(panel[:width]) if len(panel) >= width else None
        if inverse is None:
            moved, pivots = self._find_pivots(panel)
            if not pivots:
                return
            changed = np.flatnonzero(moved != np.arange(len(panel)))
            self.a[row + changed] = self.a[row + moved[changed]]
            self.order[row + changed] = self.order[row + moved[changed]]
            inverse = self.field.invert_matrix(panel[: len(pivots), pivots])
            assert inverse is not None
        rank = len(pivots)
        below = self.field.multiply(panel[rank:, pivots], inverse)
        if rank < width:
            panel[rank:] = 0
        panel[rank:, pivots] = below
        self.columns += [start + j for j in pivots]
        self.starts.append(row + rank)
        self.inverses.append(inverse)

    def _find_pivots(self, panel: Array) -> tuple[Array, list[int]]:
        """An order of the rows and the first independent columns: the leading minor is nonzero."""
        field = self.field
        # One column per row, contiguous.
        work = panel.T.copy()
        moved = np.arange(len(panel))
        pivots: list[int] = []
        for j in range(len(work)):
            r = len(pivots)
            if r == len(panel):
                break
            pivot = r + int(np.argmax(work[j, r:] != 0))
            if work[j, pivot] == 0:
                continue
            if pivot != r:
                work[:, [r, pivot]] = work[:, [pivot, r]]
                moved[[r, pivot]] = moved[[pivot, r]]
            below = field.times(work[j, r + 1 :], field.invert_one(work[j, r]))
            field.subtract_times(work[j + 1 :, r + 1 :], below, work[j + 1 :, r : r + 1])
            pivots.append(j)
        return moved, pivots

    def reduced(self) -> tuple[Array, Array]:
        """The non-pivot columns and their entries in the reduced echelon form, rank×(n − rank), balanced."""
        free = np.delete(np.arange(self.a.shape[1]), np.array(self.columns, dtype=np.intp))
        entries = self.a[: self.rank, free]
        if self.rank:
            self._solve_upper(0, len(self.inverses), entries)
        return free, entries
