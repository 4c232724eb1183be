"""Families of equations of the slice quadrics on lines: resultants and binary restrictions."""

from __future__ import annotations

import numpy as np

from attngeom.equations.family import TableFamily
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_rows
from attngeom.exact.tableaux import Column, two_row_tableau


def restriction_matrix(lines: Array) -> Array:
    """The integer matrices (…, 3, D) that send coordinates y_{S,m} to (q_m(p), B_m(p, r), q_m(r)) on lines (…, 2, d).

    >>> restriction_matrix(np.array([[1, 0], [1, 1]])).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 2, 1]]
    """
    p, r = lines[..., 0, :], lines[..., 1, :]
    k, l = pair_rows(lines.shape[-1])
    off = (k != l).astype(np.int64)
    rows = [p[..., k] * p[..., l] * (1 + off), p[..., k] * r[..., l] + off * p[..., l] * r[..., k]]
    return np.stack([*rows, r[..., k] * r[..., l] * (1 + off)], axis=-2)


def restrict(y: Array, lines: Array, domain: Domain) -> Array:
    """The binary quadrics on each of n lines: (…, n, 3, targets) from y (…, D, targets) and lines (n, 2, d)."""
    matrix = restriction_matrix(lines)
    flat = domain.matmul(domain.convert(matrix.reshape(-1, matrix.shape[-1])), y)
    return flat.reshape(*y.shape[:-2], len(lines), 3, y.shape[-1])


def separating_line(tableau: tuple[Column, ...], d: int) -> Array:
    """The line (2-plane of context directions) spanned by the sums of basis vectors of the two rows of a tableau.

    A form of degree k in Plücker coordinates, k = 3, 4, that vanishes on the dim S_kk(C^d) lines of all tableaux of
    shape (k, k) is zero: docs/reference/families.md.

    >>> separating_line(((0, 1), (0, 2), (1, 2)), 3).tolist()
    [[2, 1, 0], [0, 1, 2]]
    """
    line: Array = np.zeros((2, d), dtype=np.int64)
    for top, bottom in tableau:
        line[0, top] += 1
        line[1, bottom] += 1
    return np.asarray(line // np.gcd.reduce(line, axis=1)[:, None])


class LineFamily(TableFamily):
    """A family of degree k with one line for each semistandard tableau of shape (k, k), see :func:`separating_line`."""

    def line(self, number: int) -> Array:
        """Line number ``number`` of the dim S_kk(C^d) lines, as the 2×d matrix with rows p and r."""
        return separating_line(two_row_tableau(self.variety.d, self.degree, number), self.variety.d)

    def line_label(self, number: int) -> str:
        """A line in words: the two points that span it."""
        p, r = (tuple(row) for row in self.line(number).tolist())
        return f"p={p} r={r}"

    def on_lines(self, y: Array, domain: Domain, numbers: Array) -> Array:
        """The binary quadrics on the lines of these numbers, (…, lines, 3, targets)."""
        return restrict(y, np.stack([self.line(int(k)) for k in numbers]), domain)
