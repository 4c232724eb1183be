"""The finite part of Theorem 6 in docs/theorems/completeness.md: Tor of the modules M(x), and the bound from it.

M(x) = ⊕_{k,t≥0} S^{2k+t+x}(C³) ⊗ S^k(C³) is spanned by monomials v^α u^κ s^t, and 21 variables act by v_i v_j u_k and
v_i s. In each multidegree Tor_i is the reduced homology H_{i-1} of the complex of all sets of variables whose product
divides the monomial. Ranks mod p bound Betti numbers over Q from above, which is what is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product
from math import comb

import numpy as np

from attngeom.equations.ideal.limits import check
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.partitions import orbit_size, pad, partitions

Multidegree = tuple[int, ...]

LAST_DEGREES: dict[int, tuple[int, int, int]] = {
    **{x: (-x, 1 - x, 2 - x) for x in range(-4, 0)},
    0: (0, 2, 3),
    1: (0, 1, 3),
    **dict.fromkeys(range(2, 8), (0, 1, 2)),
}
"""For each x the largest degrees of Tor_0, Tor_1, Tor_2 of M(x)."""

STEPS = ((-1, 2), (-2, 1), (0, 1), (-3, 0), (-1, 0), (1, 0))
"""(e, i): Tor_2 of the hooks is bounded by Tor_i of the layers F^(e) of their resolution."""


@lru_cache(maxsize=1)
def variables() -> Array:
    """The multidegrees in (v, u, s) of the 21 variables, as rows of seven numbers."""
    rows = []
    for (i, j), k in product(combinations_with_replacement(range(3), 2), range(3)):
        row = [0] * 7
        for place in (i, j, 3 + k):
            row[place] += 1
        rows.append(row)
    rows += [[int(place in (i, 6)) for place in range(7)] for i in range(3)]
    return np.array(rows)


@lru_cache(maxsize=4)
def all_faces(size: int) -> tuple[Array, Array, Array]:
    """All sets of so many variables: their members, multidegrees and increasing codes."""
    count = len(variables())
    sets = np.array(list(combinations(range(count), size)), dtype=np.int64).reshape(comb(count, size), size)
    return sets, variables()[sets].sum(axis=1), _encode(sets)


def _encode(sets: Array) -> Array:
    return np.asarray(sets @ len(variables()) ** np.arange(sets.shape[1])[::-1])


def homology(multidegree: Multidegree, i: int) -> int:
    """dim Tor_i mod p in one multidegree: faces of size i minus the ranks of the two boundary maps.

    The star of a vertex is contractible, so the complex has the homology of its faces outside a star, which are few if
    the vertex lies in many faces.

    >>> homology((2, 0, 0, 1, 0, 0, 0), 0), homology((2, 0, 0, 1, 0, 0, 0), 1)
    (0, 0)
    """
    faces, codes = {}, {}
    sizes = range(max(i - 1, 0), i + 2)
    for size in sizes:
        sets, weights, numbers = all_faces(size)
        inside = (weights <= np.array(multidegree)).all(axis=1)
        faces[size], codes[size] = sets[inside], numbers[inside]
    members = np.concatenate([faces[size].ravel() for size in sizes])
    if not members.size:
        return len(faces[i])
    vertex = np.bincount(members).argmax()
    for size in sizes:
        joined = variables()[faces[size]].sum(axis=1) + variables()[vertex]
        outside = (joined > np.array(multidegree)).any(axis=1) & (faces[size] != vertex).all(axis=1)
        faces[size], codes[size] = faces[size][outside], codes[size][outside]
    return len(faces[i]) - sum(_boundary_rank(faces[size], codes[size - 1]) for size in (i, i + 1) if size >= 1)


def _boundary_rank(faces: Array, smaller: Array) -> int:
    """The rank mod p of the boundary map from faces to the faces with the codes ``smaller``; others count as zero."""
    if not len(faces) or not len(smaller):
        return 0
    matrix = np.zeros((len(faces), len(smaller)), dtype=np.int64)
    for place in range(faces.shape[1]):
        codes = _encode(np.delete(faces, place, axis=1))
        columns = np.minimum(np.searchsorted(smaller, codes), len(smaller) - 1)
        rows = np.flatnonzero(smaller[columns] == codes)
        matrix[rows, columns[rows]] = 1 if place % 2 == 0 else WORD_PRIME - 1
    return rank_mod_p(matrix, WORD_PRIME)


def betti_number(x: int, i: int, degree: int) -> int:
    """dim Tor_i(M(x)) in one degree, mod p. Permutations of the three v and of the three u reduce it to few cases.

    >>> betti_number(0, 1, 2), betti_number(0, 1, 3)
    (105, 0)
    """
    total = 0
    for t in range(degree + 1):
        k = degree - t
        if 2 * k + t + x < 0:
            continue
        for alpha, kappa in product(partitions(2 * k + t + x, 3), partitions(k, 3)):
            check()
            shape = (pad(alpha, 3), pad(kappa, 3))
            total += orbit_size(shape) * homology((*shape[0], *shape[1], t), i)
    return total


def pieces(e: int) -> Iterator[tuple[int, int]]:
    """(s, x) of the 64 pieces M(x), moved by s degrees, of F^(e) on C^{3|1} × C^{3|1}: one for each odd monomial.

    The exponents of the odd variables are a (v), b (three w), c (u) and g (three η).
    """
    for a, b, c, g in product(range(2), range(4), range(2), range(4)):
        gamma = e - g + b
        yield c + g + max(0, gamma), 2 * (c + g) - a - b + gamma + max(0, gamma)


def last_degree_of_layer(e: int, i: int) -> int:
    """A bound for the degrees of Tor_i of F^(e) over R: the maximum over its pieces.

    The 15 odd variables of R add i - j degrees to Tor_j over the polynomial ring.

    >>> last_degree_of_layer(-1, 2)
    6
    """
    return max(s + LAST_DEGREES[x][j] + i - j for s, x in pieces(e) for j in range(i + 1))


def last_syzygy_degree() -> int:
    """A bound for the degrees of Tor_2 of the module of hooks, from its resolution by layers."""
    return max(last_degree_of_layer(e, i) for e, i in STEPS)


def check_last_degrees() -> int:
    """Confirm what :func:`last_syzygy_degree` uses: Tor_i(M(x)) vanishes after :data:`LAST_DEGREES`.

    It is computed up to the regularity max(2, -x) of M(x) plus i, and vanishes beyond: the cohomology of O(n) ⊗ O(x) on
    P(O(2)³ ⊕ O(1)) over P² ends below it. Returns the number of triples (x, i, degree) that were computed;
    ArithmeticError if one does not vanish.
    """
    count = 0
    for x, j in sorted({(x, j) for e, i in STEPS for _, x in pieces(e) for j in range(i + 1)}):
        for degree in range(LAST_DEGREES[x][j] + 1, max(2, -x) + j + 1):
            if betti_number(x, j, degree):
                raise ArithmeticError(f"Tor_{j}(M({x})) is not zero mod {WORD_PRIME} in degree {degree}")
            count += 1
    return count
