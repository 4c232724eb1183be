"""Tensors of a checkpoint that its description does not read: buffers, copies, and what is compared entry by entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from attngeom.models.families import Places
from attngeom.models.reading import Header, Tensors

Kind = Literal["buffer", "copy", "outside", "unknown"]
REASONS: dict[Kind, str] = {
    "buffer": "a buffer, no weight",
    "copy": "a copy of a tensor that is read",
    "outside": "outside the transformer; compared entry by entry, never moved",
    "unknown": "not known to this family; compared entry by entry",
}


@dataclass(frozen=True)
class Unread:
    """Why a tensor is not read."""

    kind: Kind

    @property
    def reason(self) -> str:
        return REASONS[self.kind]

    @property
    def is_compared(self) -> bool:
        """Whether its entries are compared one by one, and are part of the fingerprint."""
        return self.kind in ("outside", "unknown")


def is_copy(tensors: Tensors, name: str, original: str) -> bool:
    """Whether one tensor repeats another one, entry by entry."""
    if name not in tensors or original not in tensors:
        return False
    same = tensors.headers[name].shape == tensors.headers[original].shape
    return same and np.array_equal(tensors.raw(name), tensors.raw(original))


def kind_of(name: str, header: Header, places: Places, prefixes: tuple[str, ...]) -> Kind:
    """The kind of a tensor that is neither read nor a copy; ``prefixes`` are those of known tensors outside.

    Whole numbers, truth values and single numbers are no weights.
    """
    is_weight = header.dtype.upper().startswith(("F", "BF")) and header.shape
    if not is_weight or any(part in name for part in places.ignored):
        return "buffer"
    modules = tuple(f"{reader.module}." for reader in places.readers)
    return "outside" if name.startswith((*prefixes, *modules, *places.copies)) else "unknown"
