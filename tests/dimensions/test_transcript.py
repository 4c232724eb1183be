"""Transcripts of matrix-free proofs: rechecked by other code with few products, refused when anything is wrong."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import numpy as np
import pytest

from attngeom.dimensions import certificate, dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.dimensions.effective import effective_layers
from attngeom.dimensions.lower_bounds import free_map
from attngeom.exact import BLAS_PRIME, SMALL_PRIME
from attngeom.network import Architecture
from attngeom.rank.krylov import SquareOperator
from attngeom.rank.maps import ClearedMap
from attngeom.verification import Certificate, verify
from attngeom.verification.cleared_operator import ClearedOperator

KINDS = [
    Architecture((4, 3, 5), 2, 3),
    Architecture((3, 3, 3), 2, 4, causal=True),
    Architecture((3, 3, 3), 1, 2, residual=True),
    Architecture((4, 4, 4), 2, 4, heads=2),
    Architecture((3, 3, 3), 2, 3, "softmax"),
    Architecture((4, 4), 2, 3, "softmax", heads=2, value_width=2, causal=True),
    Architecture((5, 6, 5), 3, 4, "sigmoid"),
]

WHOLE = Architecture((1, 2), 1, 2)
"""Only the last map has free entries: nothing is cleared."""


def make(architecture: Architecture, method: Any = "krylov", seed: int = 0) -> dict[str, Any]:
    answer = dimension(architecture, prove=True, method=method, seed=seed)
    assert answer.is_proven
    record: dict[str, Any] = json.loads(json.dumps(certify_dimension(answer).to_json()))
    return record


def verdict(record: dict[str, Any]) -> Any:
    return verify(Certificate(record["claim"], record["witness"], record["provenance"]))


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return make(KINDS[0])


def changed(record: dict[str, Any], **values: Any) -> dict[str, Any]:
    other = copy.deepcopy(record)
    other["witness"]["lower"] |= values
    return other


def altered_bytes(record: dict[str, Any], name: str, place: int) -> dict[str, Any]:
    data = bytearray(base64.b64decode(record["witness"]["lower"][name]))
    data[place] = (data[place] + 1) % SMALL_PRIME
    return changed(record, **{name: base64.b64encode(data).decode()})


@pytest.mark.parametrize("p", [SMALL_PRIME, BLAS_PRIME])
@pytest.mark.parametrize("architecture", [*KINDS, WHOLE], ids=str)
def test_both_operators_are_the_same(architecture: Architecture, p: int) -> None:
    """Other conventions, separate code, the same numbers: B of the search and B of the recheck."""
    linear, rest = free_map(architecture, p, 5, samples=6)
    is_cleared, ours = linear is not rest, SquareOperator(linear, 7)
    assert is_cleared == (architecture != WHOLE)
    pivots = linear.pivots.tolist() if isinstance(linear, ClearedMap) else []
    record = {"prime": p, "seed": 5, "tokens": architecture.tokens, "samples": 6, "pivots": pivots}
    record["free"] = [[block.start, int(block.fix_corner)] for block in rest.network.blocks]
    record["support"] = [[x.d_in, x.d_out, x.attention, x.value_width] for x in effective_layers(architecture)]
    other = ClearedOperator(architecture, record)
    vectors = ours.field.random((3, ours.size), np.random.default_rng(0))
    assert (other.size, other.cleared) == (ours.size, linear.cleared if isinstance(linear, ClearedMap) else 0)
    assert ours.field.is_zero(ours.apply(vectors) - other.apply(vectors))


@pytest.mark.parametrize("method", ["krylov", "schur", "balls"])
def test_every_method_has_a_certificate(method: str) -> None:
    """Where a minor is found in no time it is preferred: its recheck is a proof."""
    found = verdict(make(Architecture((2, 2), 2, 2), method))
    assert found.valid and found.standing == ("probabilistic" if method == "krylov" else "certified")
    assert ("probability at most 251^-16" if method == "krylov" else "minor is nonzero") in found.reason


def test_large_proofs_by_elimination_get_a_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "DIMENSION_PROVEN_ANYWAY", 5)
    assert verdict(make(Architecture((2, 2), 2, 2), "schur")).standing == "probabilistic"
    monkeypatch.setattr(certificate, "RECHECKED_DIMENSION", 5)
    assert verdict(make(Architecture((2, 2), 2, 2), "minor")).standing == "probabilistic"


@pytest.mark.parametrize("architecture", [*KINDS, WHOLE], ids=str)
def test_transcripts_of_all_kinds_are_accepted(architecture: Architecture) -> None:
    assert verdict(make(architecture)).valid


def test_one_wrong_number_anywhere_is_found(record: dict[str, Any]) -> None:
    lower = record["witness"]["lower"]
    for name in ("blocks", "sequence"):
        size = len(base64.b64decode(lower[name]))
        for place in np.random.default_rng(0).choice(size, 12, replace=False).tolist():
            found = verdict(altered_bytes(record, name, place))
            assert found.valid is False, (name, place)


@pytest.mark.parametrize(
    "values",
    [
        {"method": "trust"},
        {"prime": 257},
        {"prime": 250},
        {"prime": 2},
        {"seed": 1},
        {"seed": -1},
        {"tokens": 2},
        {"tokens": 4},
        {"samples": 6},
        {"samples": 10**7},
        {"support": [[4, 3, 2, None]]},
        {"free": []},
        {"free": [[0, 0]] * 6},
        {"free": [[0, 1], [2, 0], [3, 0], [0, 1], [2, 0], [0, 0]]},
        {"pivots": []},
        {"pivots": [0, 0, 1]},
        {"pivots": [0, 1, 10**6]},
        {"left": 0},
        {"left": 10**6},
        {"right": 3},
        {"step": 0},
        {"step": 10**9},
        {"blocks": ""},
        {"blocks": "%%"},
        {"blocks": None},
        {"sequence": "AAAA"},
        {"more": 1},
    ],
    ids=str,
)
def test_forged_transcripts_are_refused(record: dict[str, Any], values: dict[str, Any]) -> None:
    assert not verdict(changed(record, **values)).valid


def test_zero_blocks_prove_nothing(record: dict[str, Any]) -> None:
    """A transcript of the zero vector is consistent; its Hankel matrix has rank zero."""
    zeros = {
        name: base64.b64encode(bytes(len(base64.b64decode(record["witness"]["lower"][name])))).decode()
        for name in ("blocks", "sequence")
    }
    found = verdict(changed(record, **zeros))
    assert found.valid is False and "proves rank" in found.reason


@pytest.mark.parametrize("step", [-1, 1])
def test_another_dimension_is_refused(record: dict[str, Any], step: int) -> None:
    other = copy.deepcopy(record)
    other["claim"]["dimension"] += step
    other["witness"]["upper"] = {"method": "count"}
    assert verdict(other).valid is False


def test_work_is_bounded_before_it_starts(record: dict[str, Any]) -> None:
    other = copy.deepcopy(record)
    other["claim"]["architecture"]["tokens"] = 10**6
    other["witness"]["lower"] |= {"tokens": 10**6, "samples": 1000}
    assert not verdict(other).valid and "budget" in verdict(other).reason
