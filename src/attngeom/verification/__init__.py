"""Certificates are rechecked here, by code that searches for nothing."""

from attngeom.verification.dispatch import read_certificate, verify, write_certificate
from attngeom.verification.records import Certificate
from attngeom.verification.verdicts import Verdict

__all__ = ["Certificate", "Verdict", "read_certificate", "verify", "write_certificate"]


def __dir__() -> list[str]:
    return sorted(__all__)
