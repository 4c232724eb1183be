"""Certificates are rechecked here, by code that searches for nothing."""

from attngeom.verification.dispatch import verify
from attngeom.verification.records import Certificate, Verdict

__all__ = ["Certificate", "Verdict", "verify"]
