"""Index sets of the representation-theoretic families: tableaux, lines that separate them, and planes of targets."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.combinations import combination_at
from attngeom.exact.domains import Array, Domain

Column = tuple[int, int]
Pair = tuple[int, int]
Square = tuple[tuple[Pair, Pair], ...]


def schur_dimension(shape: tuple[int, ...], d: int) -> int:
    """dim S_λ(C^d) by the hook content formula.

    >>> schur_dimension((3, 3), 3), schur_dimension((3, 3, 1, 1), 4)
    (10, 20)
    """
    numerator = denominator = 1
    for i, length in enumerate(shape):
        for j in range(length):
            leg = sum(1 for other in shape[i + 1 :] if other > j)
            numerator *= d + j - i
            denominator *= length - j + leg
    return numerator // denominator


@lru_cache(maxsize=256)
def _completions(d: int, columns: int) -> Array:
    """Entry (a, b): in how many ways weakly increasing columns (a' < b') with a' ≥ a and b' ≥ b can be appended."""
    table = np.full((d + 1, d + 1), 1 if columns == 0 else 0, dtype=object)
    if columns:
        shorter = _completions(d, columns - 1)
        for a in range(d - 1, -1, -1):
            for b in range(d - 1, -1, -1):
                # Columns with a' = a and b' ≥ b, then those with a' > a.
                own = sum(shorter[a, y] for y in range(max(b, a + 1), d))
                table[a, b] = own + table[a + 1, b]
    return table


def two_row_count(d: int, columns: int, least: Column = (0, 1)) -> int:
    """The number of semistandard tableaux with two rows and these many columns, each at least ``least``."""
    return int(_completions(d, columns)[least])


def two_row_tableau(d: int, columns: int, index: int, least: Column = (0, 1)) -> tuple[Column, ...]:
    """The semistandard tableau number ``index`` of shape (k, k) with entries below d, as its columns.

    >>> two_row_tableau(3, 3, 0), two_row_tableau(3, 3, 9)
    (((0, 1), (0, 1), (0, 1)), ((1, 2), (1, 2), (1, 2)))
    """
    if not 0 <= index < two_row_count(d, columns, least):
        raise InputError(f"tableau {index} given; there are {two_row_count(d, columns, least)}, numbered from 0")
    found: list[Column] = []
    for left in range(columns - 1, -1, -1):
        shorter = _completions(d, left)
        for column in combinations(range(least[0], d), 2):
            if column[1] < least[1]:
                continue
            size = shorter[column]
            if index < size:
                found.append(column)
                least = column
                break
            index -= size
    return tuple(found)


def tableau_3311(d: int, index: int) -> tuple[tuple[int, ...], Column, Column]:
    """The semistandard tableau number ``index`` of shape (3, 3, 1, 1) as its columns of lengths 4, 2, 2.

    >>> tableau_3311(4, 0), tableau_3311(4, 19)
    (((0, 1, 2, 3), (0, 1), (0, 1)), ((0, 1, 2, 3), (2, 3), (2, 3)))
    """
    if not 0 <= index < schur_dimension((3, 3, 1, 1), d):
        raise InputError(f"tableau {index} given; there are {schur_dimension((3, 3, 1, 1), d)}, numbered from 0")
    for top in combinations(range(d), 2):
        rest = two_row_count(d, 2, top)
        size = comb(d - 1 - top[1], 2) * rest
        if index < size:
            below, right = divmod(index, rest)
            low = combination_at(d - 1 - top[1], 2, below)
            second, third = two_row_tableau(d, 2, right, top)
            return (*top, *(x + top[1] + 1 for x in low)), second, third
        index -= size
    raise AssertionError("the sizes add up to the hook content formula")


def separating_line(tableau: tuple[Column, ...], d: int) -> Array:
    """The line (2-plane of context directions) spanned by the sums of basis vectors of the two rows of a tableau.

    These lines are unisolvent for forms of degree k in Plücker coordinates, k = 3, 4: the dim S_kk(C^d) lines of all
    tableaux of shape (k, k) span what all lines span, for every d. A form of degree k that vanishes on them is zero:
    its weights involve at most 2k indices, so it is enough to see, by induction on the support, that the square matrix
    of standard monomials on the lines whose tableaux use exactly the indices 0 … s−1 is invertible for s = 2 … 2k.
    Those are finitely many ranks, computed in the tests. It is the analogue of the principal lattice.

    >>> separating_line(((0, 1), (0, 2), (1, 2)), 3).tolist()
    [[2, 1, 0], [0, 1, 2]]
    """
    line: Array = np.zeros((2, d), dtype=np.int64)
    for top, bottom in tableau:
        line[0, top] += 1
        line[1, bottom] += 1
    return line // np.gcd.reduce(line, axis=1)[:, None]


@lru_cache(maxsize=64)
def target_squares(m: int) -> tuple[Square, ...]:
    """A basis of S_22(C^m) in S²(Λ²C^m): sums of products of 2-subsets b ≤ b' of the targets.

    S_22 is the kernel of b·b' ↦ b ∧ b': products that share an index, and two sums for each 4-subset. There are
    m²(m²−1)/12 of them.

    >>> len(target_squares(4)), target_squares(2)
    (20, ((((0, 1), (0, 1)),),))
    """
    pairs = list(combinations(range(m), 2))
    found = [((b, c),) for i, b in enumerate(pairs) for c in pairs[i:] if set(b) & set(c)]
    sums = []
    for w, x, y, z in combinations(range(m), 4):
        sums.append((((w, x), (y, z)), ((w, y), (x, z))))
        sums.append((((w, y), (x, z)), ((w, z), (x, y))))
    return (*found, *sums)


def count_target_squares(m: int) -> int:
    """dim S_22(C^m) = m²(m²−1)/12.

    >>> count_target_squares(3)
    6
    """
    return m * m * (m * m - 1) // 12


def format_square(square: Square) -> str:
    """An element of S_22 U in words: products of 2-subsets of targets, added up.

    >>> format_square(target_squares(2)[0])
    '(0,1)(0,1)'
    """
    return "+".join(f"{b}{c}".replace(" ", "") for b, c in square)


@lru_cache(maxsize=64)
def _square_places(m: int) -> tuple[Array, Array]:
    """The basis of S_22 U as places of 2-subsets: products (n, 2), then sums of two products (n', 4)."""
    place = {pair: k for k, pair in enumerate(combinations(range(m), 2))}
    rows = [[place[b] for factors in square for b in factors] for square in target_squares(m)]
    single = [row for row in rows if len(row) == 2]
    return np.array(single, dtype=np.int64).reshape(-1, 2), np.array(rows[len(single) :], dtype=np.int64).reshape(-1, 4)


def on_target_squares(product: Callable[[Array, Array], Array], m: int, domain: Domain) -> Array:
    """A symmetric bilinear function of 2-subsets of targets, given by their places, on the basis of S_22 U.

    ``product`` returns its values along the first axis.
    """
    single, double = _square_places(m)
    values = product(single[:, 0], single[:, 1])
    if not len(double):
        return values
    sums = domain.reduce(product(double[:, 0], double[:, 1]) + product(double[:, 2], double[:, 3]))
    return np.concatenate([values, sums])
