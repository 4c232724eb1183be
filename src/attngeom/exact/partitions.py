"""Partitions, Kostka numbers, Weyl dimensions, tableaux: the combinatorics of representations of products of GL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import combinations, product
from math import comb, factorial, prod

import numpy as np
from flint import fmpz

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.exact.multisets import combination_at

Partition = tuple[int, ...]
Weight = tuple[Partition, ...]
"""One composition for each factor of a product of general linear groups; dominant if each is weakly decreasing."""


@cache
def partitions(n: int, max_length: int) -> tuple[Partition, ...]:
    """The partitions of n with at most ``max_length`` parts, in decreasing lexicographic order.

    >>> partitions(4, 2)
    ((4,), (3, 1), (2, 2))
    """

    def build(rest: int, largest: int, length: int) -> Iterator[Partition]:
        if rest == 0:
            yield ()
        elif length > 0:
            for first in range(min(rest, largest), 0, -1):
                for tail in build(rest - first, first, length - 1):
                    yield (first, *tail)

    return tuple(build(n, n, max_length))


def is_partition(shape: Partition) -> bool:
    """Whether the numbers decrease weakly and none is negative.

    >>> is_partition((2, 1)), is_partition((1, 2)), is_partition((1, -1))
    (True, False, False)
    """
    return all(x >= y for x, y in zip(shape, (*shape[1:], 0)))


@cache
def column_lengths(shape: Partition) -> tuple[int, ...]:
    """The lengths of the columns of a Young diagram: the conjugate partition.

    >>> column_lengths((3, 1))
    (2, 1, 1)
    """
    return tuple(sum(1 for row in shape if row > j) for j in range(shape[0])) if shape else ()


def pad(shape: Partition, length: int) -> Partition:
    """The partition with zeros appended up to the given length.

    >>> pad((2, 1), 4)
    (2, 1, 0, 0)
    """
    return shape + (0,) * (length - len(shape))


def strip(weight: Partition) -> Partition:
    """The composition without its trailing zeros.

    >>> strip((2, 1, 0))
    (2, 1)
    """
    while weight and weight[-1] == 0:
        weight = weight[:-1]
    return weight


@cache
def remove_horizontal_strips(shape: Partition, size: int) -> tuple[Partition, ...]:
    """The partitions obtained from ``shape`` by removing ``size`` boxes, no two in one column.

    >>> remove_horizontal_strips((2, 1), 1)
    ((2,), (1, 1))
    """
    padded = (*shape, 0)
    ranges = [range(padded[i + 1], padded[i] + 1) for i in range(len(shape))]
    shapes = [strip(inner) for inner in product(*ranges) if sum(inner) == sum(shape) - size]
    return tuple(sorted(shapes, reverse=True))


@cache
def add_horizontal_strips(shape: Partition, size: int) -> tuple[Partition, ...]:
    """The partitions obtained from ``shape`` by adding ``size`` boxes, no two in one column.

    >>> add_horizontal_strips((2, 1), 1)
    ((3, 1), (2, 2), (2, 1, 1))
    """
    above = (shape[0] + size if shape else size, *shape)
    ranges = [range(low, high + 1) for low, high in zip((*shape, 0), above)]
    shapes = [strip(outer) for outer in product(*ranges) if sum(outer) == sum(shape) + size]
    return tuple(sorted(shapes, reverse=True))


@cache
def kostka(shape: Partition, weight: Partition) -> int:
    """The number of semistandard tableaux of the shape and the weight: the dimension of S_shape[weight].

    >>> kostka((2, 1), (1, 1, 1))
    2
    """
    weight = strip(tuple(sorted(weight, reverse=True)))
    if not weight:
        return int(not shape)
    if len(shape) > len(weight):
        return 0
    return sum(kostka(inner, weight[:-1]) for inner in remove_horizontal_strips(shape, weight[-1]))


@cache
def schur_dimension(shape: Partition, d: int) -> int:
    """dim S_shape(C^d) by the hook content formula, in closed form for hooks; 0 if the shape has more than d rows.

    >>> schur_dimension((2, 2, 2), 3), schur_dimension((3, 3), 3)
    (1, 10)
    """
    if shape and shape[1:2] in ((), (1,)):
        arm, leg = shape[0] - 1, len(shape) - 1
        # FLINT's binomials take milliseconds where those of Python take seconds.
        return int(fmpz.bin_uiui(d + arm, arm + leg + 1) * fmpz.bin_uiui(arm + leg, leg))
    columns = column_lengths(shape)
    numerator = prod(d + j - i for i, row in enumerate(shape) for j in range(row))
    hooks = prod(row - j + columns[j] - i - 1 for i, row in enumerate(shape) for j in range(row))
    return numerator // hooks


def module_dimension(shapes: Weight, groups: tuple[int, ...]) -> int:
    """dim of the outer tensor product of Schur modules, one for each group.

    >>> module_dimension(((2, 2, 2), (3,)), (3, 3))
    10
    """
    return prod(schur_dimension(strip(shape), d) for shape, d in zip(shapes, groups))


def orbit_size(weight: Weight) -> int:
    """The number of weights that permutations of the indices make of this one.

    >>> orbit_size(((2, 1, 1), (1, 0)))
    6
    """
    return prod(factorial(len(part)) // prod(factorial(part.count(value)) for value in set(part)) for part in weight)


def dominant(weight: Weight) -> Weight:
    """The dominant weight in the orbit."""
    return tuple(tuple(sorted(part, reverse=True)) for part in weight)


def predicted_dimension(multiplicities: Mapping[Weight, int], weight: Weight) -> int:
    """The dimension of a weight space of ⊕ multiplicity · S_λ ⊗ S_μ ⊗ …, by Kostka numbers.

    >>> predicted_dimension({((2, 0),): 3}, ((1, 1),))
    3
    """
    total = 0
    for shapes, multiplicity in multiplicities.items():
        if all(sum(shape) == sum(part) for shape, part in zip(shapes, weight)):
            total += multiplicity * prod(kostka(strip(s), part) for s, part in zip(shapes, weight))
    return total


def dominant_weights(totals: tuple[int, ...], groups: tuple[int, ...]) -> tuple[Weight, ...]:
    """All dominant weights with the given total in each group, largest first.

    >>> dominant_weights((2, 1), (2, 2))
    (((2, 0), (1, 0)), ((1, 1), (1, 0)))
    """
    choices = [[pad(shape, d) for shape in partitions(total, d)] for total, d in zip(totals, groups)]
    return tuple(product(*choices))


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
