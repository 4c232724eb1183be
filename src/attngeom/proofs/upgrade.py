"""A certificate of version 1 as one of version 2: the same claim, with named points in place of NumPy seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attngeom.errors import InputError
from attngeom.exact.domains import QQ
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.verification import Certificate, read_certificate, verify
from attngeom.verification.reading import describe_claimed


def upgrade(certificate: str | Path, budget: float = 1.0, seed: int = 0) -> Certificate:
    """The certificate of version 2 with the same claim; InputError if the given one does not prove it.

    Witnesses that name no point stay as they are. A point from a NumPy seed is replaced by a named one, where the
    minor, the fields or the ranks are looked for again; the transcript of a matrix-free proof keeps its seed.
    """
    given = read_certificate(certificate)
    verdict = verify(given, budget)
    if not verdict.valid:
        raise InputError(f"{certificate} is not upgraded, it does not prove its claim: {verdict.reason}")
    if given.version > 1:
        return given
    claim = dict(given.claim)
    if "architecture" in claim:
        claim["architecture"] = describe_claimed(Architecture.from_json(claim["architecture"]))
    same = Certificate(claim, given.witness, given.provenance)
    try:
        same.check_version()
    except ValueError:
        again = _find_again(claim, seed)
        if again is None or again.claim != claim:
            raise InputError(f"{certificate} is not upgraded: seed {seed} finds no witness at a named point") from None
        return again
    return same


def _find_again(claim: dict[str, Any], seed: int) -> Certificate | None:
    """A new certificate for what the claim is about; None if nothing is proven."""
    architecture = Architecture.from_json(claim["architecture"])
    if claim["kind"] == "dimension":
        from attngeom.dimensions import dimension
        from attngeom.dimensions.certificate import certify_dimension

        answer = dimension(architecture, prove=True, method="minor", seed=seed)
        return certify_dimension(answer) if answer.is_proven else None
    if claim["kind"] == "laws":
        from attngeom.learning.laws import conserved_quantities

        return conserved_quantities(architecture, prove=True, seed=seed).certificate
    from attngeom.learning import learning_coefficient

    weights = Weights.from_tensors(architecture, claim["tensors"], QQ)
    return learning_coefficient(weights, seed=seed).certificate
