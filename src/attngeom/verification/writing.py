"""Certificates are written only after they were rechecked: a file that exists proves what it says."""

from __future__ import annotations

from pathlib import Path

from attngeom.errors import SizeError
from attngeom.files import replacing
from attngeom.streams import iterate_json
from attngeom.verification.budget import WRITERS
from attngeom.verification.dispatch import verify
from attngeom.verification.records import Certificate


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write the certificate under a temporary name, recheck that file, then give it its name: all or nothing.

    SizeError, and no file, if the recheck is beyond the budget.
    """
    with replacing(path) as stream:
        for piece in iterate_json(certificate.sealed()):
            stream.write(piece.encode())
        stream.write(b"\n")
        stream.flush()
        verdict = verify(stream.name, WRITERS)
        if verdict.valid is None:
            raise SizeError(f"no certificate was written: {verdict.reason}")
        if not verdict.valid:
            raise ArithmeticError(f"the certificate that was made does not prove its claim: {verdict.reason}")
