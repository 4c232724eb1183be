"""Multisets of two and three numbers below d: their places, their orbits, and how triples split into pairs.

They label the monomials of degree two and three. Multisets are sorted tuples in lexicographic order.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array

Pair = tuple[int, int]
Triple = tuple[int, int, int]


@cache
def pairs(d: int) -> tuple[Pair, ...]:
    """The C(d+1, 2) multisets S = (k ≤ l) of rows.

    >>> pairs(2)
    ((0, 0), (0, 1), (1, 1))
    """
    return tuple(combinations_with_replacement(range(d), 2))


@cache
def triples(d: int) -> tuple[Triple, ...]:
    """The C(d+2, 3) multisets R = (k ≤ l ≤ m) of rows.

    >>> len(triples(3))
    10
    """
    return tuple(combinations_with_replacement(range(d), 3))


@cache
def pair_index(d: int) -> Array:
    """The symmetric d×d table of places in :func:`pairs`.

    >>> pair_index(2).tolist()
    [[0, 1], [1, 2]]
    """
    table = np.empty((d, d), dtype=np.int64)
    k, l = np.triu_indices(d)
    table[k, l] = table[l, k] = np.arange(len(k))
    return _frozen(table)


@lru_cache(maxsize=32)
def pair_rows(d: int) -> tuple[Array, Array]:
    """Arrays (k, l) of the first and of the second row of all pairs.

    >>> [rows.tolist() for rows in pair_rows(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    k, l = map(_frozen, np.triu_indices(d))
    return k, l


def triple_index(rows: tuple[int, int, int], d: int) -> int:
    """The place of a multiset of three rows, in any order, in :func:`triples`.

    >>> triple_index((1, 0, 1), 2)
    2
    """
    k, l, m = sorted(rows)
    return int(triple_places(k, l, m, d))


def triple_places(k: Any, l: Any, m: Any, d: int) -> Any:
    """The places of multisets k ≤ l ≤ m in :func:`triples`: numbers, or arrays of them.

    >>> triple_places(np.array([0, 1]), np.array([1, 1]), 1, 2).tolist()
    [2, 3]
    """
    width, rest = d - k, d - l
    # Those that begin with a smaller k, then those that go on with a smaller l.
    before = comb(d + 2, 3) - width * (width + 1) * (width + 2) // 6
    return before + (width * (width + 1) - rest * (rest + 1)) // 2 + m - l


@cache
def pair_orbits(d: int) -> Array:
    """Numbers of distinct permutations (1 or 2) of each pair."""
    return _frozen([1 if k == l else 2 for k, l in pairs(d)])


@cache
def triple_orbits(d: int) -> Array:
    """Numbers of distinct permutations (1, 3 or 6) of each triple.

    >>> triple_orbits(2).tolist()
    [1, 3, 3, 1]
    """
    return _frozen([(6, 3, 1)[3 - len(set(rows))] for rows in triples(d)])


@cache
def splits(d: int) -> tuple[Array, Array, Array]:
    """Arrays (r, s, m): every way to write triple r as pair s plus row m, once each.

    The symmetrization relation is c(R) = Σ c(S, m) over these.
    """
    index = pair_index(d)
    rows, parts, ends = [], [], []
    for place, (k, l, m) in enumerate(triples(d)):
        for end, rest in {(m, (k, l)), (l, (k, m)), (k, (l, m))}:
            rows.append(place)
            parts.append(index[rest])
            ends.append(end)
    return _frozen(rows), _frozen(parts), _frozen(ends)


@cache
def split_starts(d: int) -> Array:
    """Where the splits of each triple begin: those of one triple stand together.

    >>> split_starts(2).tolist()
    [0, 1, 3, 5]
    """
    return _frozen(np.flatnonzero(np.diff(splits(d)[0], prepend=-1)))


def _frozen(values: Any) -> Array:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array
