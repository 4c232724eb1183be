"""Whether one attention layer computes given coefficients, with a certificate."""

from attngeom.certification.decision import certify
from attngeom.certification.results import Certification

__all__ = ["Certification", "certify"]


def __dir__() -> list[str]:
    return sorted(__all__)
