"""The scale of one head whose weights are linear in its scores: Q → λ Q, V → V/λ; (s3) of [G], Eq 13."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from attngeom.network.symmetry.factor import HeadFactor, Slot, Tensors


@dataclass(frozen=True)
class Scale(HeadFactor):
    """λ ∈ GL(1) for one head, a 1×1 array; the moment is ‖Q‖² − ‖V‖².

    >>> Scale(layer=0, head=0).count
    1
    """

    size: int = field(default=1, init=False)
    name: ClassVar[str] = "scale"

    def carried(self, tensors: Tensors) -> tuple[Slot, ...]:
        return (Slot((self.layer, self.head, "Q"), "entries"),)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return (Slot((self.layer, self.head, "V"), "entries"),)
