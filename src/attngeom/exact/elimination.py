"""Gaussian elimination mod p < 2^31 in float64 BLAS, exact: recursive, in place, rank revealing.

Residues are balanced, |x| ≤ p/2 + 2, and stored in float64, so a sum of k products is an integer below 2^53 and exact
as long as k is small enough. Below about 2^25 matrices are multiplied directly in slices of that k; above, the right
factor is cut into a high and a low part of 16 bits.

The columns are halved until a panel of a few columns is left. After the left half was eliminated, the right half
follows by one triangular solve and one product, so nearly all work is matrix products, whatever the rank is.
"""

from __future__ import annotations

import numpy as np

from attngeom.errors import DomainError

Array = np.ndarray

PANEL = 8
"""Columns that are eliminated one by one; recursion makes everything else a matrix product."""
TRIANGLE = 32
"""Triangular systems up to this size are solved by inverting the triangle."""
TILE_ROWS, TILE_COLUMNS = 512, 1024
"""Products are formed tile by tile: 4 MB stay in cache while they are subtracted and reduced."""


class BalancedResidues:
    """Arithmetic of float64 arrays of balanced residues mod p < 2^31.

    >>> BalancedResidues(7).times(np.array([3.0]), np.array([3.0])).tolist()
    [2.0]
    """

    def __init__(self, p: int) -> None:
        if not p < 2**31:
            raise DomainError(f"modulus {p} given; float64 products are exact below 2^31 only")
        self.p = p
        # rint(x (1/p)) may be off by one when x/p is within 2/p of a half: hence the margin of 2.
        self.bound = p // 2 + 2
        # A residue minus k products must stay below 2^53 − bound, so that its multiple of p is exact as well.
        direct = (2**53 - 2 * self.bound) // self.bound**2
        self.is_split = direct < 40
        # A split product has terms up to bound·2^15 in its low part, plus bound·2^16 from its high part.
        self.depth = (2**53 - self.bound * (2**16 + 2)) // (self.bound * 2**15) if self.is_split else direct
        self.one_product_fits = direct >= 1

    def from_integers(self, a: Array) -> Array:
        """Balanced residues of an integer array."""
        return self.balance((a % self.p).astype(np.float64))

    def to_integers(self, x: Array) -> Array:
        """The residues in [0, p) as int64."""
        residues = x.astype(np.int64)
        residues[residues < 0] += self.p
        return residues

    def balance(self, x: Array) -> Array:
        """Reduce x, |x| < 2^53 − p, in place."""
        quotient = x * (1.0 / self.p)
        np.rint(quotient, out=quotient)
        quotient *= self.p
        x -= quotient
        return x

    def times(self, x: Array, y: Array) -> Array:
        """The entrywise (broadcast) product."""
        if self.one_product_fits:
            return self.balance(x * y)
        high, low = self._halves(y)
        return self.balance(self.balance(x * high) * 65536.0 + x * low)

    def subtract_times(self, c: Array, x: Array, y: Array) -> None:
        """c ← c − x y entrywise (broadcast), in place."""
        c -= x * y if self.one_product_fits else self.times(x, y)
        self.balance(c)

    def invert(self, x: float) -> float:
        """The balanced inverse of one nonzero residue."""
        inverse = pow(int(x), -1, self.p)
        return float(inverse - self.p if 2 * inverse > self.p else inverse)

    def _halves(self, y: Array) -> tuple[Array, Array]:
        high = np.rint(y * (1.0 / 65536.0))
        return high, y - high * 65536.0

    def multiply(self, x: Array, y: Array) -> Array:
        """The matrix product x y."""
        out = np.zeros((x.shape[0], y.shape[1]))
        self.subtract_product(out, x, -y)
        return out

    def subtract_product(self, c: Array, x: Array, y: Array) -> None:
        """c ← c − x y, in place, tile by tile."""
        for k in range(0, x.shape[1], self.depth):
            inner = slice(k, k + self.depth)
            for j in range(0, c.shape[1], TILE_COLUMNS):
                columns = slice(j, j + TILE_COLUMNS)
                right = y[inner, columns]
                halves = self._halves(right) if self.is_split else None
                for i in range(0, c.shape[0], TILE_ROWS):
                    left = x[i : i + TILE_ROWS, inner]
                    tile = c[i : i + TILE_ROWS, columns]
                    if halves is None:
                        tile -= left @ right
                    else:
                        product = self.balance(left @ halves[0])
                        product *= 65536.0
                        tile -= product
                        tile -= left @ halves[1]
                    self.balance(tile)

    def solve_unit_triangular(self, triangle: Array, b: Array, lower: bool) -> None:
        """b ← triangle⁻¹ b in place, for a triangle with ones on its diagonal (which are not read)."""
        n = len(triangle)
        if n <= TRIANGLE:
            b[:] = self.multiply(self._invert_unit_triangular(triangle, lower), b)
            return
        half = (n // 2 + TRIANGLE - 1) // TRIANGLE * TRIANGLE if n > 2 * TRIANGLE else n // 2
        first, last = slice(0, half), slice(half, n)
        if lower:
            self.solve_unit_triangular(triangle[first, first], b[first], lower)
            self.subtract_product(b[last], triangle[last, first], b[first])
            self.solve_unit_triangular(triangle[last, last], b[last], lower)
        else:
            self.solve_unit_triangular(triangle[last, last], b[last], lower)
            self.subtract_product(b[first], triangle[first, last], b[last])
            self.solve_unit_triangular(triangle[first, first], b[first], lower)

    def _invert_unit_triangular(self, triangle: Array, lower: bool) -> Array:
        """(I − N)⁻¹ = (I + N)(I + N²)(I + N⁴)… for the nilpotent N = I − triangle."""
        n = len(triangle)
        power = -np.tril(triangle, -1) if lower else -np.triu(triangle, 1)
        inverse = np.eye(n) + power
        for _ in range(max(n - 1, 0).bit_length() - 1):
            power = self.multiply(power, power)
            inverse = self.balance(inverse + self.multiply(inverse, power))
        return inverse


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
