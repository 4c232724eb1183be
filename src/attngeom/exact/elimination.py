"""Gaussian elimination mod p < 2^31 in float64 BLAS, exact: recursive, in place, rank revealing.

The columns are halved until a panel of a few columns is left. After the left half was eliminated, the right half
follows by one triangular solve and one product, so nearly all work is matrix products, whatever the rank is.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact.residues import TILE_ROWS, BalancedResidues

Array = np.ndarray

PANEL = 8
"""Columns that are eliminated one by one; recursion makes everything else a matrix product."""


class Elimination:
    """The factorization P a = L U of a matrix of balanced residues, which it overwrites.

    After :meth:`run`: ``columns`` are the pivot columns (lexicographically first), ``order[:rank]`` the pivot rows; in
    ``a``, row i < rank holds U from column ``columns[i]`` on, and L lies in the pivot columns below the pivots.

    >>> e = Elimination(np.array([[0.0, 1.0], [2.0, 3.0]]), 7).run()
    >>> e.rank, e.order.tolist(), e.columns
    (2, [1, 0], [0, 1])
    """

    def __init__(self, a: Array, p: int, keep_upper: bool = True) -> None:
        self.a = a
        self.field = BalancedResidues(p)
        self.keep_upper = keep_upper
        self.order = np.arange(a.shape[0])
        self.columns: list[int] = []

    @property
    def rank(self) -> int:
        return len(self.columns)

    def run(self) -> Elimination:
        """Eliminate all columns; with ``keep_upper`` false, U is completed only as far as pivots need it."""
        self._eliminate(0, self.a.shape[1])
        return self

    def _eliminate(self, start: int, stop: int) -> None:
        if stop - start <= PANEL:
            self._eliminate_panel(start, stop)
            return
        row = self.rank
        middle = start + ((stop - start) // 2 + PANEL - 1) // PANEL * PANEL
        self._eliminate(start, middle)
        left = self.columns[row:]
        rows_are_left = self.rank < len(self.a)
        if left and (rows_are_left or self.keep_upper):
            right = self.a[row : self.rank, middle:stop]
            self.field.solve_unit_triangular(self._select(row, self.rank, left), right, lower=True)
            for first in range(self.rank, len(self.a), 4 * TILE_ROWS):
                last = min(first + 4 * TILE_ROWS, len(self.a))
                self.field.subtract_product(self.a[first:last, middle:stop], self._select(first, last, left), right)
        if rows_are_left:
            self._eliminate(middle, stop)

    def _select(self, first: int, last: int, columns: list[int]) -> Array:
        """Rows first … last − 1 of increasing columns: a view if the columns are neighbours, else a copy."""
        if columns[-1] - columns[0] == len(columns) - 1:
            return self.a[first:last, columns[0] : columns[-1] + 1]
        return self.a[first:last, columns]

    def _eliminate_panel(self, start: int, stop: int) -> None:
        """Eliminate a few columns with rank one updates, then move whole rows."""
        field, row = self.field, self.rank
        # One column per row of the panel, contiguous.
        panel = self.a[row:, start:stop].T.copy()
        height = panel.shape[1]
        moved = np.arange(height)
        r = 0
        for j in range(stop - start):
            if r == height:
                break
            pivot = r if panel[j, r] != 0 else r + int(np.argmax(panel[j, r:] != 0))
            if panel[j, pivot] == 0:
                continue
            if pivot != r:
                panel[:, [r, pivot]] = panel[:, [pivot, r]]
                moved[[r, pivot]] = moved[[pivot, r]]
            below = panel[j, r + 1 :]
            below[:] = field.times(below, np.array(field.invert(panel[j, r])))
            field.subtract_times(panel[j + 1 :, r + 1 :], below, panel[j + 1 :, r : r + 1])
            self.columns.append(start + j)
            r += 1
        changed = np.flatnonzero(moved != np.arange(height))
        if len(changed):
            self.a[row + changed] = self.a[row + moved[changed]]
            self.order[row + changed] = self.order[row + moved[changed]]
        self.a[row:, start:stop] = panel.T

    def reduced(self) -> tuple[Array, Array]:
        """The non-pivot columns and their entries in the reduced echelon form, rank×(n − rank), balanced."""
        rank = self.rank
        pivots = np.array(self.columns, dtype=np.intp)
        free = np.setdiff1d(np.arange(self.a.shape[1]), pivots)
        entries = self.a[:rank, free]
        # Right of a pivot everything is U; left of it a free column is zero already.
        triangle = self.a[:rank, pivots]
        inverses = np.array([self.field.invert(x) for x in np.diagonal(triangle)]).reshape(rank, 1)
        entries = self.field.times(entries, inverses)
        triangle = self.field.times(triangle, inverses)
        self.field.solve_unit_triangular(triangle, entries, lower=False)
        return free, entries
