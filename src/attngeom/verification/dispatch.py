"""Recheck any certificate: dispatch on the kind of its claim. Imports none of the code that searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attngeom.errors import AttnGeomError
from attngeom.verification import layer
from attngeom.verification.records import Certificate, Verdict


def verify(certificate: Certificate | Mapping[str, Any]) -> Verdict:
    """Whether a certificate (a record, or the JSON object of its file) proves its claim.

    >>> verify({"format": "attngeom/certificate"}).valid
    False
    """
    if not isinstance(certificate, Certificate):
        try:
            certificate = Certificate.from_json(certificate)
        except AttnGeomError as error:
            return Verdict(False, "unreadable certificate", str(error))
    kind = certificate.claim.get("kind")
    if kind == "layer":
        return layer.check(certificate.claim, certificate.witness, certificate.provenance)
    if kind == "dimension":
        from attngeom.verification import dimension

        return dimension.check(certificate.claim, certificate.witness, certificate.provenance)
    return Verdict(False, "unknown claim", f"kind {str(kind)[:40]!r} found; layer or dimension is required")
