"""Family 13, Plücker quartics: quadrics on the projected Segre-Veronese variety of the bivectors v²·ω.

The planes of targets that index it and other families are a basis of S_22 of the targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations, product
from math import comb

import numpy as np

from attngeom.equations.family import TableFamily
from attngeom.equations.variety import Variety
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_index, signed_permutations
from attngeom.exact.partitions import schur_dimension, tableau_3311

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


Tableau = tuple[tuple[int, ...], tuple[int, int], tuple[int, int]]
QuadraticForm = dict[tuple[Pair, Pair], int]
"""A symmetric matrix {(minor, minor): integer}; a minor is a pair of places of pairs S < S'."""


class PlueckerQuartics(TableFamily):
    """Quadratic forms in the 2×2 minors [S, S']_b of the flattening that vanish on every bivector v²·ω, ω ∈ Λ²V.

    For two targets the slice quadrics span q_m ∧ q_n = v²·(a_m ∧ a_n) in Λ²(S²V). For a tableau with columns c (4
    entries), e and f (2 each), alternate [c_0 e_0, c_1 f_0] · [c_2 e_1, c_3 f_1] over the entries of each column, as a
    symmetric function of two 2-subsets of targets. Semistandard tableaux of shape (3, 3, 1, 1) with a basis of S_22 U
    give a basis of S_3311 V ⊗ S_22 U, which vanishes there (docs/reference/families.md).

    >>> from attngeom.equations.variety import Variety
    >>> PlueckerQuartics(Variety(4, 4)).count
    400
    """

    number = 13
    title = "pluecker-quartic"
    source = "quadrics on the bivectors v²·ω; not in [I]"
    degree = 4

    @classmethod
    def applies(cls, variety: Variety) -> bool:
        return super().applies(variety) and variety.rank_bound >= 2

    @property
    def row_sizes(self) -> tuple[int, ...]:
        return schur_dimension((3, 3, 1, 1), self.variety.d), schur_dimension((2, 2), self.variety.num_targets)

    def row_label(self, *index: int) -> str:
        number, square = index
        c, e, f = tableau_3311(self.variety.d, number)
        return f"c={c} e={e} f={f} targets={format_square(target_squares(self.variety.num_targets)[square])}"

    def table(self, y: Array, domain: Domain, rows: Array, columns: Array) -> Array:
        forms = [quadratic_form(tableau_3311(self.variety.d, int(k)), self.variety.d) for k in rows]
        return form_values(y, forms, domain, columns)


@lru_cache(maxsize=100_000)
def quadratic_form(tableau: Tableau, d: int) -> QuadraticForm:
    """The alternating sum of a tableau; exchanging the two minors is an even permutation, so it is symmetric.

    >>> len(quadratic_form(((0, 1, 2, 3), (0, 1), (0, 1)), 4))
    28
    """
    index = pair_index(d)
    column, *twos = tableau
    form: Counter[tuple[Pair, Pair]] = Counter()
    for (order, sign), (p, q) in product(signed_permutations(4), product((1, -1), repeat=2)):
        c = [column[k] for k in order]
        e, f = twos[0][::p], twos[1][::q]
        left, left_sign = _oriented(int(index[c[0], e[0]]), int(index[c[1], f[0]]))
        right, right_sign = _oriented(int(index[c[2], e[1]]), int(index[c[3], f[1]]))
        form[left, right] += sign * p * q * left_sign * right_sign
    return {key: value for key, value in form.items() if value}


def _oriented(s: int, t: int) -> tuple[tuple[int, int], int]:
    """The sorted pair of rows of a 2×2 minor, and the sign of sorting (0 if they agree)."""
    if s == t:
        return (s, t), 0
    return ((s, t), 1) if s < t else ((t, s), -1)


def form_values(y: Array, forms: list[QuadraticForm], domain: Domain, squares: Array | None = None) -> Array:
    """The values of symmetric quadratic forms in the 2×2 minors at y (…, D, m), on the basis of S_22 U or part of it.

    A form with matrix C in the minors P_b gives the symmetric matrix (P_b C P_cᵀ) over pairs b, c of targets; the
    result has shape (…, forms, squares).
    """
    m = y.shape[-1]
    used = used_pairs(m, squares)
    first, second = np.array(list(combinations(range(m), 2)), dtype=np.int64).reshape(-1, 2)[used].T
    column = np.zeros(comb(m, 2), dtype=np.int64)
    column[used] = np.arange(len(used))
    needed = sorted({minor for form in forms for minor, _ in form})
    place = {minor: k for k, minor in enumerate(needed)}
    s, t = np.array(needed).T
    upper, lower = y[..., s, :], y[..., t, :]
    straight = domain.times(upper[..., first], lower[..., second])
    minors = domain.reduce(straight - domain.times(upper[..., second], lower[..., first]))
    values = []
    for form in forms:
        own = sorted({minor for minor, _ in form})
        P = minors[..., [place[minor] for minor in own], :]
        C = np.array([[form.get((S, T), 0) for T in own] for S in own])
        gram = domain.matmul(np.swapaxes(P, -1, -2), domain.matmul(domain.convert(C), P))

        def product(u: Array, w: Array, gram: Array = gram) -> Array:
            return np.moveaxis(gram[..., column[u], column[w]], -1, 0)

        values.append(np.moveaxis(on_target_squares(product, m, domain, squares), 0, -1))
    return np.stack(values, axis=-2)
