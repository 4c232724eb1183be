"""What a part of a symmetry is: its action on a layer and its inverse; sequences of parts are symmetries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from attngeom.models.layer import AttentionWeights, LayerWeights
from attngeom.models.specification import TransformerBlock

Which = Literal["attention", "cross"]


class Part(Protocol):
    """One factor of the group: how it acts and what undoes it."""

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights: ...

    def inverse(self) -> Part: ...


Symmetry = tuple[Part, ...]


def act(block: TransformerBlock, layer: LayerWeights, symmetry: Sequence[Part]) -> LayerWeights:
    """The layer moved by the parts, first to last."""
    for part in symmetry:
        layer = part.act(block, layer)
    return layer


def compose(first: Sequence[Part], second: Sequence[Part]) -> Symmetry:
    """First, then second."""
    return (*first, *second)


def inverse(symmetry: Sequence[Part]) -> Symmetry:
    return tuple(part.inverse() for part in reversed(symmetry))


def on_attention(
    layer: LayerWeights, which: Which, change: Callable[[AttentionWeights], AttentionWeights]
) -> LayerWeights:
    if which == "attention":
        return layer.with_(attention=change(layer.attention))
    assert layer.cross is not None
    return layer.with_(cross=change(layer.cross))
