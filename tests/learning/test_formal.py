"""Lemma 1 and Theorem B of softmax and sigmoid: formal ranks at given weights against the true differential."""

from __future__ import annotations

import copy
import json
from collections import Counter
from fractions import Fraction
from typing import Any

import attngeom_check
import numpy as np
import pytest

from attngeom.exact.domains import QQ, RR
from attngeom.learning import learning_coefficient
from attngeom.learning.blocks import head_blocks
from attngeom.learning.certified import _formally, _in_balls, by_ranks
from attngeom.learning.enlarged import enlarge, plain
from attngeom.learning.products import ProductPoint
from attngeom.network import Architecture, Weights
from attngeom.verification import Certificate, verify
from tests.effort import repeat
from tests.learning.cases import matrix, network

SHAPES: list[dict[str, Any]] = [
    {"widths": (2, 2), "heads": 2, "value_width": 1},
    {"widths": (2, 2, 2), "heads": 2, "value_width": 1, "residual": True},
    {"widths": (2, 2, 2), "heads": 1, "residual": True},
    {"widths": (2, 2, 2), "heads": 2, "value_width": 2},
    {"widths": (1, 1, 1), "heads": 2, "value_width": 1, "residual": True},
    {"widths": (3, 3), "heads": 2, "value_width": 1, "residual": True},
]


def draw(rng: np.random.Generator, kind: str) -> Weights:
    """Equal, opposite, proportional, symmetric, skew and zero A_h; zero values; few tokens, masks, temperatures."""
    shape = dict(SHAPES[rng.integers(len(SHAPES))])
    a = int(rng.integers(1, 3))
    architecture = Architecture(
        shape.pop("widths"),
        a,
        tokens=int(rng.integers(1, 5)),
        kind=kind,
        causal=bool(rng.random() < 0.3),
        temperature=str(rng.choice(["1", "2", "3/5"])),
        **shape,
    )
    tensors: dict[str, Any] = {
        name: matrix(*size, int(rng.integers(min(1, min(size)), min(size) + 1)), rng)
        for name, size in architecture.tensor_shapes()
    }
    names = [
        architecture.tensor_name(i, h, "{}") for i in range(architecture.num_layers) for h in range(architecture.heads)
    ]
    for name in names:
        case, K, Q = rng.random(), name.format("K"), name.format("Q")
        other = names[rng.integers(len(names))]
        if case < 0.15:
            tensors[K], tensors[Q] = tensors[other.format("K")], rng.choice([1, -1, 2]) * tensors[other.format("Q")]
        elif case < 0.25:
            tensors[Q] = tensors[K]
        elif case < 0.32 and tensors[K].shape == (2, 2):
            tensors[K], tensors[Q] = np.eye(2, dtype=int), np.array([[0, 1], [-1, 0]])
        elif case < 0.38:
            tensors[K] = 0 * tensors[K]
        elif case < 0.48:
            tensors[name.format("V")] = 0 * tensors[name.format("V")]
    return Weights.from_tensors(architecture, {name: QQ.convert(x) for name, x in tensors.items()}, QQ)


def true_rank(theta: Any, tokens: int, rows: int) -> tuple[int, float]:
    """The rank of the differential with true exponentials, measured in floats at many inputs; the gap behind it."""
    rng, floats = np.random.default_rng(5), type(theta)(theta.weights.to(RR), theta.forms)
    architecture = theta.weights.architecture
    X = rng.normal(size=(rows, tokens, architecture.widths[0])) * np.resize([1.0, 0.5, 2.0, 0.25], rows)[:, None, None]
    J = floats.jacobian(X, rng.normal(size=(rows, tokens, architecture.widths[-1])))
    norms = np.linalg.norm(J, axis=1)
    values = np.linalg.svd(J[norms > 0] / norms[norms > 0][:, None], compute_uv=False)
    rank = int(np.sum(values > 1e-9 * values[0])) if len(values) else 0
    return rank, float(values[rank - 1] / values[0]) if rank else 1.0


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_formal_ranks_are_true_ranks(kind: str) -> None:
    """Never more than the rank of the true differential, at any draw; the same where all tokens are used."""
    rng, seen = np.random.default_rng([34, len(kind)]), Counter[str]()
    trials = repeat(200)
    for _ in trials:
        weights = draw(rng, kind)
        for theta in (enlarge(weights, head_blocks(weights)), plain(weights)):
            if not theta.num_columns:
                continue
            found = _formally(theta, theta.num_columns + 8, 10**6, 0)
            if found is None:
                seen["dependent"] += 1
                continue
            rank, gap = true_rank(theta, weights.architecture.tokens, 3 * theta.num_columns + 30)
            if gap < 1e-7:
                seen["unclear"] += 1
                continue
            assert found.jacobian <= rank, (weights, found)
            seen["same" if found.jacobian == rank else "less"] += 1
    assert min(seen["same"], seen["dependent"]) >= len(trials) // 4 and seen["unclear"] <= len(trials) // 8, seen
    assert seen["less"] <= len(trials) // 8, seen


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_formal_and_enclosed_ranks_agree(kind: str) -> None:
    """Two ways to Theorem B: formal attention mod p, and true exponentials in balls."""
    agreed = 0
    for seed in range(3):
        weights = network((3, 3, 3), 1, {}, kind=kind, heads=2, value_width=1, residual=True, tokens=2, seed=seed)
        theta = enlarge(weights, head_blocks(weights))
        formal, enclosed = _formally(theta, 50, 10**6, 0), _in_balls(theta, 100, 0, None)
        if formal is not None:
            assert (formal.jacobian, formal.action) == (enclosed.jacobian, enclosed.action)
            agreed += 1
    assert agreed >= 2


