"""Theorem A0 against published values, resolutions by hand and counts of solutions mod p^k."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.learning.pairs import Pair
from attngeom.learning.products import ProductPoint, least_pair, product_points


def aoyagi_watanabe(M: int, N: int, H: int, r: int) -> Pair:
    """Reduced-rank regression M → H → N with a true map of rank r: Aoyagi and Watanabe 2005, Main Theorem."""
    if N + r <= M + H and M + r <= N + H and H + r <= M + N:
        square = -((H + r) ** 2) - M**2 - N**2 + 2 * (H + r) * M + 2 * (H + r) * N + 2 * M * N
        if (M + H + N + r) % 2 == 0:
            return Pair(Fraction(square, 8), 1)
        return Pair(Fraction(square + 1, 8), 2)
    if N + r > M + H:
        return Pair(Fraction(H * M - H * r + N * r, 2), 1)
    if M + r > N + H:
        return Pair(Fraction(H * N - H * r + M * r, 2), 1)
    assert H + r > M + N
    return Pair(Fraction(M * N, 2), 1)


def test_reduced_rank_regression_in_all_1505_cases() -> None:
    cases = [
        (M, N, H, r) for M, N, H in product(range(1, 8), range(1, 8), range(1, 10)) for r in range(min(M, N, H) + 1)
    ]
    assert len(cases) == 1505
    assert [case for case in cases if least_pair(case[0], case[2], case[1], case[3]) != aoyagi_watanabe(*case)] == []


def test_shortcut_of_the_minimum() -> None:
    """All t are tried here; the module looks at the vertex of the parabola only."""
    for P, H, N in product(range(5), repeat=3):
        for point in product_points(P, H, N):
            left, right, rank = point.ranks
            p, h, n = P - left, H - left - right + rank, N - right
            costs = [(h - t) * (n - t) + p * t for t in range(min(h, n) + 1)]
            value = Fraction(P * right + left * n + min(costs), 2)
            assert point.pair == Pair(value, costs.count(min(costs))), point


def test_transposition_and_widths_of_millions() -> None:
    for point in product_points(3, 4, 2):
        assert point.pair == ProductPoint(2, 4, 3, point.right, point.left, point.rank).pair
    assert ProductPoint(10**6, 10**6, 10**6, 0, 0, 0).pair.value == Fraction(3 * 10**12, 8)


def solutions(P: int, H: int, N: int, p: int, depth: int) -> list[int]:
    """#{(B, A) mod p^k, ≡ 0 mod p : BA ≡ 0 mod p^k}, k = 2, …: entries are p u, so uu' ≡ 0 mod p^(k−2)."""
    counts = []
    for k in range(2, depth + 1):
        q, free = p ** (k - 2), p ** (k - 1)
        # Row by row: the solutions u of u A' ≡ 0 mod q are independent for the P rows of B.
        rows = np.array(list(product(range(free), repeat=H)))
        total = 0
        for entries in product(range(free), repeat=H * N):
            A = np.array(entries).reshape(H, N)
            total += int(np.count_nonzero(np.all(rows @ A % q == 0, axis=1))) ** P
        counts.append(total)
    return counts


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1)])
def test_counts_mod_powers_of_two(sizes: tuple[int, int, int]) -> None:
    """N_k grows like k^(m−1) p^(k(n − 2λ)): the ratio N_{k+1} / N_k tends to p^(n − 2λ), from above if m > 1."""
    P, H, N = sizes
    pair = ProductPoint(P, H, N, 0, 0, 0).pair
    variables = H * (P + N)
    first, *_, before, last = solutions(P, H, N, 2, 5)
    expected = 2 ** float(variables - 2 * pair.value)
    assert first == 2**variables
    assert expected * 0.9 < last / before < expected * 1.8
    assert (pair.multiplicity > 1) == (last / before > 1.2 * expected)


@pytest.mark.parametrize("ranks", [(2, 0, 0), (0, 0, 1), (1, 1, -1), (2, 2, 1)])
def test_ranks_that_no_matrices_have(ranks: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="no matrices"):
        ProductPoint(2, 1, 2, *ranks)
