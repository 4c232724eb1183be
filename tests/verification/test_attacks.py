"""Whatever verify accepts is true: altered certificates against an oracle that shares nothing with the package."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice

import pytest

from attngeom.certification import certify
from attngeom.exact import QQ
from attngeom.verification import Certificate, verify
from tests.certification.cases import cubics, from_matrices
from tests.effort import choose, thorough
from tests.verification.attacks import is_layer_claim_true, layer_records, seal, tally
from tests.verification.dimension_attacks import dimension_records, is_dimension_claim_true


@pytest.mark.parametrize("seed", [0, *thorough(1, 2)])
def test_no_altered_certificate_is_falsely_accepted(seed: int) -> None:
    counts, false = tally(60, seed)
    assert not false, json.dumps(false[0])
    # The test would see nothing if everything were refused.
    assert counts["tried"] == 75 and counts["accepted"] >= 5


def test_oracle_agrees_with_true_claims() -> None:
    """Else it could call nothing false."""
    verdicts: Counter[str] = Counter()
    for record in islice(layer_records(7), choose(12, 30)):
        assert verify(record).valid and is_layer_claim_true(record["claim"]), record
        verdicts[record["claim"]["verdict"]] += 1
    assert set(verdicts) == {"realizable", "closure_only", "not_realizable"}
    for record in islice(dimension_records(7), choose(5, 12)):
        assert verify(record).valid and is_dimension_claim_true(record["claim"]), record


# Constructions that look like proofs.

ZERO = cubics(3, [{}])
DISJOINT = [[0, 1], [2, 3]]


def claim_about(coefficients, verdict, attention, rank):  # type: ignore[no-untyped-def]
    found = certify(coefficients).certificate
    assert found is not None
    return {**found.claim, "verdict": verdict, "attention": attention, "rank": rank}


@pytest.mark.parametrize(("verdict", "attention", "rank"), [("not_realizable", 1, None), ("closure_only", 2, 2)])
@pytest.mark.parametrize(
    ("modulus", "v", "b"),
    [
        ("0 2 -3 1", "0 1 0", "2 -3 1"),
        ("0 2 -3 1", "2 -3 1", "0 1 0"),
        ("-1 0 0 1", "-1 1 0", "1 1 1"),
        ("0 0 0 1", "0 0 1", "0 1 0"),
        ("0 -1 0 1", "0 1 0", "-1 0 1"),
    ],
)
def test_zero_divisors_prove_nothing(
    verdict: str, attention: int, rank: int | None, modulus: str, v: str, b: str
) -> None:
    """V ≠ 0 and B ≠ 0 with V·B = 0 modulo a reducible cubic: no form of the zero map."""
    zero = ["0", "0", "0"]
    V = [[v.split(), zero, zero]]
    B = [[b.split() if i == j else zero for j in range(3)] for i in range(3)]
    witness = {"form": {"modulus": modulus.split(), "V": V, "B": B}}
    found = verify(Certificate(claim_about(ZERO, verdict, attention, rank), witness, {}))
    assert found.valid is False and "irreducible" in found.reason


@pytest.mark.parametrize(
    "field", ["Q(sqrt(4))", "Q(sqrt(1))", "Q(sqrt(0))", "Q(sqrt(-0))", "Q(sqrt(02))", "Q(sqrt(٢))"]
)
def test_squares_make_no_quadratic_field(field: str) -> None:
    coefficients = from_matrices(QQ.eye(2), QQ.eye(2), 2)
    witness = {"field": field, "points": [{"A": [["1", "0"], ["0", "1"]], "V": [["1", "0"], ["0", "1"]]}]}
    for verdict in ("realizable", "closure_only"):
        assert verify(Certificate(claim_about(coefficients, verdict, None, 2), witness, {})).valid is False


def test_a_complex_multiple_of_real_weights_is_not_closure_only() -> None:
    """A = i k qᵀ, V = −i h vᵀ expand to a real map that real weights compute as well."""
    coefficients = from_matrices(QQ.convert([[1, 0], [2, 0]]), QQ.convert([[3, 1]]), 2)
    witness = {
        "field": "Q(sqrt(-1))",
        "points": [{"A": [["1*sqrt(-1)", "0"], ["2*sqrt(-1)", "0"]], "V": [["-3*sqrt(-1)", "-1*sqrt(-1)"]]}],
    }
    found = verify(Certificate(claim_about(coefficients, "closure_only", 1, 1), witness, {}))
    assert found.valid is False and "real vector" in found.reason


@pytest.mark.parametrize(
    "square", [[[[0, 1], [2, 3]]], [[[0, 1], [2, 3]], [[0, 1], [2, 3]]], [[[0, 1], [2, 3]]] * 3, []]
)
def test_disjoint_products_are_no_resultant(square: list[object]) -> None:
    """Only the coefficients in (λ, μ) of a resultant are the named equation, whatever else vanishes on layers."""
    layer = from_matrices(
        QQ.convert([[1, 2, 0, 1], [0, 3, 1, 0], [1, 1, 1, 0], [0, 0, 1, 2]]), QQ.convert([[3, 5, 1, 2]]), 2
    )
    data = {"slice": {"side": "row", "index": 0}, "line": [[1, 0, 0, 0], [0, 1, 0, 0]], "square": square}
    witness = {"violated": {"family": "sylvester-resultant", "degree": 4, "data": data, "value": "1"}}
    found = verify(Certificate(claim_about(layer, "not_realizable", None, None), witness, {}))
    assert found.valid is False and "resultant" in found.reason


# Claims that say more than was proven.


@pytest.mark.parametrize("place", ["claim", "coefficients", "term", "architecture"])
def test_unknown_keys_in_a_claim_are_refused(place: str) -> None:
    record = next(dimension_records(0)) if place == "architecture" else next(layer_records(2))
    claim = record["claim"]
    targets = {
        "claim": claim,
        "coefficients": claim.get("coefficients"),
        "term": (claim.get("coefficients") or {"terms": [{}]})["terms"][0],
        "architecture": claim.get("architecture"),
    }
    assert verify(seal(record)).valid
    targets[place]["biases"] = True
    found = verify(seal(record))
    assert found.valid is False and ("biases" in found.reason or place == "term")


def test_every_field_of_a_dimension_claim_is_named() -> None:
    for record in islice(dimension_records(3), 5):
        words = verify(record).claim
        for key, value in record["claim"]["architecture"].items():
            assert f"{key} {json.dumps(value)}" in words
        assert words.endswith(f"dimension {record['claim']['dimension']}")


def test_every_field_of_a_layer_claim_is_named() -> None:
    for record in islice(layer_records(3), 5):
        claim, words = record["claim"], verify(record).claim
        sizes = claim["coefficients"]
        assert f"d = {sizes['d']}, d_out = {sizes['d_out']}, t = {sizes['t']}" in words
        assert claim["verdict"] in words
        assert (f"attention width {claim['attention']}" if claim["attention"] else "any attention width") in words
        assert claim["rank"] is None or f"rank A = {claim['rank']}" in words
