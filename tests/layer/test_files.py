"""Coefficient files: round trips, and one clear line for everything that is not such a file."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attngeom
from attngeom.errors import AttnGeomError, DomainError, FormatError, InputError, SizeError
from attngeom.exact import GF, QQ, RR
from attngeom.files import parse_json
from attngeom.layer.coefficients import Coefficients, Term
from attngeom.layer.files import coefficients_from_json, coefficients_to_json, read_coefficients, write_coefficients
from attngeom.network import Architecture, random_weights
from tests.effort import examples


def sample(domain=QQ):
    return attngeom.coefficients(random_weights(Architecture((2, 2), 1, tokens=3), domain, seed=1))


@pytest.mark.parametrize("domain", [QQ, RR], ids=lambda x: x.name)
def test_round_trip_is_exact(tmp_path, domain):
    original = sample(domain)
    extra = (Term((0, 1), ((0, 0), (0, 1), (1, 2)), domain.convert(["1/4"])[0]),)
    original = Coefficients(2, 2, 3, original.single, original.cross, domain, extra)
    write_coefficients(original, tmp_path / "c.json")
    back = read_coefficients(tmp_path / "c.json")
    assert back.domain == domain
    assert domain.equal(back.single, np.array(original.single))
    assert domain.equal(back.cross, np.array(original.cross))
    assert back.outside == original.outside
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


def test_a_single_float_makes_the_array_float():
    record = coefficients_to_json(sample())
    record["terms"][0]["value"] = 0.5
    assert coefficients_from_json(record).domain == RR
    record["terms"][0]["value"] = "0.5"
    assert coefficients_from_json(record).domain == RR
    record["terms"][0]["value"] = "1/2"
    assert coefficients_from_json(record).domain == QQ


def change(path, value):
    record = copy.deepcopy(coefficients_to_json(sample()))
    target = record
    for key in path[:-1]:
        target = target[key]
    if value is None:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return record


BAD = [
    (["format"], "attngeom/weights"),
    (["version"], 2),
    (["version"], True),
    (["d"], 0),
    (["d"], -3),
    (["d"], 2.0),
    (["d"], "2"),
    (["d"], None),
    (["t"], 10**9),
    (["terms"], {}),
    (["terms"], None),
    (["terms", 0], []),
    (["terms", 0, "value"], None),
    (["terms", 0, "value"], True),
    (["terms", 0, "value"], [1]),
    (["terms", 0, "value"], "1/0"),
    (["terms", 0, "value"], "nan"),
    (["terms", 0, "value"], "1e999999999"),
    (["terms", 0, "value"], "9" * 200_000),
    (["terms", 0, "output"], [0]),
    (["terms", 0, "output"], [2, 0]),
    (["terms", 0, "output"], [0, 3]),
    (["terms", 0, "output"], [0, True]),
    (["terms", 0, "monomial"], [[0, 0], [0, 0]]),
    (["terms", 0, "monomial"], [[0, 0], [0, 0], [0, -1]]),
    (["terms", 0, "monomial"], [[0, 0], [0, 0], [2, 0]]),
    (["terms", 0, "power"], 3),
]


@pytest.mark.parametrize("path, value", BAD, ids=lambda x: str(x)[:30])
def test_bad_files_are_refused_in_one_line(path, value):
    with pytest.raises(AttnGeomError) as caught:
        coefficients_from_json(change(path, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_repeated_terms_are_refused():
    record = coefficients_to_json(sample())
    record["terms"].append(record["terms"][0])
    with pytest.raises(FormatError, match="repeats"):
        coefficients_from_json(record)


def test_absurd_sizes_are_refused_before_memory_is_taken():
    with pytest.raises(SizeError):
        coefficients_from_json(change(["d"], 10**6))


def test_coefficients_beyond_the_range_of_floats_are_not_written(tmp_path):
    one = sample(RR)
    found = replace(one, single=np.full(one.single.shape, np.inf))
    with pytest.raises(InputError, match="overflows"):
        write_coefficients(found, tmp_path / "c.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["7" * 400, "-1" + "0" * 308, "1e400", 10**400])
def test_values_beyond_the_range_of_floats_beside_a_float_are_refused(value):
    """One float makes the whole file one of floats, also the numbers that are written exactly."""
    record = coefficients_to_json(sample())
    record["terms"][0]["value"], record["terms"][1]["value"] = 0.5, value
    with pytest.raises(FormatError, match="overflows"):
        coefficients_from_json(record)


def test_a_short_file_of_many_tokens_is_read_at_once():
    """Millions of zeros of one exact number: made one by one they take half a minute."""
    found = coefficients_from_json(change(["t"], 500) | {"terms": []})
    assert found.cross.flat[0] is found.cross.flat[-1] and QQ.is_zero(found.cross[0, 0, 0, 0])


def test_coefficients_mod_p_are_not_written():
    with pytest.raises(DomainError):
        coefficients_to_json(sample(GF(101)))


@examples(150)
@given(st.data())
def test_mutated_files_never_crash(data):
    text = json.dumps(coefficients_to_json(sample()))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 30)))
        text = (
            text[:start]
            + data.draw(st.sampled_from(["", "0", "[", "{", '"', "-1", "null", "1e400", ","]))
            + text[stop:]
        )
    try:
        assert isinstance(coefficients_from_json(parse_json(text)), Coefficients)
    except AttnGeomError as error:
        assert "\n" not in str(error)


def test_files_of_gigabytes_are_not_begun(tmp_path):
    long = attngeom.coefficients(random_weights(Architecture((2, 1), 1, tokens=1000), RR, seed=0))
    with pytest.raises(SizeError, match="at most 5,000,000"):
        write_coefficients(long, tmp_path / "c.json")
    assert not list(tmp_path.iterdir())
