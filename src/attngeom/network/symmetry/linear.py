"""The general linear groups of a network: three for each head, and the changes of basis between layers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from attngeom.network.symmetry.factor import LinearFactor, Orders, Slot, Tensors, View


@dataclass(frozen=True)
class HeadFactor(LinearFactor):
    """GL(n) of one head, which carries one of its tensors and is dual on another; subclasses say which, and how seen.

    >>> QueryKey(layer=0, head=0, size=3).count, Scale(layer=0, head=0).count
    (9, 1)
    """

    layer: int
    head: int
    size: int
    carried_as: ClassVar[tuple[str, View]]
    dual_as: ClassVar[tuple[str, View]]

    def carried(self, tensors: Tensors) -> tuple[Slot, ...]:
        return (self._slot(*self.carried_as),)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return (self._slot(*self.dual_as),)

    def _slot(self, letter: str, view: View) -> Slot:
        return Slot((self.layer, self.head, letter), view)

    def after(self, orders: Orders) -> Self:
        return replace(self, head=orders[self.layer][self.head])


@dataclass(frozen=True)
class QueryKey(HeadFactor):
    """C ∈ GL(a): K → C K, Q → C^{-T} Q fixes the scores, (s1) of [G], Lemma 3.1; the moment is K Kᵀ − Q Qᵀ."""

    name: ClassVar[str] = "query-key"
    carried_as = ("K", "rows")
    dual_as = ("Q", "rows")


@dataclass(frozen=True)
class Scale(HeadFactor):
    """λ ∈ GL(1), a 1×1 array, of a head whose weights are linear in its scores: Q → λ Q, V → V/λ; (s3) of [G], Eq 13.

    The moment is ‖Q‖² − ‖V‖².
    """

    size: int = field(default=1, init=False)
    name: ClassVar[str] = "scale"
    carried_as = ("Q", "entries")
    dual_as = ("V", "entries")


@dataclass(frozen=True)
class ValueOutput(HeadFactor):
    """B ∈ GL(v) of a factored head: V → B V, O → O B^{-1} fixes the value map O V; the moment is V Vᵀ − Oᵀ O."""

    name: ClassVar[str] = "value-output"
    carried_as = ("V", "rows")
    dual_as = ("O", "columns")


@dataclass(frozen=True)
class Between(LinearFactor):
    """D ∈ GL(d) after ``layer``: its value maps become D V (or D O), the next layer reads Q, K, V times D^{-1}.

    A change of basis that no skip connection hinders, (s2) of [G], Lemma 3.5. The moment is
    Σ V Vᵀ − Σ (Qᵀ Q + Kᵀ K + Vᵀ V), with O for V in factored heads of the first sum.
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
