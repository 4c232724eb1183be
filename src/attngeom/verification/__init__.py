"""Certificates are rechecked here, by code that searches for nothing."""

from attngeom.verification.dispatch import verify, write_certificate
from attngeom.verification.records import Certificate
from attngeom.verification.verdicts import Verdict

__all__ = ["Certificate", "Verdict", "verify", "write_certificate"]
