"""verify accepts what certify proves and rejects every tampered certificate."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attngeom.certification import certify
from attngeom.errors import SizeError
from attngeom.exact import QQ
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.files import coefficients_from_json
from attngeom.verification import Certificate, verify, write_certificate
from attngeom.verification.definitions import DEFINITIONS
from tests.certification.cases import change_table, cubics, from_matrices, from_table, table
from tests.effort import choose

NORM = cubics(3, [{(0, 0, 0): 1, (1, 1, 1): 2, (2, 2, 2): 4, (0, 1, 2): -6}])
EXAMPLES: dict[str, tuple[Coefficients, int | None]] = {
    "rational": (from_matrices(QQ.convert([["1/2", 2], [0, 3]]), QQ.convert([[3, 5], [1, 1]]), 2), 2),
    "two points": (from_matrices(QQ.convert([[1, 2], [3, 6]]), QQ.convert([[3, 5]]), 2), 1),
    "real quadratic": (from_table(table(2, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 0): -2}), 2), None),
    "closure": (from_table(table(2, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 0): 2}), 2), None),
    "rank": (from_matrices(QQ.convert([[1, 2], [0, 3]]), QQ.convert([[3, 5]]), 2), 1),
    "segre": (from_table(table(2, 2, {(0, 0, 0, 0): 1, (0, 0, 1, 1): 1, (1, 0, 1, 0): 1, (1, 0, 0, 1): 1}), 2), None),
    "pencil": (from_table(table(3, 1, {(0, 0, 0, 0): 1, (0, 1, 1, 1): 1, (0, 2, 2, 2): 1}), 2), None),
    "restriction": (from_table(table(3, 1, {(0, 0, 0, 0): 1, (0, 0, 1, 1): 1, (0, 1, 1, 2): 1}), 2), None),
    "resultant": (from_table(table(2, 2, {(0, 0, 0, 0): 1, (1, 1, 1, 0): 1}), 2), None),
    "norm form": (NORM, 2),
    "norm form closure": (NORM, 1),
    "cuspidal": (cubics(3, [{(1, 1, 2): 1, (0, 0, 0): 1}]), None),
    "triangle": (cubics(3, [{(0, 1, 2): 1}, {(0, 0, 1): 1}, {(0, 0, 2): 1}]), None),
    "rank of a form": (cubics(4, [{(0, 0, 3): 1, (1, 1, 3): -1, (2, 2, 3): 1}]), 1),
}
CERTIFICATES = {name: certify(*example).certificate for name, example in EXAMPLES.items()}


def certificate(name: str) -> Certificate:
    found = CERTIFICATES[name]
    assert found is not None
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_certificate_survives_its_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    write_certificate(certificate(name), path)
    assert verify(path).valid


@pytest.mark.parametrize("name", EXAMPLES)
def test_changed_byte_is_rejected(name: str, tmp_path: Path) -> None:
    """Any byte of the content: the digest, the strict reader or the mathematics objects."""
    path = tmp_path / "certificate.json"
    write_certificate(certificate(name), path)
    content = path.read_bytes()
    text = content.decode()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(content), choose(15, 60), replace=False):
        if text[position].isspace():
            continue
        for replacement in (content[position] ^ 1, ord("7") if content[position] != ord("7") else ord("8")):
            path.write_bytes(content[:position] + bytes([replacement]) + content[position + 1 :])
            assert verify(path).valid is False, text[max(0, position - 30) : position + 30]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value


def mutations(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return [1, "x"]
    if isinstance(value, int):
        return [value + 1, value - 1, str(value), -1]
    mutated = [value + "1", "x" + value, ""]
    if value.lstrip("-").replace("/", "").isdigit():
        mutated += ["0" if value != "0" else "1", "-" + value if value != "0" else "2", value + "/1", " " + value]
    return mutated


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_changed_value_is_rejected_by_the_mathematics(name: str) -> None:
    """With a fresh digest, so that only the meaning is wrong."""
    original = certificate(name)
    assert verify(original).valid
    changed = copy.deepcopy({part: original.to_json()[part] for part in ("claim", "witness")})
    # Every value is changed in every run, in a third of the ways, in turn; in all ways in the thorough run.
    share = choose(3, 1)
    for number, (path, value) in enumerate(list(leaves(changed))):
        place, ways = reduce(getitem, path[:-1], changed), mutations(value)
        for mutation in ways[number % min(share, len(ways)) :: share]:
            place[path[-1]] = mutation
            if verify(Certificate(changed["claim"], changed["witness"], {})).valid:
                # A refutation rests on few coefficients, a layer of width a has width a + 1, and −p spans the same line
                # as p: the claim can still be true, and only then it may pass.
                assert path[0] == "claim" or path[:3] == ("witness", "violated", "data"), (path, value, mutation)
                again = certify(coefficients_from_json(changed["claim"]["coefficients"]), changed["claim"]["attention"])
                assert again.verdict == changed["claim"]["verdict"], (path, value, mutation)
        place[path[-1]] = value


def test_refutation_of_a_true_layer_is_impossible() -> None:
    """Every definition is zero at a layer, so no certificate can refute it."""
    layer = from_matrices(QQ.convert([[1, 2, 0], [0, 3, 1], [1, 1, 1]]), QQ.convert([[3, 5, 1], [1, 0, 2]]), 2)
    claim = {**dict(certificate("segre").claim), "coefficients": None}
    honest = certify(layer).certificate
    assert honest is not None
    claim["coefficients"] = honest.claim["coefficients"]
    for name in ("segre", "pencil", "restriction", "resultant"):
        witness = copy.deepcopy(dict(certificate(name).witness))
        for value in ("0", "1", witness["violated"]["value"]):
            witness["violated"]["value"] = value
            assert not verify(Certificate(claim, witness, {})).valid


def test_minor_of_the_wrong_size_is_rejected() -> None:
    layer = from_matrices(QQ.eye(3), QQ.convert([[1, 1, 1]]), 2)
    found = certify(layer, 1).certificate
    assert found is not None
    assert verify(found).valid
    widened = {**found.claim, "attention": 2}
    assert not verify(Certificate(widened, found.witness, {})).valid


def test_realizable_claim_with_imaginary_weights_is_rejected() -> None:
    found = certificate("closure")
    assert not verify(Certificate({**found.claim, "verdict": "realizable"}, found.witness, {})).valid


def test_closure_claim_with_real_weights_is_rejected() -> None:
    found = certificate("real quadratic")
    assert not verify(Certificate({**found.claim, "verdict": "closure_only"}, found.witness, {})).valid


@pytest.mark.parametrize("record", [None, [], {}, {"format": "attngeom/certificate", "version": 1}, {"claim": 3}])
def test_garbage_is_rejected_without_an_exception(record: Any) -> None:
    assert not verify(record).valid


@pytest.mark.parametrize("kind", ["layer", "dimension", "weather", None, 3])
@pytest.mark.parametrize("witness", [{}, {"points": 3}, {"form": []}, {"violated": {"family": "support"}}])
def test_hollow_certificates_are_rejected(kind: Any, witness: dict[str, Any]) -> None:
    assert not verify(Certificate({"kind": kind}, witness, {})).valid
    full = {"kind": kind, "verdict": "not_realizable", "attention": 1, "rank": None, "coefficients": {}}
    assert not verify(Certificate(full, witness, {})).valid


def test_all_families_of_refutations_are_defined() -> None:
    assert {"support", "sequence-copy", "symmetrization", "lie-plane", "shared-quadric"} <= set(DEFINITIONS)


def test_changed_input_invalidates_a_realizable_certificate() -> None:
    rng = np.random.default_rng(0)
    layer = EXAMPLES["rational"][0]
    found = certificate("rational")
    other = certify(change_table(layer, rng)).certificate
    assert other is not None
    swapped = {**found.claim, "coefficients": other.claim["coefficients"]}
    assert not verify(Certificate(swapped, found.witness, {})).valid


def test_a_false_certificate_is_not_written(tmp_path: Path) -> None:
    found = certificate("rational")
    false = Certificate({**found.claim, "rank": 1}, found.witness, {})
    with pytest.raises(ArithmeticError, match="rank 2"):
        write_certificate(false, tmp_path / "certificate.json")
    with pytest.raises(SizeError, match="no certificate was written"):
        huge = {**found.claim, "coefficients": {**found.claim["coefficients"], "t": 10**6}}
        write_certificate(Certificate(huge, found.witness, {}), tmp_path / "certificate.json")
    assert list(tmp_path.iterdir()) == []
