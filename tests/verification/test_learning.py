"""Certificates of learning coefficients: honest ones are accepted, forged ones refused, huge ones left undecided."""

from __future__ import annotations

import copy
import random
import time
from typing import Any

import numpy as np
import pytest

from attngeom.errors import InputError
from attngeom.exact import QQ
from attngeom.learning import learning_coefficient
from attngeom.learning.pairs import Pair
from attngeom.network import Architecture, Weights
from attngeom.verification import Certificate, verify
from attngeom.verification.learning import BY_RANKS, THEOREMS
from attngeom.verification.learning_pairs import product_pair
from attngeom.verification.reading import describe_claimed
from tests.effort import repeat
from tests.learning.cases import POINTS, Point, aligned, head, network

SMALL = [point for point in POINTS if point.weights.architecture.num_parameters < 100]
TINY = [point for point in POINTS if point.weights.architecture.num_parameters <= 16]
NAMED = {point.name: point for point in POINTS}


def record_of(weights: Weights) -> dict[str, Any]:
    found = learning_coefficient(weights).certificate
    assert found is not None
    return {"claim": dict(found.claim), "witness": dict(found.witness)}


def judge(record: dict[str, Any]) -> bool | None:
    return verify(Certificate(record["claim"], record["witness"], {})).valid


@pytest.mark.parametrize("point", SMALL, ids=lambda point: point.name)
def test_honest_certificates_are_accepted(point: Point) -> None:
    record = record_of(point.weights)
    verdict = verify(Certificate(record["claim"], record["witness"], {}))
    assert verdict.valid, verdict.reason
    assert (str(point.value) in verdict.claim and "softmax" in verdict.claim) or point.weights.architecture.kind in (
        "lightning",
        "sigmoid",
    )


def test_regular_points_and_bounds_have_certificates() -> None:
    one_token = network((3, 3), 2, {}, tokens=1)
    seen = head(2, 2, 1, (0, 1, 0), 2, tokens=1)
    for weights, theorem in ((one_token, "R"), (seen, "bounds")):
        record = record_of(weights)
        assert record["witness"]["theorem"] == theorem and judge(record)


@pytest.mark.parametrize("name", ["aligned", "two layers, rk Q_1 = 2", "skip, dead layer", "deep softmax", "all zero"])
def test_forged_numbers_are_refused(name: str) -> None:
    record = record_of(NAMED[name].weights)
    for change in ({"lambda": "1/2"}, {"lambda": "5/2"}, {"multiplicity": 3}, {"lambda": "22/8"}, {"lambda": 2}):
        assert judge({**record, "claim": {**record["claim"], **change}}) is False, change
    ranks = copy.deepcopy(record["witness"]["ranks"])
    ranks[0][2] += 1
    assert judge({**record, "witness": {**record["witness"], "ranks": ranks}}) is False
    for part in ("claim", "witness"):
        assert judge({**record, part: {**record[part], "note": "also true for t = 1"}}) is False
        for key in record[part]:
            assert judge({**record, part: {k: x for k, x in record[part].items() if k != key}}) is False


def test_no_theorem_proves_another_value() -> None:
    """Every theorem is tried as the witness of every point: what is accepted gives the true pair."""
    accepted = 0
    for point in TINY:
        record = record_of(point.weights)
        for theorem in (*THEOREMS, *BY_RANKS):
            extra = {"prime": 8388593, "point": "attngeom/0", "samples": 24, "tokens": 2} if theorem in BY_RANKS else {}
            witness = {"theorem": theorem, "ranks": record["witness"]["ranks"], **extra}
            for value, m in ((point.value, point.multiplicity), (point.value + 1, 1)):
                claim = {**record["claim"], "lambda": str(value), "multiplicity": m}
                if judge({"claim": claim, "witness": witness}):
                    assert Pair(value, m) == Pair(point.value, point.multiplicity), (point.name, theorem)
                    accepted += 1
    assert accepted >= len(TINY)


