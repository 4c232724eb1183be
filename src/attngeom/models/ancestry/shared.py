"""Parts that are equal up to symmetry within rounding, said exactly: stored alike, or brought together by `compare`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attngeom.limits.rounding import TENSORS_AGREE
from attngeom.models.ancestry.content import Change
from attngeom.models.layer_comparison import compare_layers
from attngeom.models.model import Model
from attngeom.models.reading import ROUNDOFF
from attngeom.models.settings import block_settings
from attngeom.models.sizes import one_layer
from attngeom.models.views import ModelView, can_flatten

STORED, BLOCK, STREAM = "stored alike", "a symmetry of the block", "a change of the stream and a symmetry of the block"


@dataclass(frozen=True, kw_only=True)
class SharedPart:
    """A part of the child that is a part of the parent, and by which symmetry."""

    part: str
    layer: int | None
    matches: int | None
    symmetry: str
    heads: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"part": self.part, "layer": self.layer, "matches": self.matches}
        return record | ({"heads": list(self.heads)} if self.heads else {}) | {"symmetry": self.symmetry}


def shared_outside(child: Model, parent: Model) -> list[SharedPart]:
    """Tensors outside the layers whose bytes are equal."""
    names = child.outer_names().keys() & parent.outer_names().keys()
    equal = [name for name in sorted(names) if _equal_bytes(child, parent, {name: name})]
    return [SharedPart(part=child.stored(name), layer=None, matches=None, symmetry=STORED) for name in equal]


def shared_layer(child: Model, layer: int, parent: Model, match: int, change: Change | None) -> SharedPart | None:
    """A layer, or heads of it, that the child has from the parent; None where rounding explains no head."""
    mine, theirs = child.layer_names(layer), parent.layer_names(match)
    if len(mine) == len(theirs) and _equal_bytes(child, parent, dict(zip(mine, theirs))):
        return SharedPart(part="layer", layer=layer, matches=match, symmetry=STORED)
    if block_settings(child.block(layer)) != block_settings(parent.block(match)):
        return None
    unit = max(ROUNDOFF[child.dtype], ROUNDOFF[parent.dtype])
    flat = can_flatten(parent.spec) and can_flatten(child.spec)
    heads: tuple[int, ...] = ()
    one, other = one_layer(parent, match), one_layer(child, layer)
    for turns in (None, change):
        words = BLOCK if turns is None else STREAM
        comparison, _ = compare_layers(ModelView(one, flat=flat), ModelView(other, turns, flat=flat), 0, unit)
        if comparison.same:
            return SharedPart(part="layer", layer=layer, matches=match, symmetry=words)
        equal = tuple(
            mismatch.index
            for _, mismatch in comparison.heads
            if mismatch.index is not None and mismatch.ratio <= TENSORS_AGREE
        )
        if equal and not heads:
            heads, symmetry = equal, words
        if change is None:
            break
    return SharedPart(part="heads", layer=layer, matches=match, symmetry=symmetry, heads=heads) if heads else None


def _equal_bytes(child: Model, parent: Model, names: dict[str, str]) -> bool:
    """Whether tensors, by names of the family's tables, have equal types, shapes and bytes in both files."""
    for mine, theirs in names.items():
        one, other = child.stored(mine), parent.stored(theirs)
        if one not in child.tensors or other not in parent.tensors:
            return False
        left, right = child.tensors.headers[one], parent.tensors.headers[other]
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            return False
        if child.tensors.digest(one) != parent.tensors.digest(other):
            return False
    return True
