"""Numbers of monomials of a lightning layer.

Output coordinate F_ij of a layer holds single-column monomials x_{R,j}, R a multiset of three rows, and cross-column
monomials x_{S,n} x_{m,j}, S a multiset of two rows and n ≠ j.
"""

from __future__ import annotations

from math import comb


def count_single(d: int) -> int:
    """Single-column monomials of one output coordinate: C(d+2, 3)."""
    return comb(d + 2, 3)


def count_cross(d: int, t: int) -> int:
    """Cross-column monomials of one output coordinate: (t-1) d C(d+1, 2)."""
    return (t - 1) * d * comb(d + 1, 2)


def count_output(d: int, t: int) -> int:
    """Monomials of one output coordinate.

    >>> count_output(2, 2)
    10
    """
    return count_single(d) + count_cross(d, t)


def count_support(d: int, t: int) -> int:
    """Different monomials over all target columns; the rows of the output share them."""
    return t * count_output(d, t)


def count_cubics(d: int, t: int) -> int:
    """All cubic monomials in the d t entries of X: the density count_support / count_cubics is O(1/t).

    >>> count_support(2, 2), count_cubics(2, 2)
    (20, 20)
    """
    return comb(d * t + 2, 3)
