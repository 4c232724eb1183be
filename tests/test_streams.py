"""Long JSON arrays are read in pieces: the same values and the same errors as when the whole file is parsed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attngeom import certify, streams, verify
from attngeom.errors import AttnGeomError
from attngeom.exact import QQ
from attngeom.files import read_json
from attngeom.layer.files import LayerTerms, collect_terms, read_coefficients, write_coefficients
from attngeom.streams import as_plain, iterate_json, read_long_json
from attngeom.verification import write_certificate
from attngeom.verification.records import Certificate
from tests.certification.cases import from_matrices

TERM = '{"output": [0, 1], "monomial": [[0, 1], [1, 1], [1, 0]], "value": "-3/7"}'
TEXTS = [
    "",
    "{",
    "7",
    " [1, 2] ",
    "{}",
    '{"terms": []}',
    '{"terms": [ ] , "a": {"b": [1, {"c": null}], "terms": {"terms": [{}]}}}',
    f'{{"d": 2, "terms": [{TERM}], "t": 12345678901234567890}}',
    f'{{"terms": [{TERM},\n {TERM} , {TERM}], "terms2": [{TERM}]}}\n',
    f'{{"claim": {{"coefficients": {{"terms": [{TERM}, {TERM}]}}, "rank": 1}}, "é": "\\u00e9}}"}}',
    '{"terms": [{"a": "}"}, 1, "}, {", [{"b": {}}], {"c": 1}]}',
    '{"terms": [1, 2], "x": 1.5e3}',
    '{"terms": [{}, {}], "terms": []}',
    '{"terms": [{"a": 1, "a": 2}]}',
    '{"terms": [{}, ]}',
    '{"terms": [{} {}]}',
    '{"terms": [{}}',
    '{"terms": [{}]',
    '{"terms": [{}]} x',
    '{"terms": [{"a": NaN}]}',
    '{"terms": [1e400]}',
    '{"terms": [{"a": "\\ud800"}]}',
    '{"terms": [{"a": "\\ud83d\\ude00"}]}',
    '{"terms": [' + "9" * 5000 + "]}",
    '{"terms": [' + "[" * 100_000,
    '{"a":' * 50_000,
    "\ufeff{}",
    "{1: 2}",
]


def outcome(read: Any) -> Any:
    try:
        return read()
    except AttnGeomError as error:
        return type(error), str(error)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text)[:30])
def test_pieces_give_what_the_whole_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    expected = outcome(lambda: read_json(path))
    joined = {"terms": lambda batches: [item for batch in batches for item in batch]}
    for chunk in (1, 3, 50, 2**19):
        monkeypatch.setattr(streams, "CHARACTERS_READ", chunk)
        assert outcome(lambda: read_long_json(path, joined)) == expected, chunk
        assert as_plain(outcome(lambda: read_long_json(path, {"terms": collect_terms}))) == expected, chunk


def layer(d: int) -> Any:
    rng = np.random.default_rng(d)
    return from_matrices(QQ.random((d, d), rng), QQ.random((d, d), rng), 2)


def test_certificates_hold_tables_of_terms_and_have_the_digest_of_plain_lists(tmp_path: Path) -> None:
    made = certify(layer(2)).certificate
    assert made is not None
    terms = made.claim["coefficients"]["terms"]
    assert isinstance(terms, LayerTerms) and list(terms) == terms[:] and len(terms) == len(terms[:])
    assert terms[3] == terms[:][3] and terms[-1] == terms[:][-1]
    plain = made.to_json()
    assert type(plain["claim"]["coefficients"]["terms"]) is list
    assert Certificate(plain["claim"], plain["witness"], made.provenance).digest == made.digest
    write_certificate(made, tmp_path / "c.json")
    assert (tmp_path / "c.json").read_text() == json.dumps(plain) + "\n" == "".join(iterate_json(plain)) + "\n"
    assert verify(plain).valid and verify(tmp_path / "c.json").valid


def test_a_claim_that_fails_leaves_no_file(tmp_path: Path) -> None:
    made = certify(layer(2)).certificate
    assert made is not None
    with pytest.raises(ArithmeticError, match="does not prove"):
        write_certificate(Certificate({**made.claim, "rank": 1}, made.witness, {}), tmp_path / "c.json")
    assert not list(tmp_path.iterdir())


def test_usual_files_are_never_held_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(*_: Any) -> Any:
        raise AssertionError("the whole text was parsed")

    monkeypatch.setattr(streams, "parse_json", whole)
    monkeypatch.setattr(streams, "CHARACTERS_READ", 100)
    write_coefficients(layer(3), tmp_path / "a.json")
    made = certify(read_coefficients(tmp_path / "a.json")).certificate
    assert made is not None and QQ.equal(read_coefficients(tmp_path / "a.json").cross, layer(3).cross)
    write_certificate(made, tmp_path / "c.json")
    assert verify(tmp_path / "c.json").valid


def test_reading_tells_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "CHARACTERS_READ", 2**10)
    (tmp_path / "long.json").write_text(json.dumps({"terms": [{"x": "1" * 100} for _ in range(30_000)]}))
    seen = []
    collectors = {"terms": lambda items: sum(map(len, items))}
    read_long_json(tmp_path / "long.json", collectors, report=lambda *found: seen.append(found))
    assert seen[0] == (0, 3) and seen[-1] == (3, 3) and (1, 3) in seen and seen == sorted(seen)
