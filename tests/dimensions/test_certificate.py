"""Certificates of dimensions: rechecked by independent code, and refused when anything in them is wrong."""

import copy
import json

import numpy as np
import pytest
from hypothesis import assume, given

from attngeom.dimensions import dimension, upper_bound
from attngeom.dimensions.certificate import certify_dimension
from attngeom.errors import InputError
from attngeom.network import Architecture
from attngeom.verification import Certificate, verify
from attngeom.verification.reading import describe_claimed
from attngeom.verification.upper_bound import count_upper_bound
from tests.effort import examples, repeat

from .strategies import architectures


def certificate(architecture):
    record = certify_dimension(dimension(architecture, prove=True)).to_json()
    return json.loads(json.dumps(record))


def verdict(record):
    return verify(Certificate(record["claim"], record["witness"], record["provenance"]))


@examples(300)
@given(architectures())
def test_independent_count_agrees(architecture):
    assert count_upper_bound(architecture) == upper_bound(architecture).value


@examples(40)
@given(architectures(widening=False))
def test_certificates_are_valid_and_claim_nothing_else(architecture):
    assume(upper_bound(architecture).value <= 60)
    answer = dimension(architecture, prove=True)
    assume(answer.is_proven)
    record = certificate(architecture)
    assert verdict(record).valid
    for step in (-1, 1):
        other = copy.deepcopy(record)
        other["claim"]["dimension"] += step
        assert not verdict(other).valid


@pytest.fixture(scope="module", params=["lightning", "softmax", "sigmoid"])
def record(request):
    return certificate(Architecture((3, 2, 3), 2, 3, request.param))


def change(record, *path, value):
    altered = copy.deepcopy(record)
    place = altered
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return altered


def test_a_temperature_is_named_and_changes_nothing_else():
    found = verdict(certificate(Architecture((3, 2), 2, 3, "softmax", temperature="251/3")))
    assert found.valid and 'temperature "251/3"' in found.claim


def test_reasons_name_the_proof(record):
    found = verdict(record)
    assert found.valid and "minor is nonzero" in found.reason and "symmetries" in found.reason
    assert "dimension" in found.claim


@pytest.mark.parametrize(
    "path, value",
    [
        (("claim", "architecture", "widths"), [3, 3, 3]),
        (("claim", "architecture", "attention"), [1, 2]),
        (("claim", "architecture"), None),
        (("claim", "dimension"), True),
        (("claim", "dimension"), 10**9),
        (("witness", "lower"), None),
        (("witness", "lower", "prime"), 8388592),
        (("witness", "lower", "point"), "a b"),
        (("witness", "lower", "tokens"), 4),
        (("witness", "lower", "samples"), 3),
        (("witness", "lower", "samples"), 10**9),
        (("witness", "lower", "support"), [[1, 1, 1, None]]),
        (("witness", "lower", "support"), [[3, 1, 1, None], [1, 3, 1, None]]),
        (("witness", "lower", "support"), [[9, 2, 2, None], [2, 3, 2, None]]),
        (("witness", "lower", "rows"), [0] * 18),
        (("witness", "lower", "columns"), "all"),
        (("witness", "upper", "method"), "trust"),
        (("witness", "upper"), {"method": "symmetries", "prime": 4, "point": "attngeom/0"}),
    ],
)
def test_altered_certificates_are_refused(record, path, value):
    assert not verdict(change(record, *path, value=value)).valid


def test_repeated_or_missing_columns_are_refused(record):
    columns = record["witness"]["lower"]["columns"]
    assert not verdict(change(record, "witness", "lower", "columns", value=[columns[1], *columns[1:]])).valid
    assert not verdict(change(record, "witness", "lower", "columns", value=columns[1:])).valid
    assert not verdict(change(record, "witness", "lower", "columns", value=[*columns[:-1], 10**6])).valid


def test_dependent_columns_are_refused():
    """All entries of Q and K of a layer are dependent, because A = KᵀQ has fewer parameters."""
    record = certificate(Architecture((2, 2), 2, 2))
    altered = change(record, "witness", "lower", "columns", value=[0, 1, 2, 3, 4, 5, 6])
    assert not verdict(altered).valid and "rank" in verdict(altered).reason


def test_certificates_that_would_take_too_long_are_refused(record):
    """A huge width makes one row of the minor expensive: refused before anything is drawn."""
    huge = change(record, "claim", "architecture", value=describe_claimed(Architecture((4, 4), 4, 10**6)))
    huge["claim"]["dimension"], huge["witness"]["upper"] = 31, {"method": "count"}
    huge["witness"]["lower"] |= {"tokens": 10**6, "samples": 40}
    found = verdict(huge)
    assert not found.valid and "recheck" in found.reason


def test_count_witness_is_used_where_symmetries_do_not_suffice():
    record = certificate(Architecture((3, 5, 3), 2))
    assert record["witness"]["upper"] == {"method": "count"} and verdict(record).valid


def test_only_proofs_are_certified():
    with pytest.raises(InputError, match="without a proof"):
        certify_dimension(
            dimension(Architecture((2, 2, 5, 1), (2, 2, 3), 2, heads=3, value_width=3, causal=True), prove=True)
        )


@pytest.mark.parametrize(
    ("widths", "attention", "value_width", "value"),
    [((4, 7, 1), (2, 2), 3, 66), ((4, 9, 1), (3, 4), 4, 76), ((4, 9, 1), (4, 2), 4, 76)],
)
def test_syzygies_modulo_unseen_matrices_close_one_token_and_two_heads(
    widths: tuple[int, ...], attention: tuple[int, ...], value_width: int, value: int
) -> None:
    """Products of two linear forms do not vanish on the outputs of a first layer, so the bounds meet."""
    architecture = Architecture(widths, attention, tokens=1, heads=2, value_width=value_width)
    found = dimension(architecture, method="minor", seed=1)
    assert found.lower_bound == found.upper.value == count_upper_bound(architecture) == value


def test_one_token_and_two_heads_have_no_rank_above_the_bound() -> None:
    rng = np.random.default_rng(61)
    for _ in repeat(40):
        last = [int(x) for x in rng.integers(1, 4, rng.integers(0, 2))]
        widths = [int(rng.integers(1, 5)), int(rng.integers(2, 9)), 1, *last]
        attention = [int(x) for x in rng.integers(1, 5, len(widths) - 1)]
        architecture = Architecture(widths, attention, tokens=1, heads=2, value_width=int(rng.integers(1, 5)))
        found = dimension(architecture, method="minor", seed=1)
        assert found.lower_bound <= found.upper.value == count_upper_bound(architecture), architecture
