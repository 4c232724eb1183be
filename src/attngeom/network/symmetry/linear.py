"""The general linear groups of a network: three for each head, and the changes of basis between layers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from attngeom.network.architecture import LayerShape
from attngeom.network.symmetry.factor import LinearFactor, Orders, Slot, Tensors, View

Views = tuple[tuple[str, View], ...]
"""Letters of tensors and how they are seen; letters that a head does not have are passed over."""
READING = ("Q", "K", "V", "G", "w", "u", "Q2", "K2")
"""The letters of the tensors that read the input of a layer."""


@dataclass(frozen=True)
class HeadFactor(LinearFactor):
    """GL(n) of one head, which carries some of its tensors and is dual on others; subclasses say which, and how seen.

    >>> QueryKey(layer=0, head=0, size=3).count, Scale(layer=0, head=0).count
    (9, 1)
    """

    layer: int
    head: int
    size: int
    carried_as: ClassVar[Views]
    dual_as: ClassVar[Views]

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        """The factor of one head of a layer of that shape."""
        return cls(layer, head, shape.attention)

    def carried(self, tensors: Tensors) -> tuple[Slot, ...]:
        return self.slots(self.carried_as, tensors)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return self.slots(self.dual_as, tensors)

    def slots(self, views: Views, tensors: Tensors) -> tuple[Slot, ...]:
        """The tensors of these letters that the head has."""
        slots = (Slot((self.layer, self.head, letter), view) for letter, view in views)
        return tuple(slot for slot in slots if slot.place in tensors)

    def after(self, orders: Orders) -> Self:
        return replace(self, head=orders[self.layer][self.head]) if self.layer in orders else self


@dataclass(frozen=True)
class QueryKey(HeadFactor):
    """C ∈ GL(a): K → C K, Q → C^{-T} Q fixes the scores, (s1) of [G], Lemma 3.1; the moment is K Kᵀ − Q Qᵀ."""

    name: ClassVar[str] = "query-key"
    carried_as: ClassVar[Views] = (("K", "rows"), ("bK", "rows"))
    dual_as: ClassVar[Views] = (("Q", "rows"), ("bQ", "rows"))


@dataclass(frozen=True)
class QueryKeyBesideBias(QueryKey):
    """C ∈ GL(a) of a head that does not see the bias of its keys: K → C K, (Q, b_Q) → C^{-T} (Q, b_Q)."""

    carried_as: ClassVar[Views] = (("K", "rows"),)


@dataclass(frozen=True)
class SecondQueryKey(QueryKey):
    """The query-key group of the second map of differential attention."""

    name: ClassVar[str] = "second-query-key"
    carried_as: ClassVar[Views] = (("K2", "rows"),)
    dual_as: ClassVar[Views] = (("Q2", "rows"),)


@dataclass(frozen=True)
class Scale(HeadFactor):
    """λ ∈ GL(1), a 1×1 array, of a head whose weights are linear in its scores: Q → λ Q, V → V/λ; (s3) of [G], Eq 13.

    The moment is ‖Q‖² − ‖V‖².
    """

    size: int = field(default=1, init=False)
    name: ClassVar[str] = "scale"
    carried_as: ClassVar[Views] = (("Q", "entries"), ("bQ", "entries"), ("m", "entries"))
    dual_as: ClassVar[Views] = (("V", "entries"), ("bV", "entries"))

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        return cls(layer, head)


@dataclass(frozen=True)
class ValueOutput(HeadFactor):
    """B ∈ GL(v) of a factored head: V → B V, O → O B^{-1} fixes the value map O V; the moment is V Vᵀ − Oᵀ O."""

    name: ClassVar[str] = "value-output"
    carried_as: ClassVar[Views] = (("V", "rows"), ("bV", "rows"))
    dual_as: ClassVar[Views] = (("O", "columns"),)

    @classmethod
    def of(cls, layer: int, head: int, shape: LayerShape) -> Self:
        return cls(layer, head, shape.value_width or 0)


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
        own = [place for place in tensors if place[0] == self.layer]
        letters = ("O", "bO") if any(letter == "O" for _, _, letter in own) else ("V", "bV")
        return tuple(Slot(place) for place in own if place[2] in letters)

    def dual(self, tensors: Tensors) -> tuple[Slot, ...]:
        return tuple(Slot(place, "columns") for place in tensors if place[0] == self.layer + 1 and place[2] in READING)
