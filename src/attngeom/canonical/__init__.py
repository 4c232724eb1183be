"""One representative for each function: canonical forms, compact files, moves along the fiber."""

from attngeom.canonical.answer import Canonicalization, Teleportation, canonicalize, teleport

__all__ = ["Canonicalization", "Teleportation", "canonicalize", "teleport"]


def __dir__() -> list[str]:
    return sorted(__all__)
