"""Matrices mod p < 2^31 in float64 BLAS, without rounding.

Residues are balanced, |x| ≤ p/2 + 2, and stored in float64, so a sum of k products is an integer below 2^53 and exact
as long as k is small enough. Below about 2^25 matrices are multiplied directly in slices of that k; above, the right
factor is cut into a high and a low part of 16 bits.
"""

from __future__ import annotations

import numpy as np

from attngeom.errors import DomainError

Array = np.ndarray

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
        return self.from_residues(np.asarray(a % self.p, dtype=np.int64))

    def from_residues(self, a: Array) -> Array:
        """Balanced residues of an int64 array with entries in [0, p)."""
        return np.where(a > self.p // 2, a - self.p, a).astype(np.float64)

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
        """The matrix product x y over the last two axes, broadcast over the others."""
        if not self.is_split and x.shape[-1] <= self.depth:
            return self.balance(x @ y)
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        out = np.zeros((*batch, x.shape[-2], y.shape[-1]))
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
