"""Multisets, combinations and permutations of numbers below d: the k-th in lexicographic order, places, orbits, signs.

Multisets of two and three label the monomials of degree two and three, which split into pairs; they are sorted tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import combinations_with_replacement, pairwise, permutations
from math import comb
from typing import Any

import numpy as np

from attngeom.errors import InputError
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


def combination_at(n: int, r: int, k: int) -> tuple[int, ...]:
    """The k-th r-subset of {0, …, n−1} in lexicographic order, 0 ≤ k < C(n, r).

    >>> combination_at(5, 2, 0), combination_at(5, 2, 9)
    ((0, 1), (3, 4))
    """
    total = comb(n, r) if min(n, r) >= 0 else 0
    if not 0 <= k < total:
        raise InputError(f"index {k} given; 0 ≤ index < {total} = C({n}, {r}) is required")
    chosen = []
    first = 0
    # Of the subsets of {first, …, n−1} of size ``left``, those that contain first come first.
    for left in range(r, 0, -1):
        while k >= (count := comb(n - first - 1, left - 1)):
            k -= count
            first += 1
        chosen.append(first)
        first += 1
    return tuple(chosen)


def combination_rank(n: int, chosen: Sequence[int]) -> int:
    """The index of an increasing r-subset of {0, …, n−1} in lexicographic order: inverse to combination_at.

    >>> combination_rank(5, (3, 4))
    9
    """
    if any(x >= y for x, y in pairwise(chosen)) or (chosen and not 0 <= chosen[0] <= chosen[-1] < n):
        raise InputError(f"subset {tuple(chosen)} given; increasing numbers below {n} are required")
    r = len(chosen)
    # A later subset agrees before some place i and is larger there: the rest is any set of numbers above chosen[i].
    later = sum(comb(n - 1 - x, r - i) for i, x in enumerate(chosen))
    return comb(n, r) - 1 - later


def multiset_at(n: int, r: int, k: int) -> tuple[int, ...]:
    """The k-th r-multiset of {0, …, n−1}, sorted, in lexicographic order, 0 ≤ k < C(n+r−1, r).

    >>> [multiset_at(2, 2, k) for k in range(3)]
    [(0, 0), (0, 1), (1, 1)]
    """
    # x ↦ x_i + i turns weakly into strictly increasing sequences and keeps the order.
    return tuple(x - i for i, x in enumerate(combination_at(max(n + r - 1, 0), r, k)))


def permutation_sign(order: Sequence[int]) -> int:
    """The sign of a permutation of 0 … n−1.

    >>> permutation_sign((1, 0, 2))
    -1
    """
    inversions = sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order)))
    return -1 if inversions % 2 else 1


@cache
def signed_permutations(n: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """All permutations of 0 … n−1 with their signs.

    >>> signed_permutations(2)
    (((0, 1), 1), ((1, 0), -1))
    """
    return tuple((order, permutation_sign(order)) for order in permutations(range(n)))
