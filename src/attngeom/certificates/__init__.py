"""Certificates: frozen claims with witnesses that other code can recheck.

``verify`` and the records load none of the search code; ``certify`` is imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from attngeom.certificates.records import Certificate, Verdict
from attngeom.certificates.verify import verify

if TYPE_CHECKING:
    from attngeom.certificates.decision import certify
    from attngeom.certificates.results import Certification

__all__ = ["Certificate", "Certification", "Verdict", "certify", "verify"]


def __getattr__(name: str) -> Any:
    if name == "certify":
        from attngeom.certificates.decision import certify

        return certify
    if name == "Certification":
        from attngeom.certificates.results import Certification

        return Certification
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
