"""Certificates are written only after they were rechecked: a file that exists proves what it says."""

from __future__ import annotations

from pathlib import Path

from attngeom.errors import SizeError
from attngeom.files import to_json, write_atomic
from attngeom.verification.budget import WRITERS
from attngeom.verification.dispatch import verify
from attngeom.verification.records import Certificate


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Recheck the certificate as its file will hold it, then write it, all or nothing.

    SizeError, and no file, if the recheck is beyond the budget.
    """
    record = certificate.to_json()
    verdict = verify(record, WRITERS)
    if verdict.valid is None:
        raise SizeError(f"no certificate was written: {verdict.reason}")
    if not verdict.valid:
        raise ArithmeticError(f"the certificate that was made does not prove its claim: {verdict.reason}")
    write_atomic(path, to_json(record) + "\n")
