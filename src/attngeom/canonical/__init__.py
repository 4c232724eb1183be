"""One representative for each function: canonical forms, compact files, moves along the fiber."""

from attngeom.canonical.answer import (
    Canonicalization,
    Teleportation,
    WeightsFingerprint,
    canonicalize,
    fingerprint,
    teleport,
)

__all__ = ["Canonicalization", "Teleportation", "WeightsFingerprint", "canonicalize", "fingerprint", "teleport"]


def __dir__() -> list[str]:
    return sorted(__all__)
