"""The heads of one layer: whether they are unique, and how to find them from the function.

The room is called like its command: ``attngeom.heads(weights)`` is :func:`attngeom.heads.finding.heads`.
"""

import sys
from types import ModuleType
from typing import Any

from attngeom.heads.finding import find_heads
from attngeom.heads.finding import heads as _heads
from attngeom.heads.results import Heads, Uniqueness
from attngeom.heads.uniqueness import heads_unique
from attngeom.rooms import checked

__all__ = ["Heads", "Uniqueness", "find_heads", "heads_unique"]


class _Room(ModuleType):
    """Importing a package binds its name in the one above, so that the function of this name is the room itself."""

    def __call__(self, *given: Any, **named: Any) -> Heads | Uniqueness:
        return checked(_heads)(*given, **named)


sys.modules[__name__].__class__ = _Room


def __dir__() -> list[str]:
    return sorted(__all__)
