"""GL(v) of one factored head: V → B V, O → O B^{-1} fixes the value map O V."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attngeom.network.symmetry.factor import HeadFactor, Slot, Tensors


@dataclass(frozen=True)
class ValueOutput(HeadFactor):
    """B ∈ GL(v) for one head; the moment is V Vᵀ − Oᵀ O.

    >>> ValueOutput(layer=0, head=0, size=2).count
    4
    """

    size: int
    name: ClassVar[str] = "value-output"

    def carried(self, tensors: Tensors) -> tuple[Slot, ...]:
        return (Slot((self.layer, self.head, "V")),)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return (Slot((self.layer, self.head, "O"), "columns"),)
