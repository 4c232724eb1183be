"""The standing of a verdict is the weakest of the standings of the parts of its proof."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from attngeom.results import STANDINGS, Proof, Standing, weakest
from attngeom.verification import verify
from tests.verification.test_verify import CERTIFICATES

INPUTS = Path(__file__).parents[1] / "golden" / "inputs"
FILES = sorted(INPUTS.glob("certificate_*.json"))


def leaves(proof: Proof) -> Iterator[Proof]:
    """The parts that have no parts."""
    if not proof.parts:
        yield proof
    for part in proof.parts:
        yield from leaves(part)


@pytest.mark.parametrize("certificate", [*FILES, *CERTIFICATES.values()], ids=[*(f.stem for f in FILES), *CERTIFICATES])
def test_a_verdict_is_as_strong_as_its_weakest_part(certificate):
    verdict = verify(certificate)
    if not verdict.valid:
        assert verdict.proof is None and verdict.standing == "undecided"
        return
    assert verdict.proof is not None
    parts = [part.standing for part in leaves(verdict.proof)]
    assert verdict.standing == weakest(*parts) == max(parts, key=STANDINGS.index)
    assert verdict.standing in ("certified", "probabilistic")
    assert verdict.reason == verdict.proof.reason and verdict.to_json()["standing"] == verdict.standing


def test_the_error_of_a_transcript_reaches_the_verdict():
    verdict = verify(INPUTS / "certificate_krylov.json")
    assert verdict.valid and verdict.standing == "probabilistic" and not verdict.is_proven
    assert {part.standing for part in leaves(verdict.proof)} == {"certified", "probabilistic"}


PARTS = {
    "certificate_dimension": "attngeom.verification.dimension._check_minor",
    "certificate_krylov": "attngeom.verification.transcripts.check_transcript",
    "certificate_theorem": "attngeom.verification.dimension.check_theorem",
    "certificate_layer": "attngeom.verification.layer.check_weights",
}


@pytest.mark.parametrize("name, part, standing", [(*x, s) for x, s in product(PARTS.items(), STANDINGS[2:])])
def test_a_part_that_is_weaker_makes_the_verdict_weaker(monkeypatch, name, part, standing: Standing):
    """Whatever is written around the words of a part, its standing stays."""
    monkeypatch.setattr(part, lambda *_: Proof(standing, "so it is"))
    verdict = verify(INPUTS / f"{name}.json")
    assert verdict.standing == standing and "so it is" in verdict.reason


@pytest.mark.parametrize("first, second", list(product(STANDINGS, repeat=2)))
def test_no_proof_is_stronger_than_a_part(first: Standing, second: Standing):
    parts = Proof(first, "one"), Proof(second, "two")
    low = max(STANDINGS.index(first), STANDINGS.index(second))
    assert Proof.from_parts("both", *parts).standing == STANDINGS[low]
    for standing in STANDINGS:
        if standing != STANDINGS[low]:
            with pytest.raises(ValueError, match="the weakest of the parts"):
                Proof(standing, "both", parts)
