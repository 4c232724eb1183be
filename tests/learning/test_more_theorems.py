"""Theorems H3, C2, C3 and E0 against ranks of Jacobians and products, at points of all ranks."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.numbers import BLAS_PRIME
from attngeom.learning import learning_coefficient
from attngeom.learning.blocks import head_blocks
from attngeom.learning.certified import by_ranks
from attngeom.learning.chains import chain_pair
from attngeom.learning.lightning_heads import _is_direct, _spans, lightning_heads
from attngeom.learning.products import ProductPoint
from attngeom.network import Architecture, Weights, random_weights
from attngeom.verification import learning_pairs as recheck
from attngeom.verification import verify


def draw(rng: np.random.Generator, rows: int, columns: int, full: float = 0.6) -> Array:
    """A small matrix, of full rank with this probability, else of any rank from one on, now and then zero."""
    most = min(rows, columns)
    rank = most if rng.random() < full else int(rng.integers(int(rng.random() < 0.8), most + 1))
    return QQ.convert(rng.integers(-3, 4, (rows, rank)) @ rng.integers(-3, 4, (rank, columns)))


def layer(rng: np.random.Generator) -> Weights:
    """Lightning heads that share matrices with others and with themselves, aligned ones and zero ones among them."""
    H, v, a = (int(rng.integers(low, high)) for low, high in ((2, 4), (1, 3), (1, 3)))
    d, rows = (max(1, H * x + int(rng.integers(-1, 2))) for x in (a, v))
    causal = bool(rng.integers(2))
    architecture = Architecture((d, rows), a, tokens=2, heads=H, value_width=v, causal=causal)
    tensors: dict[str, Array] = {}
    shapes = architecture.layer(0).tensor_shapes
    for h, (name, (m, n)) in product(range(H), shapes.items()):
        M = draw(rng, m, n)
        if h and rng.random() < 0.2:
            M = tensors[f"layers.0.heads.{h - 1}.{name}"]
        if name == "V" and a == v and rng.random() < 0.25:
            M = tensors[f"layers.0.heads.{int(rng.integers(h + 1))}.K"]
        tensors[f"layers.0.heads.{h}.{name}"] = M
    return Weights.from_tensors(architecture, tensors, QQ)


@pytest.mark.parametrize("seed", range(24))
def test_heads_by_ranks_of_pairs_are_those_of_the_jacobian(seed: int) -> None:
    """Theorem H3 decides exactly where Theorem B does, if outputs and queries are independent; with the same pair."""
    rng = np.random.default_rng([77, seed])
    for _ in range(4):
        weights = layer(rng)
        (blocks,) = head_blocks(weights)
        ours, ranks = lightning_heads(weights, blocks), by_ranks(weights, (blocks,), seed, None)
        is_dead = any(head.attention.is_zero and head.value.is_zero for head in blocks)
        if ours is not None:
            assert ranks.theorem == "B" and ours.pair == ranks.pair
            found = learning_coefficient(weights)
            assert found.theorem == "H3" and found.certificate is not None
            verdict = verify(found.certificate.to_json())
            assert verdict.valid, verdict.reason
        elif not is_dead and _is_direct(_spans(weights, blocks, GF(BLAS_PRIME)), BLAS_PRIME):
            assert ranks.theorem != "B"


def test_heads_of_the_size_of_a_small_transformer() -> None:
    """d = 96, six heads of width 16: 36,864 weights, a Jacobian of which would have a thousand million entries."""
    weights = random_weights(Architecture((96, 96), 16, tokens=3, heads=6), QQ, seed=1)
    found = learning_coefficient(weights)
    d, H = 96, 6
    assert found.theorem == "H3" and found.value == Fraction(4 * d * d - 2 * d * d // H - H, 2)


def test_chains_agree_with_two_matrices_and_with_bottlenecks_of_width_one() -> None:
    for P, H, N in product(range(1, 5), repeat=3):
        for rank in range(min(P, H, N) + 1):
            assert chain_pair((N, H, P), rank) == ProductPoint(P, H, N, rank, rank, rank).pair
    for widths in product(range(1, 5), repeat=5):
        whole = chain_pair(widths, 0)
        for i in (i for i in (1, 2, 3) if widths[i] == 1):
            assert whole == chain_pair(widths[: i + 1], 0) * chain_pair(widths[i:], 0)
        for rank in range(min(widths) + 1):
            ours = chain_pair(widths, rank)
            assert recheck.chain_pair(widths, rank) == (2 * ours.value, ours.multiplicity)


def softmax(widths: tuple[int, ...], tensors: dict[str, Array], tokens: int = 3) -> Weights:
    architecture = Architecture(widths, 2, tokens=tokens, kind="softmax")
    return Weights.from_tensors(architecture, tensors, QQ)


def deep(rng: np.random.Generator, widths: tuple[int, ...], ranks: tuple[int, ...], blind: bool) -> Weights:
    """V_i of the given ranks; a blind first layer has a zero key, or two tokens and a skew A."""
    tensors: dict[str, Array] = {}
    for i, (before, after, rank) in enumerate(zip(widths, widths[1:], ranks)):
        V = rng.integers(1, 6, (after, rank)) @ rng.integers(1, 6, (rank, before))
        tensors[f"layers.{i}.V"] = QQ.convert(V)
        tensors |= {f"layers.{i}.{x}": draw(rng, 2, before) for x in "QK"}
    if blind:
        tensors["layers.0.K"] = QQ.zeros((2, widths[0]))
    return softmax(widths, tensors)


def certified(weights: Weights, theorem: str) -> tuple[Fraction | None, int | None]:
    found = learning_coefficient(weights)
    assert found.theorem == theorem and found.standing == "theorem" and found.certificate is not None
    verdict = verify(found.certificate.to_json())
    assert verdict.valid, verdict.reason
    return found.value, found.multiplicity


@pytest.mark.parametrize("seed", range(6))
def test_a_blind_first_layer_leaves_a_product_of_values(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    widths = tuple(int(x) for x in rng.integers(1, 4, 4 if seed % 2 else 3))
    most = min(widths)
    rank = int(rng.integers(1, most + 1))
    weights = deep(rng, widths, (rank,) * (len(widths) - 1), blind=True)
    (first,), *_ = head_blocks(weights)
    L = weights.virtual().L
    if QQ.rank(L) < rank:
        return
    expected = first.attention.pair + chain_pair(widths, rank)
    found = learning_coefficient(weights)
    assert (found.value, found.multiplicity) == (expected.value, expected.multiplicity)
    if found.theorem != "C":
        assert found.theorem in ("C2", "C3")
        certified(weights, found.theorem)


def test_values_of_the_last_layer_may_have_any_rank() -> None:
    """C2 agrees with Theorem B by balls where that decides, and lies between its bounds elsewhere (ρ < δ)."""
    outcomes = set()
    for seed in range(8, 14):
        weights = deep(np.random.default_rng(seed), (3, 2, 2), (2, 1), blind=False)
        found = learning_coefficient(weights)
        if found.theorem != "C2":
            continue
        value, m = certified(weights, "C2")
        ranks = by_ranks(weights, head_blocks(weights), 0, None)
        outcomes.add(ranks.theorem)
        if ranks.pair is not None:
            assert (value, m) == (ranks.pair.value, ranks.pair.multiplicity)
        else:
            assert value is not None and ranks.lower is not None and ranks.upper is not None
            assert ranks.lower <= value <= ranks.upper
    assert {"B", "none"} <= outcomes


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize("tokens", [2, 3])
def test_residual_networks_without_values(kind: str, tokens: int) -> None:
    """Against Theorem B by balls at a small size; equal A_h, or opposite ones where signs count, are left out."""
    architecture = Architecture((2, 2, 2), 1, tokens=tokens, kind=kind, heads=2, value_width=1, residual=True)
    weights = random_weights(architecture, QQ, seed=4)
    tensors = {name: array if not name.endswith(".O") else QQ.zeros(array.shape) for name, array in weights.tensors()}
    silent = Weights.from_tensors(architecture, tensors, QQ)
    value, m = certified(silent, "E0")
    blocks = head_blocks(silent)
    assert value == sum((head.value.pair.value for heads in blocks for head in heads), Fraction(0)) and m is not None
    ranks = by_ranks(silent, blocks, 0, None)
    assert ranks.theorem != "B" or (ranks.pair is not None and ranks.pair.value == value)
    for name in "QK":
        tensors[f"layers.1.heads.0.{name}"] = tensors[f"layers.0.heads.1.{name}"]
    assert learning_coefficient(Weights.from_tensors(architecture, tensors, QQ)).theorem != "E0"
    tensors["layers.1.heads.0.Q"] = -tensors["layers.0.heads.1.Q"]
    opposite = learning_coefficient(Weights.from_tensors(architecture, tensors, QQ)).theorem
    assert (opposite == "E0") == (kind == "softmax" and tokens == 3)


def test_residual_networks_without_values_of_any_size() -> None:
    """48 wide, three layers of four heads: balls would need far more than they are given."""
    architecture = Architecture((48, 48, 48, 48), 12, tokens=3, kind="softmax", heads=4, residual=True)
    weights = random_weights(architecture, QQ, seed=4)
    tensors = {name: array if not name.endswith(".O") else QQ.zeros(array.shape) for name, array in weights.tensors()}
    found = learning_coefficient(Weights.from_tensors(architecture, tensors, QQ))
    assert found.theorem == "E0" and found.value == Fraction(12 * 48 * 12, 2)


def test_a_wrong_theorem_is_not_accepted() -> None:
    weights = random_weights(Architecture((4, 4), 2, heads=2), QQ, seed=0)
    found = learning_coefficient(weights)
    assert found.certificate is not None
    record = found.certificate
    from dataclasses import replace

    for theorem in ("C2", "C3", "E0", "D"):
        forged = replace(record, witness={**record.witness, "theorem": theorem})
        assert verify(forged.to_json()).valid is False
    tensors = dict(record.claim["tensors"])
    for name in "KV":
        tensors[f"layers.0.heads.1.{name}"] = tensors[f"layers.0.heads.0.{name}"]
    mixed = replace(record, claim={**record.claim, "tensors": tensors})
    assert verify(mixed.to_json()).valid is False
