"""Certificates: frozen claims with witnesses that other code can recheck."""

from attngeom.certificates.certify import certify
from attngeom.certificates.records import Certificate, Verdict
from attngeom.certificates.results import Certification
from attngeom.certificates.verify import verify

__all__ = ["Certificate", "Certification", "Verdict", "certify", "verify"]
