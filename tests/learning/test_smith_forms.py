"""Products of matrices at the origin: exact volumes over the 3-adic integers against (λ, m), without sampling.

Let F be a uniform matrix over Z_p and D = diag(p^e). If the columns of F with e = 0 have rank r mod p, the product F D
has the exponents 0, r times, and beside them 1 + those of the same product of fewer rows, whose other columns with e =
0 keep e = 0 and whose e ≥ 1 are less by one. So the Smith forms of products of uniform matrices are a Markov chain, and
given the form of all factors but the last, of P rows, the volume of {product ≡ 0 mod p^n} is Π p^(−P max(0, n − e_i)).
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import pairwise, product
from math import lcm, prod

import numpy as np
import pytest

from attngeom.learning.chains import chain_pair
from attngeom.learning.products import product_points

PRIME = 3
Form = tuple[int, ...]


@cache
def rank_chance(rows: int, columns: int, rank: int) -> float:
    """The share of matrices over GF(p) that have this rank."""
    p = PRIME
    count = prod((p**rows - p**i) * (p**columns - p**i) / (p**rank - p**i) for i in range(rank))
    return count / p ** (rows * columns)


@cache
def multiplied(rows: int, form: Form, cap: int) -> tuple[tuple[Form, float], ...]:
    """The forms of F D and their chances, F uniform with ``rows`` rows, D = diag(p^e); e ≥ cap counts as cap."""
    if not rows or not form or not cap:
        return ((tuple([0] * min(rows, len(form))), 1.0),)
    units, chances = form.count(0), defaultdict[Form, float](float)
    for rank in range(min(rows, units) + 1):
        chance = rank_chance(rows, units, rank)
        rest = tuple([0] * (units - rank) + [e - 1 for e in form if e])
        for inner, share in multiplied(rows - rank, rest, cap - 1):
            chances[tuple([0] * rank + [e + 1 for e in inner])] += chance * share
    return tuple(chances.items())


def volume(widths: tuple[int, ...], n: int) -> float:
    """The volume of {F_k ⋯ F_1 ≡ 0 mod p^n} in uniform F_i of size widths[i] × widths[i − 1]."""
    forms: dict[Form, float] = {tuple([0] * widths[0]): 1.0}
    for rows in widths[1:-1]:
        after = defaultdict[Form, float](float)
        for form, chance in forms.items():
            for other, share in multiplied(rows, form, n):
                after[other] += chance * share
        forms = after
    return sum(w * PRIME ** (-widths[-1] * float(sum(max(0, n - e) for e in form))) for form, w in forms.items())


def brute_share(widths: tuple[int, ...], n: int, draws: int) -> float:
    """The share of random factors mod p^n whose product is zero."""
    rng, total = np.random.default_rng([*widths, n]), None
    for before, after in pairwise(widths):
        F = rng.integers(0, PRIME**n, size=(draws, after, before))
        total = F if total is None else F @ total % PRIME**n
    assert total is not None
    return float(np.mean(~total.reshape(draws, -1).any(axis=1)))


@pytest.mark.parametrize("widths", [(1, 1, 1), (2, 1, 2), (2, 2, 1), (1, 2, 2, 1), (2, 1, 2, 1), (1, 1, 1, 1, 1)])
def test_volumes_are_shares_of_random_factors(widths: tuple[int, ...]) -> None:
    for n in (1, 2):
        expected = volume(widths, n)
        assert brute_share(widths, n, 40000) == pytest.approx(expected, abs=5 * (expected / 40000) ** 0.5)


CHAINS = [*product(range(1, 4), repeat=3), *product((1, 2), repeat=4), (1, 3, 1, 2), (1, 1, 2, 1, 1), (2, 1, 1, 2, 1)]


@pytest.mark.parametrize("widths", CHAINS)
def test_volumes_grow_as_the_pair_says(widths: tuple[int, ...]) -> None:
    """u(n) = vol p^(2λn), n in steps of a period, is a polynomial of degree m − 1 up to terms that die out.

    The period is a common multiple of the denominators of candidate poles, 1, …, number of factors. A wrong λ makes u
    grow or fall by powers of p, a wrong m leaves differences of order m, or none of order m − 1.
    """
    pair, period = chain_pair(widths, 0), lcm(*range(1, len(widths)))
    places = [12 + k * period for k in range(pair.multiplicity + 1)]
    u = np.array([volume(widths, n) * float(PRIME) ** float(2 * pair.value * n) for n in places])
    assert abs(np.diff(u, pair.multiplicity)[0]) < 1e-4 * u[-1]
    assert np.all(np.diff(u, pair.multiplicity - 1) > 1e-2 * u[-1])


def test_two_factors_at_every_origin_are_those_of_theorem_a0() -> None:
    for P, H, N in product(range(1, 4), repeat=3):
        origin = next(point for point in product_points(P, H, N) if point.ranks == (0, 0, 0))
        assert origin.pair == chain_pair((N, H, P), 0)
