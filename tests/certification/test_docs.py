"""The arrays in the documentation have the verdicts that it states."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attngeom.certification import certify
from attngeom.files import parse_json
from attngeom.layer.files import coefficients_from_json
from attngeom.verification import verify

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "certify.md").read_text()
BLOCKS = re.findall(r"### (\w+)[^\n]*\n.*?```json [^\n]*\n(.*?)```", PAGE, flags=re.DOTALL)


def test_every_verdict_has_an_array() -> None:
    assert {verdict for verdict, _ in BLOCKS} == {"realizable", "closure_only", "not_realizable", "undecided"}


@pytest.mark.parametrize(("verdict", "block"), BLOCKS, ids=[f"{k}-{x[0]}" for k, x in enumerate(BLOCKS)])
def test_array_has_the_stated_verdict(verdict: str, block: str) -> None:
    result = certify(coefficients_from_json(parse_json(block)))
    assert result.verdict == verdict
    assert (result.certificate is None) == (verdict == "undecided")
    if result.certificate is not None:
        assert verify(result.certificate.to_json()).valid


def test_float_cubic_is_decided_exactly() -> None:
    block = next(block for verdict, block in BLOCKS if verdict == "undecided")
    exact = re.sub(r'"value": 1\.0', '"value": "1"', block)
    result = certify(coefficients_from_json(parse_json(exact)))
    assert result.violated is not None and result.violated.family == "lie-plane"
