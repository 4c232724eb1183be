"""Theorem P: products of matrices at points of any ranks, against two matrices, counts mod 3ⁿ, and both rechecks."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import attngeom_check
import attngeom_check_deep
import numpy as np
import pytest

from attngeom.exact.domains import QQ
from attngeom.learning import learning_coefficient
from attngeom.learning.chains import chain_pair, interval_counts, product_pair, product_ranks
from attngeom.learning.pairs import Pair
from attngeom.learning.products import product_points
from attngeom.network import Architecture, Weights
from attngeom.verification import verify
from attngeom.verification.learning_pairs import product_of_ranks
from attngeom.verification.reading import Unproven
from tests.learning.padic import draw_factors, multiply, predicted_exponent, random_tensor, volume_exponents


def test_two_factors_are_theorem_a0_and_equal_ranks_are_aoyagis() -> None:
    for P, H, N in product(range(1, 5), repeat=3):
        for point in product_points(P, H, N):
            left, right, rank = point.ranks
            ranks = {(0, 0): N, (1, 1): H, (2, 2): P, (0, 1): right, (1, 2): left, (0, 2): rank}
            assert product_pair(ranks) == point.pair
    for widths in product(range(1, 4), repeat=4):
        for rank in range(min(widths) + 1):
            ranks = {(a, b): widths[a] if a == b else rank for a in range(4) for b in range(a, 4)}
            assert product_pair(ranks) == chain_pair(widths, rank)


@pytest.mark.parametrize("seed", range(6))
def test_counts_mod_powers_of_three_fall_as_the_theorem_says(seed: int) -> None:
    """m = 1: exponents within 0.1; m > 1: rare solutions carry the volume, and the exponent may be up to 0.25 more."""
    rng = np.random.default_rng([3, seed])
    decided = 0
    while decided < 4:
        factors = draw_factors(rng, 3 + decided % 2, 3 - decided % 2)
        pair = product_pair(product_ranks([QQ.convert(F) for F in factors], QQ))
        if pair is None:
            continue
        start = np.concatenate([F.ravel() for F in factors])
        exponents = volume_exponents(multiply(factors), start, seed, 3000, 10)
        if not exponents:
            continue
        decided += 1
        difference = np.mean(exponents[-5:]) - predicted_exponent(pair.value, pair.multiplicity, 10, 5)
        assert -0.1 <= difference <= (0.1 if pair.multiplicity == 1 else 0.25), (factors, pair)


@pytest.mark.parametrize("seed", range(8))
def test_three_implementations_agree_where_they_decide_and_where_they_do_not(seed: int) -> None:
    rng = np.random.default_rng([4, seed])
    outcomes = set()
    for _ in range(60):
        factors = draw_factors(rng, int(rng.integers(1, 7)), 4)
        ranks = product_ranks([QQ.convert(F) for F in factors], QQ)
        ours = product_pair(ranks)
        assert sum(interval_counts(ranks).values()) >= max(F.shape[0] for F in factors)
        try:
            second: tuple[Fraction, int] | None = product_of_ranks(ranks, len(factors))
        except Unproven:
            second = None
        try:
            net = SimpleNamespace(layers=factors, heads=1)
            listed = [[[Fraction(int(x)) for x in row] for row in F] for F in factors]
            third = attngeom_check_deep.product_pair(net, [(None, SimpleNamespace(factors=[F])) for F in listed])
        except attngeom_check.Invalid:
            third = None
        expected = None if ours is None else (2 * ours.value, ours.multiplicity)
        assert expected == second == third, factors
        outcomes.add(ours is None)
    assert outcomes == {True, False} or seed


def softmax(rng: np.random.Generator, **options: object) -> Weights:
    """Random deep softmax networks of small ranks, with values in one or two factors."""
    widths = tuple(int(x) for x in rng.integers(1, 4, int(rng.integers(3, 5))))
    architecture = Architecture(widths, 1, kind="softmax", **options)  # type: ignore[arg-type]
    tensors = {name: QQ.convert(random_tensor(rng, *shape)) for name, shape in architecture.tensor_shapes()}
    return Weights.from_tensors(architecture, tensors, QQ)


@pytest.mark.parametrize("seed", range(8))
def test_one_token_and_zero_products_show_the_product_of_the_values_alone(seed: int) -> None:
    """The pair is that of the product, whatever the attention; certificates are accepted by both checkers."""
    rng = np.random.default_rng([5, seed])
    options: list[dict[str, object]] = [
        {"tokens": 1},
        {"tokens": 1, "heads": 2, "value_width": 1},
        {"tokens": 2, "causal": bool(seed % 2)},
        {"tokens": 3, "value_width": 2},
    ]
    for given in options:
        weights = softmax(rng, **given)
        if given["tokens"] != 1 and not QQ.is_zero(weights.virtual().L):
            last = f"layers.{weights.architecture.num_layers - 1}."
            zeros = {n: QQ.zeros(x.shape) for n, x in weights.tensors() if n.startswith(last) and n[-1] in "VO"}
            chosen = dict([sorted(zeros.items())[seed % len(zeros)]])
            weights = Weights.from_tensors(weights.architecture, {**dict(weights.tensors()), **chosen}, QQ)
        found = learning_coefficient(weights)
        moved = {n: -2 * x if n[-1] == "Q" else x for n, x in weights.tensors()}
        other = learning_coefficient(Weights.from_tensors(weights.architecture, moved, QQ))
        assert (found.pair, found.theorem) == (other.pair, other.theorem)
        if found.pair is None:
            assert found.theorem == "none"
            continue
        assert found.theorem == "C3" and found.standing == "theorem" and found.certificate is not None
        record = found.certificate.to_json()
        assert verify(record).valid, verify(record).reason
        wrong = {**record, "claim": {**record["claim"], "lambda": str(found.pair.value + Fraction(1, 4))}}
        assert verify(wrong).valid is False
        attngeom_check.check_learning(record["claim"], record["witness"], record["version"])
        with pytest.raises(attngeom_check.Invalid):
            attngeom_check.check_learning(wrong["claim"], wrong["witness"], wrong["version"])


def test_a_fork_of_intervals_is_not_decided() -> None:
    """Two ends behind one interval: ‖Z Y‖² + ‖Z' N Y‖² is no product of matrices."""
    counts = {(0, 0): 1, (1, 1): 2, (2, 2): 1, (2, 3): 1, (3, 3): 1}
    ranks = {(a, b): sum(n for (c, d), n in counts.items() if c <= a and b <= d) for a in range(4) for b in range(a, 4)}
    assert interval_counts(ranks) == counts
    assert product_pair(ranks) is None
    ranks[2, 3], ranks[2, 2] = 0, 1
    assert product_pair(ranks | {(3, 3): 1}) == Pair(Fraction(1, 2), 2)
