"""Theorems F1 and Fc against brute force: networks with entries −1, 0, 1, grouped by function and by fiber."""

from collections import defaultdict
from itertools import product
from math import prod

import numpy as np
import pytest
from flint import fmpq

from attngeom.comparison import compare
from attngeom.comparison.lightning_fibers import show, virtual_scales
from attngeom.exact import QQ
from attngeom.network import Architecture, Weights, random_weights, weights_from_matrices
from tests.effort import choose, repeat

ALL = [np.array(entries).reshape(2, 2) for entries in product((-1, 0, 1), repeat=4)]
NOT_SKEW = [M for M in ALL if np.any(M + M.T)]
RANK_ONE = [M for M in NOT_SKEW if round(np.linalg.det(M)) == 0]
STEP = choose(5, 1)


def signature(M: tuple[np.ndarray, ...], L: np.ndarray, causal: bool, rounds: int = 4) -> tuple[int, ...]:
    """The values of the network at fixed integer inputs, exactly; by the definition, token by token."""
    values: list[int] = []
    rng = np.random.default_rng(7)
    for _ in range(rounds):
        Z = rng.integers(-9, 10, size=(2, 2)).astype(object)
        for matrix in M:
            scores = Z.T @ matrix @ Z
            if causal:
                scores[1, 0] = 0  # token 1 does not see token 2
            Z = Z @ scores
        values += (L @ Z).ravel().tolist()
    return tuple(values)


def network(M, L, causal, tokens=2) -> Weights:
    architecture = Architecture((2,) * len(M) + (len(L),), 2, tokens=tokens, causal=causal)
    return weights_from_matrices(
        architecture, list(map(QQ.convert, M)), [QQ.eye(2)] * (len(M) - 1) + [QQ.convert(L)], QQ
    )


def key(weights: Weights):
    """Forms and the product of the scales that [G] Eq 13 keeps: equal exactly for equal functions, say the theorems."""
    seen = show(weights)
    if seen is None:
        return None
    *scales, last = seen.scales
    return seen.forms, last * prod((x**3 ** (len(scales) - i) for i, x in enumerate(scales, 1)), start=fmpq(1))


def check_groups(networks, causal):
    functions, fibers = defaultdict(set), defaultdict(set)
    for M, L in networks:
        shown, value = key(network(M, L, causal)), signature(M, L, causal)
        functions[value].add(shown)
        fibers[shown].add(value)
    assert len(networks) > len(functions) > 20
    assert all(len(group) == 1 for group in (*functions.values(), *fibers.values()))


def test_f1_with_an_output_of_rank_one_is_products_and_exchanges():
    rows = [np.array([row]) for row in product((-1, 0, 1), repeat=2) if any(row)]
    first = RANK_ONE if STEP == 1 else [M for M in RANK_ONE if np.array_equal(M[:, 0], M[:, 1])]
    check_groups([((A, B), L) for A in first for B in NOT_SKEW for L in rows][:: 1 if STEP == 1 else 2], causal=False)


def test_f1_with_an_output_of_rank_two_shows_symmetric_parts():
    outputs = [np.eye(2, dtype=int), -np.eye(2, dtype=int), np.array([[1, 1], [0, 1]])]
    check_groups([((A, B), L) for A in RANK_ONE for B in NOT_SKEW[::STEP] for L in outputs], causal=False)


def test_fc_with_an_output_of_rank_two_is_the_scales():
    outputs = [np.eye(2, dtype=int), -np.eye(2, dtype=int)]
    half = NOT_SKEW[: len(NOT_SKEW) // 2 : STEP]
    signed = [sign * M for M in half for sign in (1, -1)]
    check_groups([((A, B), L) for A in signed for B in signed for L in outputs], causal=True)


EXCHANGED = [
    # M_1, M_2, L; k = (1, 0), k' = v = (1, 2), and the other way round
    ([[1, 3], [0, 0]], [[1, 2], [2, 4]], [[1, 2]]),
    ([[1, 3], [2, 6]], [[1, 0], [0, 0]], [[1, 0]]),
]


@pytest.mark.parametrize("tokens", [2, 3])
def test_the_exchange_is_proven(tokens):
    one, two = (network((A, B), L, False, tokens) for A, B, L in EXCHANGED)
    found = compare(one, two)
    assert found.same_function is True and found.standing == "proven"
    three = network((EXCHANGED[1][0], [[2, 0], [0, 0]]), EXCHANGED[1][2], False, tokens)
    assert compare(one, three).same_function is False


@pytest.mark.parametrize("seed", repeat(40))
def test_skew_parts_after_rank_one_are_free_at_every_size(seed):
    rng = np.random.default_rng(seed)
    d, layers = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    j = int(rng.integers(1, layers))
    M = [rng.integers(-3, 4, size=(d, d)) for _ in range(layers)]
    M[j - 1] = np.outer(*rng.integers(1, 4, size=(2, d)))
    L = rng.integers(1, 4, size=(int(rng.integers(1, 4)), d))
    other = list(M)
    skew = rng.integers(-3, 4, size=(d, d))
    other[-1] = M[-1] + skew - skew.T
    architecture = Architecture((d,) * layers + (len(L),), d, tokens=int(rng.integers(1, 4)))
    values = [QQ.eye(d)] * (layers - 1) + [QQ.convert(L)]
    one, two = (weights_from_matrices(architecture, list(map(QQ.convert, x)), values, QQ) for x in (M, other))
    assert compare(one, two).standing == "proven" and compare(one, two).same_function is True
    other[-1] = M[-1] + np.eye(d, dtype=int)
    three = weights_from_matrices(architecture, list(map(QQ.convert, other)), values, QQ)
    assert virtual_scales(one, three) is None and compare(one, three).same_function is False


def test_a_network_after_rank_one_with_a_skew_layer_is_zero():
    zero = network(([[1, 2], [0, 0]], [[0, 1], [-1, 0]]), [[1, 0], [0, 1]], False)
    assert show(zero) is None and signature(([[1, 2], [0, 0]], [[0, 1], [-1, 0]]), np.eye(2), False) == (0,) * 16
    weights = random_weights(Architecture((2, 2, 2), 2), QQ, 0)
    assert virtual_scales(zero, weights) is None
