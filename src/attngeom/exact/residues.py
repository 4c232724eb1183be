"""Matrices mod p < 2^31 in floating point BLAS, without rounding: products, and elimination that reveals ranks.

Residues are balanced, |x| ≤ p/2 + 2, and stored in float64, so a sum of k products is an integer below 2^53 and exact
as long as k is small enough. Below about 2^25 matrices are multiplied directly in slices of that k; above, the right
factor is cut into a high and a low part of 16 bits. Residues mod p < 2^8 are stored in float32, where everything is
twice as fast and integers are exact below 2^24: k is at least 1,000.

Elimination is recursive and in place: columns are halved until a block of a few is left. After the left half was
eliminated, the right half follows by one block triangular solve and one product, so nearly all work is matrix products,
whatever the rank is. Entries are reduced mod p once, when their turn comes, unless the sums of products would become
too long to be exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flint import nmod_mat

from attngeom.errors import DomainError
from attngeom.exact.arrays import Array, check_product
from attngeom.limits.memory import ELIMINATION_BLOCK, TILE_COLUMNS, TILE_ROWS
from attngeom.limits.work import SMALL_PRODUCT


@dataclass(frozen=True)
class BalancedResidues:
    """Arithmetic of arrays of balanced residues mod p < 2^31, float32 for p < 2^8, else float64.

    >>> BalancedResidues(7).times(np.array([3.0]), np.array([3.0])).tolist()
    [2.0]
    """

    p: int
    dtype: type[np.floating[Any]] = field(init=False, repr=False, compare=False)
    bound: int = field(init=False, repr=False, compare=False)
    is_split: bool = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)
    one_product_fits: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        p = self.p
        if not p < 2**31:
            raise DomainError(f"modulus {p} given; float64 products are exact below 2^31 only")
        exact = 2**24 if p < 2**8 else 2**53
        # rint(x (1/p)) may be off by one when x/p is within 2/p of a half: hence the margin of 2.
        bound = p // 2 + 2
        # A residue minus k products must stay below 2^53 − bound, so that its multiple of p is exact as well.
        direct = (exact - 2 * bound) // bound**2
        # A split product has terms up to bound·2^15 in its low part, plus bound·2^16 from its high part.
        split = (2**53 - bound * (2**16 + 2)) // (bound * 2**15)
        known = {
            "dtype": np.float32 if p < 2**8 else np.float64,
            "bound": bound,
            "is_split": direct < 40,
            "depth": split if direct < 40 else direct,
            "one_product_fits": direct >= 1,
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def from_integers(self, a: Array) -> Array:
        """Balanced residues of an integer array."""
        return self.from_residues(np.asarray(a % self.p, dtype=np.int64))

    def from_residues(self, a: Array) -> Array:
        """Balanced residues of an int64 array with entries in [0, p)."""
        return np.where(a > self.p // 2, a - self.p, a).astype(self.dtype)

    def to_integers(self, x: Array) -> Array:
        """The residues in [0, p) as int64."""
        residues = x.astype(np.int64)
        residues[residues < 0] += self.p
        return residues

    def balance(self, x: Array) -> Array:
        """Reduce x, |x| < 2^53 − p (2^24 − p in float32), in place."""
        quotient = x * (1.0 / self.p)
        np.rint(quotient, out=quotient)
        quotient *= self.p
        x -= quotient
        return x

    def times(self, x: Any, y: Any) -> Any:
        """The entrywise (broadcast) product."""
        if self.one_product_fits:
            return self.balance(x * y)
        high, low = self._halves(y)
        return self.balance(self.balance(x * high) * 65536.0 + x * low)

    def subtract_times(self, c: Array, x: Array, y: Array) -> None:
        """c ← c − x y entrywise (broadcast), in place."""
        c -= x * y if self.one_product_fits else self.times(x, y)
        self.balance(c)

    def invert_one(self, x: float) -> float:
        """The balanced inverse of one nonzero residue."""
        inverse = pow(int(x), -1, self.p)
        return float(inverse - self.p if 2 * inverse > self.p else inverse)

    def _halves(self, y: Array | float) -> tuple[Array, Array]:
        high = np.rint(y * (1.0 / 65536.0))
        return high, y - high * 65536.0

    def multiply(self, x: Array, y: Array) -> Array:
        """The matrix product x y over the last two axes, broadcast over the others."""
        if not self.is_split and x.shape[-1] <= self.depth:
            return self.balance(x @ y)
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        out = np.zeros((*batch, x.shape[-2], y.shape[-1]), dtype=np.result_type(x, y))
        self.subtract_product(out, x, -y)
        return out

    def subtract_product(self, c: Array, x: Array, y: Array) -> None:
        """c ← c − x y over the last two axes, in place, tile by tile."""
        for k in range(0, x.shape[-1], self.depth):
            inner = slice(k, k + self.depth)
            for j in range(0, c.shape[-1], TILE_COLUMNS):
                columns = slice(j, j + TILE_COLUMNS)
                right = y[..., inner, columns]
                halves = self._halves(right) if self.is_split else None
                for i in range(0, c.shape[-2], TILE_ROWS):
                    left = x[..., i : i + TILE_ROWS, inner]
                    tile = c[..., i : i + TILE_ROWS, columns]
                    if halves is None:
                        tile -= left @ right
                    else:
                        product = self.balance(left @ halves[0])
                        product *= 65536.0
                        tile -= product
                        tile -= left @ halves[1]
                    self.balance(tile)

    def accumulate_product(self, c: Array, x: Array, y: Array, pending: int) -> int:
        """c ← c − x y in place, for c that holds ``pending`` products not reduced yet; how many it holds then.

        Reduction is left to the caller, which saves most of it, unless sums would no longer be exact.
        """
        k = x.shape[-1]
        if self.is_split or k > self.depth:
            self.balance(c)
            self.subtract_product(c, x, y)
            return 0
        if pending + k > self.depth:
            self.balance(c)
            pending = 0
        for i in range(0, c.shape[-2], TILE_ROWS):
            for j in range(0, c.shape[-1], TILE_COLUMNS):
                c[i : i + TILE_ROWS, j : j + TILE_COLUMNS] -= x[i : i + TILE_ROWS] @ y[:, j : j + TILE_COLUMNS]
        return pending + int(k)

    def invert_matrix(self, a: Array) -> Array | None:
        """The inverse of a small square matrix, None if it is singular."""
        n = len(a)
        try:
            inverse = nmod_mat(n, n, self.to_integers(a).ravel().tolist(), self.p).inv()
        except ZeroDivisionError:
            return None
        return self.from_residues(np.array([int(x) for x in inverse.entries()], dtype=np.int64).reshape(n, n))


def matmul_mod(a: Array, b: Array, p: int) -> Array:
    """a b mod p for int64 residues in [0, p) and p < 2^31, exact, in float64 BLAS; batched over leading axes.

    >>> matmul_mod(np.array([[2, 3]]), np.array([[4], [5]]), 7).tolist()
    [[2]]
    """
    check_product(a, b)
    field = BalancedResidues(p)
    if a.size * b.shape[-1] <= SMALL_PRODUCT and b.ndim == 2:
        # A few integer operations on all products at once; sums of k < 2^32 residues fit in int64.
        return np.asarray((a[..., :, :, None] * b % p).sum(axis=-2) % p)
    return field.to_integers(field.multiply(field.from_residues(a), field.from_residues(b)))


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
