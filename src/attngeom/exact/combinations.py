"""Permutations with signs; the k-th combination or multiset in lexicographic order, and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise, permutations
from math import comb

from attngeom.errors import InputError


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
