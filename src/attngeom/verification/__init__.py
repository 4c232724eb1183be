"""Certificates are rechecked here, by code that searches for nothing."""

from attngeom.verification.dispatch import verify
from attngeom.verification.records import Certificate
from attngeom.verification.verdicts import Verdict
from attngeom.verification.writing import write_certificate

__all__ = ["Certificate", "Verdict", "verify", "write_certificate"]
