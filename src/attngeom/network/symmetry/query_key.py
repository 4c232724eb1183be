"""GL(a) of one head: K → C K, Q → C^{-T} Q fixes the scores; (s1) of [G], Lemma 3.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attngeom.network.symmetry.factor import HeadFactor, Slot, Tensors


@dataclass(frozen=True)
class QueryKey(HeadFactor):
    """C ∈ GL(a) for one head; the moment is K Kᵀ − Q Qᵀ.

    >>> QueryKey(layer=0, head=0, size=3).count
    9
    """

    size: int
    name: ClassVar[str] = "query-key"

    def carried(self, tensors: Tensors) -> tuple[Slot, ...]:
        return (Slot((self.layer, self.head, "K")),)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return (Slot((self.layer, self.head, "Q")),)
