"""Families 9 and 12 on lines: the slice quadrics v(z) a_m(z), restricted to a line, have a common root."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from operator import mul

import numpy as np
from flint import fmpz_mat

from attngeom.equations.families.pluecker import format_square, on_target_squares, target_squares
from attngeom.equations.family import Choice, Family, TableFamily, combination_array
from attngeom.equations.minors import submatrix_minors
from attngeom.equations.variety import Variety
from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import combination_at, pair_rows
from attngeom.exact.partitions import Column, schur_dimension, two_row_tableau
from attngeom.limits.sizes import LINE_ENTRY


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


Line = tuple[tuple[int, ...], tuple[int, ...]]
"""The points p and r that span it, as integers."""


def check_line(line: Line, d: int) -> None:
    """InputError unless two points of d coordinates span a line.

    >>> check_line(((1, 0), (2, 0)), 2)
    Traceback (most recent call last):
    attngeom.errors.InputError: line 1,0:2,0 given; two points that are not multiples of each other are required
    """
    words = ":".join(",".join(map(str, point)) for point in line)[:60]
    if any(len(point) != d for point in line):
        raise InputError(f"line {words} given; two points of {d} coordinates are required, such as 1,0,…:0,1,…")
    if max(abs(x) for point in line for x in point) > LINE_ENTRY:
        raise InputError(f"line {words} given; coordinates of at most {LINE_ENTRY:,} are required")
    p, r = line
    if not any(p[i] * r[j] != p[j] * r[i] for i, j in combinations(range(d), 2)):
        raise InputError(f"line {words} given; two points that are not multiples of each other are required")


def count_separated(lines: Sequence[Line], degree: int) -> int:
    """The rank of the forms of this degree in Plücker coordinates at given lines: dim S_kk(C^d) if they separate all.

    The products of Plücker vectors are ⟨p_i, p_j⟩⟨r_i, r_j⟩ − ⟨p_i, r_j⟩⟨r_i, p_j⟩ (Cauchy and Binet), and the matrix
    of their powers is the Gram matrix of the values of all monomials, so it has the same rank over Q.

    >>> count_separated([((1, 0, 0), (0, 1, 0)), ((1, 0, 0), (0, 2, 0)), ((1, 0, 0), (0, 0, 1))], 4)
    2
    """

    def product(one: Line, other: Line) -> int:
        (pp, pr), (rp, rr) = ([sum(map(mul, x, y)) for y in other] for x in one)
        return int(pp * rr - pr * rp)

    return int(fmpz_mat([[product(one, other) ** degree for other in lines] for one in lines]).rank())


@dataclass(frozen=True)
class LineFamily(TableFamily):
    """A family of degree k with one line for each semistandard tableau of shape (k, k), see :func:`separating_line`.

    ``lines`` of the user take their place; then members may depend on each other, and the span says how far they reach.
    """

    lines: tuple[Line, ...] | None = None

    @classmethod
    def select(cls, variety: Variety, choice: Choice) -> Iterator[Family]:
        if cls.applies(variety):
            yield cls(variety, choice.lines)

    def __post_init__(self) -> None:
        for line in self.lines or ():
            check_line(line, self.variety.d)

    @property
    @abstractmethod
    def on_a_line(self) -> int:
        """The number of members on one line."""

    @property
    def row_sizes(self) -> tuple[int, ...]:
        usual = schur_dimension((self.degree, self.degree), self.variety.d)
        return usual if self.lines is None else len(self.lines), self.on_a_line

    @property
    def span(self) -> int:
        if self.lines is None:
            return self.count
        return self.variety.d_out * count_separated(self.lines, self.degree) * self.on_a_line

    def line(self, number: int) -> Array:
        """Line number ``number`` of the dim S_kk(C^d) lines, or of the given ones, as the 2×d matrix of p and r."""
        if self.lines is not None:
            return np.array(self.lines[number], dtype=np.int64)
        return separating_line(two_row_tableau(self.variety.d, self.degree, number), self.variety.d)

    def line_label(self, number: int) -> str:
        """A line in words: the two points that span it."""
        p, r = (tuple(row) for row in self.line(number).tolist())
        return f"p={p} r={r}"

    def on_lines(self, y: Array, domain: Domain, numbers: Array) -> Array:
        """The binary quadrics on the lines of these numbers, (…, lines, 3, targets)."""
        return restrict(y, np.stack([self.line(int(k)) for k in numbers]), domain)


class SylvesterResultants(LineFamily):
    """On a line z = s p + u r the quadrics q_m = v(z) a_m(z) share a root: Res(Σ λ_m q_m, Σ μ_m q_m) = 0.

    With P, 2B, R the coefficients of q_m on the line, Res = [PR]² − 4 [PB][BR] in 2×2 minors of the two forms, so its
    coefficients in (λ, μ) are indexed by a basis of S_22 U. There is one line for each semistandard tableau of shape
    (4, 4), see :func:`separating_line`; together the quartics are a basis of S_44 V ⊗ S_22 U, what all lines span.

    >>> from attngeom.equations.variety import Variety
    >>> SylvesterResultants(Variety(3, 3)).count
    90
    """

    number = 9
    title = "sylvester-resultant"
    source = "resultants on lines, [I] Theorem 40"
    degree = 4

    @property
    def on_a_line(self) -> int:
        return schur_dimension((2, 2), self.variety.num_targets)

    def row_label(self, *index: int) -> str:
        number, square = index
        targets = format_square(target_squares(self.variety.num_targets)[square])
        return f"{self.line_label(number)} targets={targets}"

    def table(self, y: Array, domain: Domain, rows: Array, columns: Array) -> Array:
        return resultant_values(self.on_lines(y, domain, rows), domain, columns)


def resultant_values(b: Array, domain: Domain, squares: Array | None = None) -> Array:
    """The quartics of S_22 U for binary quadrics (…, 3, m): all m²(m²−1)/12 of the basis, or those chosen.

    For two 2-subsets of targets: [PR]_u [PR]_w − 2 [PB]_u [BR]_w − 2 [PB]_w [BR]_u, the resultant itself if u = w.
    """
    m = b.shape[-1]
    pairs = np.array(list(combinations(range(m), 2)), dtype=np.int64).reshape(-1, 2)
    # Rows (P, B), (P, R), (B, R) of each pair of columns.
    rows = np.repeat(list(combinations(range(3), 2)), len(pairs), axis=0)
    minors = np.moveaxis(submatrix_minors(b, rows, np.tile(pairs, (3, 1)), domain), -1, 0)
    left, outer, right = minors.reshape(3, len(pairs), *b.shape[:-2])

    def product(u: Array, w: Array) -> Array:
        mixed = domain.times(left[u], right[w]) + domain.times(left[w], right[u])
        return domain.reduce(domain.times(outer[u], outer[w]) - 2 * domain.reduce(mixed))

    return np.moveaxis(on_target_squares(product, m, domain, squares), 0, -1)


class BinaryRestriction(LineFamily):
    """On a line the quadrics v(z) a_m(z) are binary quadrics with a common factor: at most two are independent.

    Members are (line, targets L): the 3×3 minors with columns L of the 3×m matrix (q_m(p), B_m(p, r), q_m(r)), one line
    for each semistandard tableau of shape (3, 3), see :func:`separating_line`. They are a basis of S_33 V ⊗ Λ³U, so
    dim S_33(C^d) C(m,3) linearly independent cubics.

    >>> from attngeom.equations.variety import Variety
    >>> BinaryRestriction(Variety(4, 4)).count
    200
    """

    number = 12
    title = "binary-restriction"
    source = "binary quadrics with a common factor; in [I] for d = 3 only"
    degree = 3

    @property
    def on_a_line(self) -> int:
        return comb(self.variety.num_targets, 3)

    def row_label(self, *index: int) -> str:
        number, triple = index
        return f"{self.line_label(number)} L={combination_at(self.variety.num_targets, 3, triple)}"

    def table(self, y: Array, domain: Domain, rows: Array, columns: Array) -> Array:
        targets = combination_array(self.variety.num_targets, 3, columns)
        binary = self.on_lines(y, domain, rows)
        return submatrix_minors(binary, np.broadcast_to(np.arange(3), targets.shape), targets, domain)
