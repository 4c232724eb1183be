"""Recheck any certificate, one reader for each kind of claim, and write it. Imports none of the code that searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from attngeom.errors import AttnGeomError, FormatError, SizeError
from attngeom.files import replacing
from attngeom.layer.files import collect_terms
from attngeom.limits.recheck import CERTIFICATE_BYTES, WRITERS_FACTOR
from attngeom.results import Proof
from attngeom.streams import iterate_json, read_long_json
from attngeom.verification.budget import budget_times
from attngeom.verification.dimension import DimensionClaim
from attngeom.verification.functions import FunctionsClaim
from attngeom.verification.heads import HeadsClaim
from attngeom.verification.ideals import IdealClaim
from attngeom.verification.laws import LawsClaim
from attngeom.verification.layer import LayerClaim
from attngeom.verification.layers import LayersClaim
from attngeom.verification.learning import LearningClaim
from attngeom.verification.networks import NetworkClaim
from attngeom.verification.reading import show
from attngeom.verification.records import Certificate
from attngeom.verification.uniqueness import UniquenessClaim
from attngeom.verification.verdicts import Verdict


class Checkable(Protocol):
    """A claim that was read: it says itself in words, and why a witness proves it."""

    def check(self, witness: Mapping[str, Any]) -> Proof: ...


READERS: dict[str, Callable[[Any], Checkable]] = {
    "layer": LayerClaim.from_json,
    "layers": LayersClaim.from_json,
    "heads": HeadsClaim.from_json,
    "uniqueness": UniquenessClaim.from_json,
    "functions": FunctionsClaim.from_json,
    "ideal": IdealClaim.from_json,
    "dimension": DimensionClaim.from_json,
    "laws": LawsClaim.from_json,
    "learning-coefficient": LearningClaim.from_json,
    "network": NetworkClaim.from_json,
}


def verify(certificate: Certificate | Mapping[str, Any] | str | Path, budget: float = 1.0) -> Verdict:
    """Whether a certificate (a record, the JSON object of its file, or the path of the file) proves its claim.

    True is a proof, up to the probability of an error that the reason states where the standing is "probabilistic":
    transcripts of matrix-free proofs are checked with fresh random numbers. False means that this certificate proves
    nothing, not that the claim is false; None that the recheck needs more than ``budget`` times the limits of
    :mod:`attngeom.verification.budget`, which are about ten seconds. A file that is missing is an InputError.

    >>> verify({"format": "attngeom/certificate"}).valid
    False
    """
    with budget_times(budget):
        return _verify_any(certificate)


def read_certificate(path: str | Path) -> Certificate:
    """The certificate of a file; FormatError or SizeError if it cannot be read, InputError if it is missing."""
    return Certificate.from_json(read_long_json(path, {"terms": collect_terms}, CERTIFICATE_BYTES), str(path))


def _verify_any(certificate: Certificate | Mapping[str, Any] | str | Path) -> Verdict:
    if not isinstance(certificate, (str, Path)):
        return _verify(certificate)
    try:
        return _verify(read_certificate(certificate))
    except SizeError as error:
        return Verdict.without_proof(None, "unread certificate", str(error))
    except FormatError as error:
        return Verdict.without_proof(False, "unreadable certificate", str(error))


def _verify(content: Any, name: str = "certificate") -> Verdict:
    words = "unreadable certificate"
    try:
        record = content if isinstance(content, Certificate) else Certificate.from_json(content, name)
        record.check_version()
        kind = record.claim.get("kind")
        if not isinstance(kind, str) or kind not in READERS:
            reason = f"kind {show(kind)} found; one of {', '.join(READERS)} is required"
            return Verdict.without_proof(False, "unknown claim", reason)
        words = f"a claim of kind {kind}"
        claim = READERS[kind](record.claim)
        words = str(claim)
        return Verdict.of_proof(words, claim.check(record.witness))
    except SizeError as error:
        return Verdict.without_proof(None, words, str(error))
    except AttnGeomError as error:
        return Verdict.without_proof(False, words, str(error))


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write the certificate under a temporary name, recheck that file, then give it its name: all or nothing.

    A file that exists proves what it says: SizeError, and no file, if the recheck is beyond the budget.
    """
    with replacing(path) as stream:
        for piece in iterate_json(certificate.sealed()):
            stream.write(piece.encode())
        stream.write(b"\n")
        stream.flush()
        verdict = verify(stream.name, WRITERS_FACTOR)
        if verdict.valid is None:
            raise SizeError(f"no certificate was written: {verdict.reason}")
        if not verdict.valid:
            raise ArithmeticError(f"the certificate that was made does not prove its claim: {verdict.reason}")
