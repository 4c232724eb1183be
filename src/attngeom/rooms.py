"""Rooms: packages that show their public names and load each when it is first used. A leaf.

A command imports only what it needs, and ``dir`` and the Tab key show what a room is for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def names_of(homes: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The module of each name.

    >>> names_of({"analysis": ("Analysis", "analyze")})
    {'Analysis': 'analysis', 'analyze': 'analysis'}
    """
    return {name: module for module, names in homes.items() for name in names}


def open_room(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names live in these modules of it.

    >>> find, show = open_room("attngeom.recovery", {"recover": "recover"})
    >>> show(), find("recover").__name__
    (['recover'], 'recover')
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{names[name]}"), name)

    def show() -> list[str]:
        return sorted(names)

    return find, show
