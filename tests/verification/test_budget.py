"""Small files that ask for much work: undecided at once, with what would be needed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from attngeom.cli.app import run
from attngeom.limits.recheck import CERTIFICATE_BYTES
from attngeom.verification import Certificate, verify

SMALL = {"widths": [1, 1], "attention": [1], "tokens": 2, "kind": "softmax", "heads": 1, "value_width": None}
LOWER = {"prime": 8388593, "seed": 0, "tokens": 2, "samples": 2, "support": [[1, 1, 1, None]]}
LOWER |= {"rows": [0, 1], "columns": [0, 1]}


def dimension_certificate(architecture: Any, lower: Any, upper: Any, value: int = 2) -> Certificate:
    claim = {"kind": "dimension", "architecture": {**SMALL, **architecture}, "dimension": value}
    return Certificate(claim, {"lower": {**LOWER, **lower}, "upper": upper}, {}, version=1)


def layer_certificate(sizes: Any, witness: Any, verdict: str = "realizable", rank: int | None = 0) -> Certificate:
    coefficients = {"format": "attngeom/coefficients", "version": 1, "d": 1, "d_out": 1, "t": 1, "terms": [], **sizes}
    claim = {"kind": "layer", "verdict": verdict, "attention": 1, "rank": rank, "coefficients": coefficients}
    return Certificate(claim, witness, {}, version=1)


def zeros(rows: int, columns: int) -> list[list[str]]:
    return [["0"] * columns for _ in range(rows)]


COUNT = {"method": "count"}
SYMMETRIES = {"method": "symmetries", "prime": 2147483629, "seed": 0}
POINT = {"field": "Q", "points": [{"A": [["0"]], "V": [["0"]]}]}
HEADS = {"heads": 150, "value_width": 1, "kind": "sigmoid"}
SAMPLES = {"samples": 300, "rows": list(range(300)), "columns": list(range(300)), "support": [[1, 1, 1, 1]]}


def unit(place: int, size: int) -> list[list[str]]:
    row, column = divmod(place, size)
    return [["1" if (i, j) == (row, column) else "0" for j in range(size)] for i in range(size)]


def commutant_certificate(size: int) -> Certificate:
    """One slice that is the identity: its commutant are all pairs (X, X), whose products with all slices take long."""
    terms = [{"output": [i, 0], "monomial": [[0, 1], [0, 1], [i, 0]], "value": "1"} for i in range(size)]
    coefficients = {"format": "attngeom/coefficients", "version": 1, "d": size, "d_out": size, "t": 2, "terms": terms}
    sizes = {"heads": size, "attention": 1, "value": 1, "coefficients": coefficients}
    pairs = [{"X": unit(place, size), "Y": unit(place, size)} for place in range(size**2)]
    places = list(range(size))
    witness = {"rows": places, "columns": places, "basis": pairs, "argument": {"count": 1}}
    return Certificate({"kind": "heads", "verdict": "not_realizable", **sizes}, {"commutant": witness}, {}, version=1)


def laws_certificate(heads: int) -> Certificate:
    point = {"prime": 8388593, "seed": 0, "tokens": 2, "samples": 2 * heads}
    point |= {"gradients": list(range(heads)), "brackets": [[i, i + 1] for i in range(heads)]}
    claim = {"kind": "laws", "architecture": {**SMALL, **HEADS, "heads": heads}, "count": 2 * heads}
    return Certificate(claim, point, {}, version=1)


def learning_certificate(layers: int) -> Certificate:
    architecture = {**SMALL, "widths": [1] * (layers + 1), "kind": "lightning"}
    tensors = {f"layers.{i}.{letter}": [["1"]] for i in range(layers) for letter in "QKV"}
    claim = {"kind": "learning-coefficient", "architecture": architecture, "tensors": tensors}
    ranks = [[1, 1, 1, None, None, 1]] * layers
    witness = {"theorem": "B", "ranks": ranks, "prime": 8388593, "seed": 0, "samples": 3000, "tokens": 2}
    return Certificate({**claim, "lambda": "1", "multiplicity": 1}, witness, {}, version=1)


EXPENSIVE = {
    "heads of a minor": dimension_certificate(HEADS, SAMPLES, COUNT, 300),
    "heads of laws": laws_certificate(100),
    "layers of ranks": learning_certificate(60),
    "scores of a minor": dimension_certificate(
        {"tokens": 10**4, "kind": "lightning"}, {"tokens": 10**4, "rows": [0], "columns": [2]}, COUNT, 1
    ),
    "layers of a count": dimension_certificate({"widths": [1] * 220, "kind": "lightning"}, {}, COUNT, 1),
    "commutant": commutant_certificate(11),
    "form": layer_certificate({"d": 175}, {"form": {"modulus": None, "V": zeros(1, 175), "B": zeros(175, 175)}}),
    "sums mod 2": dimension_certificate({}, {"prime": 2, "samples": 1000}, COUNT),
    "sums mod 7": dimension_certificate({}, {"prime": 7, "samples": 1000}, COUNT),
    "symmetries": dimension_certificate({"attention": [450], "kind": "lightning"}, {}, SYMMETRIES, 1),
    "samples": dimension_certificate({"tokens": 10**6}, {"tokens": 10**5, "samples": 1000}, COUNT),
    "parameters": dimension_certificate({"widths": [10**6, 10**6]}, {}, COUNT),
    "dimension": dimension_certificate({"widths": [100, 100], "attention": [100]}, {}, COUNT, 19999),
    "tokens": layer_certificate({"t": 14000}, POINT),
    "width": layer_certificate({"d": 10**5}, POINT),
    "astronomic": layer_certificate({"d": 10**17, "d_out": 10**17, "t": 10**17}, POINT),
    "cubic field": layer_certificate(
        {"d": 60}, {"form": {"modulus": ["-2", "0", "0", "1"], "V": zeros(1, 60), "B": zeros(60, 60)}}
    ),
}


@pytest.mark.parametrize("name", EXPENSIVE)
def test_expensive_claims_are_undecided_at_once(name: str) -> None:
    started = time.thread_time()
    found = verify(EXPENSIVE[name])
    assert found.valid is None, found.reason
    assert found.standing == "undecided"
    assert any(word in found.reason for word in ("needs", "p ≥", "at most")), found.reason
    assert len(found.reason) <= 200
    assert time.thread_time() - started < 1


def test_the_command_says_undecided_with_exit_code_3(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(EXPENSIVE["symmetries"].to_json()))
    assert run(["verify", str(path), "--json"]) == 3
    out, err = capfd.readouterr()
    assert err == "" and json.loads(out)["valid"] is None


def test_a_file_that_is_too_large_is_undecided(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(CERTIFICATE_BYTES + 1)
    assert verify(path).valid is None


def test_a_token_without_weight_is_refused() -> None:
    """With p copies of the only token all sums vanish mod p: no draw would ever end."""
    found = verify(dimension_certificate({"tokens": 8388593}, {"tokens": 1}, COUNT, 1))
    assert found.valid is False
    lower = {"tokens": 1, "rows": [0], "columns": [0]}
    found = verify(dimension_certificate({"tokens": 8388593}, lower, COUNT, 2))
    assert found.valid is False


@pytest.mark.parametrize("digits", [5000, 50000])
def test_long_numbers_are_read(digits: int) -> None:
    """Numbers of any length that the reader admits are compared exactly."""
    value = "7" * digits
    terms = [{"output": [0, 0], "monomial": [[0, 0]] * 3, "value": value}]
    witness = {"field": "Q", "points": [{"A": [[value]], "V": [["1"]]}]}
    assert verify(layer_certificate({"terms": terms}, witness, rank=1)).valid
    witness["points"][0]["A"] = [[value[:-1] + "8"]]  # type: ignore[index]
    assert verify(layer_certificate({"terms": terms}, witness, rank=1)).valid is False


def test_a_learning_coefficient_of_many_digits_is_refused() -> None:
    """Python does not write integers of more than 4300 digits, and no theorem gives such a number."""
    certificate = learning_certificate(1)
    claim = {**certificate.claim, "lambda": "7" * 5000}
    found = verify(Certificate(claim, certificate.witness, {}, version=1))
    assert found.valid is False and "64 bits" in found.reason


@pytest.mark.parametrize("tokens", [1, 2])
def test_deep_counts_are_quick(tokens: int) -> None:
    """Forms on curves of degree 3^20 are counted, not listed, and parts that do not help are not evaluated."""
    started = time.thread_time()
    widths = [2, *[3] * 60]
    found = verify(dimension_certificate({"widths": widths, "kind": "lightning", "tokens": tokens}, {}, COUNT, 10))
    assert found.valid is False and "upper bound" in found.reason
    assert time.thread_time() - started < 2
