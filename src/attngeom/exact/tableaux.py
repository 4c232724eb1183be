"""Semistandard tableaux of the shapes (k, k) and (3, 3, 1, 1): how many there are, and the k-th one."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.exact.multisets import combination_at
from attngeom.exact.partitions import schur_dimension

Column = tuple[int, int]


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
    tableau: list[Column] = []
    for left in range(columns - 1, -1, -1):
        shorter = _completions(d, left)
        for column in combinations(range(least[0], d), 2):
            if column[1] < least[1]:
                continue
            size = shorter[column]
            if index < size:
                tableau.append(column)
                least = column
                break
            index -= size
    return tuple(tableau)


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
