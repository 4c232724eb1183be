"""Certificates: frozen claims with witnesses that other code can recheck."""

from attngeom.certificates.records import Certificate, Verdict

__all__ = ["Certificate", "Verdict"]
