"""Kinds of attention, one file each; this table is the list of all of them."""

from __future__ import annotations

from typing import Any

from attngeom.errors import InputError
from attngeom.network.attention.lightning import Lightning
from attngeom.network.attention.rule import Attention
from attngeom.network.attention.sigmoid import Sigmoid
from attngeom.network.attention.softmax import Softmax

KINDS: dict[str, type[Attention]] = {kind.name: kind for kind in (Lightning, Softmax, Sigmoid)}


def find_kind(name: Any) -> type[Attention]:
    """The kind of attention of that name.

    >>> find_kind("softmax").is_normalised
    True
    """
    if not isinstance(name, str) or name not in KINDS:
        raise InputError(f"kind {str(name)[:40]!r} given; one of {', '.join(KINDS)} is required")
    return KINDS[name]


__all__ = ["KINDS", "Attention", "Lightning", "Sigmoid", "Softmax", "find_kind"]