def test_two_thousand_weights_of_a_residual_network() -> None:
    """16 wide, two layers of two heads: a Jacobian of 1,608 × 2,048 entries mod p."""
    weights = network((16, 16, 16), 8, {(0, 0): (7, 7, 6)}, heads=2, value_width=8, kind="softmax", residual=True)
    found = learning_coefficient(weights)
    assert (str(found.pair), found.theorem, found.standing) == ("(1519/2, 1)", "B", "proven")
    # By hand: (2·16·8 − 64)/2 for K, Q and for O, W of each head but the deficient one, which is Theorem A0's.
    assert found.value == 7 * Fraction(2 * 16 * 8 - 64, 2) + ProductPoint(16, 8, 16, 7, 7, 6).pair.value


def record_of(weights: Weights) -> dict[str, Any]:
    found = learning_coefficient(weights).certificate
    assert found is not None
    record: dict[str, Any] = json.loads(json.dumps({"claim": dict(found.claim), "witness": dict(found.witness)}))
    return record


def alone(record: dict[str, Any]) -> bool:
    try:
        return bool(attngeom_check.check_learning(record["claim"], record["witness"], 2))
    except attngeom_check.Invalid:
        return False


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_certificates_and_forgeries(kind: str) -> None:
    """Both checkers accept what is true, and refuse another pair, dependent scores, one token, and A_h = 0."""
    options: dict[str, Any] = {"kind": kind, "heads": 2, "value_width": 1, "residual": True, "temperature": "3/2"}
    record = record_of(network((3, 3, 3), 1, {}, ((1, 0),), tokens=4, **options))
    assert record["witness"]["theorem"] == "B"
    assert verify(Certificate(record["claim"], record["witness"], {})).valid and alone(record)
    forged = []
    for part, key, value in (
        ("claim", "lambda", "3"),
        ("claim", "multiplicity", 7),
        ("witness", "tokens", 1),
        ("witness", "samples", 5),
        ("witness", "prime", 3),
    ):
        forged.append(copy.deepcopy(record))
        forged[-1][part][key] = value
    # Heads with equal A_h, a lightning network, and no mask: the same evidence for other functions.
    equal = copy.deepcopy(record)
    for x in "KQ":
        equal["claim"]["tensors"][f"layers.1.heads.1.{x}"] = equal["claim"]["tensors"][f"layers.0.heads.1.{x}"]
        equal["claim"]["tensors"][f"layers.0.heads.0.{x}"] = equal["claim"]["tensors"][f"layers.0.heads.1.{x}"]
    zero = copy.deepcopy(record)
    zero["claim"]["tensors"]["layers.0.heads.0.K"] = [["0", "0", "0"]]
    zero["witness"]["ranks"][0][:3] = [0, 1, 0]
    other = copy.deepcopy(record)
    other["claim"]["architecture"] |= {"kind": "lightning", "temperature": "1"}
    for number, each in enumerate([*forged, equal, zero, other]):
        assert verify(Certificate(each["claim"], each["witness"], {})).valid is False, number
        assert not alone(each), number


def test_dependent_scores_go_to_balls() -> None:
    """Equal A_h in two layers: attention is not free, and no certificate is written."""
    weights = network((2, 2, 2), 1, {}, kind="softmax", heads=1, residual=True, tokens=3)
    tensors = dict(weights.tensors())
    tensors |= {f"layers.1.{x}": 2 * tensors[f"layers.0.{x}"] for x in "K"} | {"layers.1.Q": tensors["layers.0.Q"]}
    other = Weights.from_tensors(weights.architecture, tensors, QQ)
    assert _formally(enlarge(weights, head_blocks(weights)), 40, 1, 0) is not None
    found = by_ranks(other, head_blocks(other), 0, None)
    assert found.theorem == "B" and found.pair is not None
