"""A basis of S_22 of the targets: the planes of targets that index the representation-theoretic families."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations

import numpy as np

from attngeom.exact.domains import Array, Domain

Pair = tuple[int, int]
Square = tuple[tuple[Pair, Pair], ...]


@lru_cache(maxsize=64)
def target_squares(m: int) -> tuple[Square, ...]:
    """A basis of S_22(C^m) in S²(Λ²C^m): sums of products of 2-subsets b ≤ b' of the targets.

    S_22 is the kernel of b·b' ↦ b ∧ b': products that share an index, and two sums for each 4-subset.

    >>> len(target_squares(4)), target_squares(2)
    (20, ((((0, 1), (0, 1)),),))
    """
    pairs = list(combinations(range(m), 2))
    squares = [((b, c),) for i, b in enumerate(pairs) for c in pairs[i:] if set(b) & set(c)]
    sums = []
    for w, x, y, z in combinations(range(m), 4):
        sums.append((((w, x), (y, z)), ((w, y), (x, z))))
        sums.append((((w, y), (x, z)), ((w, z), (x, y))))
    return (*squares, *sums)


def format_square(square: Square) -> str:
    """An element of S_22 U in words: products of 2-subsets of targets, added up.

    >>> format_square(target_squares(2)[0])
    '(0,1)(0,1)'
    """
    return "+".join(f"{b}{c}".replace(" ", "") for b, c in square)


@lru_cache(maxsize=64)
def _square_places(m: int) -> Array:
    """The basis of S_22 U as places of 2-subsets: two for each product, −1 where there is no second product."""
    place = {pair: k for k, pair in enumerate(combinations(range(m), 2))}
    rows = [[place[b] for factors in square for b in factors] for square in target_squares(m)]
    return np.array([[*row, -1, -1][:4] for row in rows], dtype=np.int64).reshape(-1, 4)


def used_pairs(m: int, squares: Array | None) -> Array:
    """The places of the 2-subsets of targets that occur in these elements of the basis of S_22 U, by default in all."""
    places = np.unique(_square_places(m) if squares is None else _square_places(m)[squares])
    return places[places >= 0]


def on_target_squares(
    product: Callable[[Array, Array], Array], m: int, domain: Domain, squares: Array | None = None
) -> Array:
    """A symmetric bilinear function of 2-subsets of targets on the basis of S_22 U, or on these elements.

    ``product`` takes places of 2-subsets and returns its values along the first axis.
    """
    rows = _square_places(m) if squares is None else _square_places(m)[squares]
    values = product(rows[:, 0], rows[:, 1])
    sums = np.flatnonzero(rows[:, 2] >= 0)
    if len(sums):
        values[sums] = domain.reduce(values[sums] + product(rows[sums, 2], rows[sums, 3]))
    return values
