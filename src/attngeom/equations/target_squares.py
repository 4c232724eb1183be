"""A basis of S_22 of the targets: the planes of targets that index the representation-theoretic families."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from attngeom.exact.domains import Array, Domain

Pair = tuple[int, int]
Square = tuple[tuple[Pair, Pair], ...]


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


def used_pairs(m: int, squares: Array | None) -> Array:
    """The places of the 2-subsets of targets that occur in these elements of the basis of S_22 U, by default in all."""
    if squares is None:
        return np.arange(comb(m, 2))
    single, double = _square_places(m)
    first, second = _choose(single, double, squares)
    return np.unique(np.concatenate([first.ravel(), second.ravel()]))


def _choose(single: Array, double: Array, squares: Array) -> tuple[Array, Array]:
    """The chosen elements of the basis among its products and among its sums."""
    number = len(single)
    return single[squares[squares < number]], double[squares[squares >= number] - number]


def on_target_squares(
    product: Callable[[Array, Array], Array], m: int, domain: Domain, squares: Array | None = None
) -> Array:
    """A symmetric bilinear function of 2-subsets of targets on the basis of S_22 U, or on these increasing elements.

    ``product`` takes places of 2-subsets and returns its values along the first axis.
    """
    single, double = _square_places(m)
    if squares is not None:
        single, double = _choose(single, double, squares)
    parts = [product(single[:, 0], single[:, 1])] if len(single) else []
    if len(double):
        parts.append(domain.reduce(product(double[:, 0], double[:, 1]) + product(double[:, 2], double[:, 3])))
    return np.concatenate(parts)
