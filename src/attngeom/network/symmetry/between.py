"""GL(d) between a layer and the next: a change of basis that no skip connection hinders; (s2) of [G], Lemma 3.5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attngeom.network.symmetry.factor import LinearFactor, Slot, Tensors


@dataclass(frozen=True)
class Between(LinearFactor):
    """D ∈ GL(d) after ``layer``: its value maps become D V (or D O), the next layer reads Q, K, V times D^{-1}.

    The moment is Σ V Vᵀ − Σ (Qᵀ Q + Kᵀ K + Vᵀ V), with O for V in factored heads of the first sum.

    >>> Between(layer=0, size=3).count
    9
    """

    layer: int
    size: int
    name: ClassVar[str] = "between"

    def carried(self, tensors: Tensors) -> tuple[Slot, ...]:
        heads = [head for layer, head, letter in tensors if layer == self.layer and letter == "V"]
        return tuple(Slot((self.layer, head, "O" if (self.layer, head, "O") in tensors else "V")) for head in heads)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return tuple(
            Slot(place, "columns") for place in tensors if place[0] == self.layer + 1 and place[2] in ("Q", "K", "V")
        )