def test_the_aligned_point_has_no_regular_value() -> None:
    """(3, 1) is true beside the aligned point and false at it, whatever theorem is named."""
    record = record_of(aligned(2, 2, 1, (1, 1)))
    for theorem in ("A1.2", "B", "R", "bounds"):
        extra = {"prime": 8388593, "point": "attngeom/0", "samples": 24, "tokens": 2} if theorem in BY_RANKS else {}
        witness = {"theorem": theorem, "ranks": record["witness"]["ranks"], **extra}
        assert judge({"claim": {**record["claim"], "lambda": "3"}, "witness": witness}) is False


def test_altered_weights_and_samples() -> None:
    """Random changes of weights, architecture and witness: what is accepted is what the theorems say of the claim."""
    rng = random.Random(0)
    accepted = 0
    trials = repeat(80)
    for _ in trials:
        record = copy.deepcopy(record_of(rng.choice(TINY).weights))
        claim, witness = record["claim"], record["witness"]
        kind = rng.randrange(5)
        tensor = rng.choice(list(claim["tensors"].values()))
        if kind == 0:
            rng.choice(tensor)[0] = rng.choice(["0", "1", "7/3"])
        elif kind == 1:
            tensor[:] = [["0"] * len(row) for row in tensor]
        elif kind == 2:
            claim["architecture"][rng.choice(["causal", "residual"])] ^= True
        elif kind == 3:
            claim["architecture"]["tokens"] = rng.choice([1, 2, 5])
        elif "prime" in witness:
            witness[rng.choice(["prime", "point", "samples", "tokens"])] = rng.choice([1, 2, 3, 101, "a"])
        try:
            weights = Weights.from_tensors(Architecture.from_json(claim["architecture"]), claim["tensors"], QQ)
        except InputError:
            assert judge(record) is False
            continue
        if judge(record):
            truth = learning_coefficient(weights)
            assert (str(truth.value), truth.multiplicity) == (claim["lambda"], claim["multiplicity"]), record
            accepted += 1
    assert accepted >= len(trials) // 8


BIG = {"kind": "learning-coefficient", "lambda": "1", "multiplicity": 1}


@pytest.mark.parametrize(
    ("architecture", "entry", "witness"),
    [
        ({"widths": [10**6, 10**6], "attention": [1]}, None, {"theorem": "A1.2"}),
        ({"widths": [60, 60], "attention": [60]}, "7" * 400, {"theorem": "A1.2"}),
        (
            {"widths": [30, 30, 30], "attention": [30]},
            "1",
            {"theorem": "B", "prime": 8388593, "point": "attngeom/0", "samples": 10**5, "tokens": 3},
        ),
        (
            {"widths": [2, 2], "attention": [1], "tokens": 10**9},
            "1",
            {"theorem": "B", "prime": 8388593, "point": "attngeom/0", "samples": 10, "tokens": 10**9},
        ),
    ],
)
def test_sizes_that_would_hang_are_undecided(architecture: Any, entry: str | None, witness: dict[str, Any]) -> None:
    tensors = {}
    if entry is not None:
        shapes = Architecture.from_json(architecture).tensor_shapes()
        tensors = {name: [[entry] * columns] * rows for name, (rows, columns) in shapes}
    claim = {**BIG, "architecture": describe_claimed(Architecture.from_json(architecture)), "tensors": tensors}
    begun = time.thread_time()
    if witness["theorem"] == "B":
        heads = len(architecture["widths"]) - 1
        witness = {**witness, "ranks": [[1, 1, 1, None, None, 1]] * heads}
    verdict = verify(Certificate(claim, {"ranks": [], **witness}, {}))
    assert verdict.valid is None, verdict.reason
    assert "budget" in verdict.reason and time.thread_time() - begun < 3


def test_entries_are_read_strictly() -> None:
    record = record_of(head(2, 2, 1, (1, 1, 1), 2))
    for entry in ("2/4", "+1", "1.5", 1, True, None, "1e3"):
        altered = copy.deepcopy(record)
        altered["claim"]["tensors"]["layers.0.V"][0][0] = entry
        assert judge(altered) is False, entry


def test_products_as_in_the_search() -> None:
    from attngeom.learning.products import product_points

    for P, H, N in np.ndindex(4, 4, 4):
        for point in product_points(P, H, N):
            value, m = product_pair(P, H, N, *point.ranks)
            assert point.pair == Pair(value / 2, m)
