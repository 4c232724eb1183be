"""Theorems A, A' (softmax) and S (sigmoid) on two sets of virtual weights, exact or in floats.

The theorems: docs/theorems/comparison.md. A pair says how its matrices compare and whether they are zero; what floats
do not tell is neither, and nothing is concluded from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from attngeom.comparison.results import UNTOLD, Ruling
from attngeom.comparison.samples import Relation
from attngeom.inspection.hypotheses import FIBER_THEOREMS
from attngeom.network import Architecture


@dataclass(frozen=True, eq=False)
class VirtualPair(ABC):
    """(M_1..M_l, L) and (M'_1..M'_l, L') of two networks; place l stands for L, place i < l for M_{i+1}."""

    architecture: Architecture
    is_exact: ClassVar[bool]

    @abstractmethod
    def relate(self, place: int, symmetric: bool = False) -> Relation:
        """How two matrices, or the symmetric parts M + Mᵀ, compare."""

    @abstractmethod
    def are_zero(self, place: int, symmetric: bool = False) -> bool | None:
        """Whether both are zero; False if neither is, None else and where it is not told."""

    def judge(self) -> Ruling:
        """What the theorem of the kind says; equal (M, L) are one function under any kind of attention.

        L is determined, and L = 0 makes the function zero; if L ≠ 0 then M_i is determined for all i up to the first
        layer that is blind (after it, all tokens are equal). That is one before the last with M_i = 0, of softmax for
        t = 2 also with M_i skew, and none with a mask. Not covered: two masked tokens of softmax, where exactly one of
        the first M_i ≠ M'_i is zero; one token or a mask for several layers of sigmoid; what sigmoid sees after a
        blind layer. One token sees the symmetric parts of M with sigmoid, and nothing of M with softmax.
        """
        return self._judge_values() or self._judge_agreement() or self._judge_layers()

    @cached_property
    def theorem(self) -> str | None:
        """The theorem that says what is seen of (M, L); None for kinds without one."""
        theorem = FIBER_THEOREMS.get(self.architecture.kind)
        return theorem if theorem in ("Theorem A", "Theorem S") else None

    @property
    def is_softmax(self) -> bool:
        return self.theorem == "Theorem A"

    @property
    def is_one_token(self) -> bool:
        return self.architecture.tokens == 1 and self.theorem is not None

    @cached_property
    def total(self) -> Relation:
        """How L and L' compare."""
        return self.relate(self.architecture.num_layers)

    @cached_property
    def relations(self) -> list[Relation]:
        """How M_1 … M_l compare with M'_1 … M'_l, in what one token sees of them."""
        return [self.relate(place, self.is_one_token) for place in range(self.architecture.num_layers)]

    @property
    def _agree(self) -> str:
        return "are equal" if self.is_exact else "agree"

    def _difference(self, what: str) -> str:
        prime = "'" if self.is_softmax and self.architecture.mask.hides else ""
        cited = f"({self.theorem}{prime})"
        return what.format("differs" if self.is_exact else "differs beyond what the tolerance explains") + f" {cited}"

    def _judge_values(self) -> Ruling | None:
        """L tells the functions apart, or is zero, or is all that is seen; None where M counts."""
        if self.theorem is not None and self.total == "far":
            return Ruling(False, self._difference("L = V_l … V_1 {}"))
        if self.are_zero(self.architecture.num_layers):
            zero = "= 0 for both" if self.is_exact else "is zero for both, up to rounding"
            return Ruling(True, f"L = V_l … V_1 {zero}: both functions are zero")
        if not (self.is_one_token and self.is_softmax):
            return None
        agrees = "is equal" if self.is_exact else "agrees"
        seen = f"one token attends to itself alone, and L = V_l … V_1 {agrees}"
        return Ruling(True, seen) if self.total == "close" else UNTOLD

    def _judge_agreement(self) -> Ruling | None:
        """Equal (M, L) are one function; None where something differs."""
        if {self.total, *self.relations} != {"close"}:
            return None
        seen = "symmetric parts of M, which one token sees, and L" if self.is_one_token else "virtual weights (M, L)"
        return Ruling(True, f"the {seen} {self._agree}")

    def _judge_layers(self) -> Ruling:
        """One layer after the other: nothing is seen of M unless L ≠ 0, and nothing after a layer that may be blind."""
        architecture, layers = self.architecture, self.architecture.num_layers
        masked, two_tokens = architecture.mask.hides, architecture.tokens == 2
        if self.theorem is None:
            return UNTOLD
        if not self.is_softmax and layers > 1 and (self.is_one_token or masked):
            why = "one token" if self.is_one_token else f"a {architecture.mask} mask"
            return Ruling(None, f"M differs, and Theorem S does not cover several layers with {why}")
        are_equal, is_seen = self.total == "close", self.are_zero(layers) is False
        for place, relation in enumerate(self.relations):
            name = f"M_{place + 1}"
            if self.is_softmax and masked and two_tokens and not (self.is_exact and relation == "close"):
                is_seen = is_seen and self.are_zero(place) is False
                if self.is_exact and not is_seen:
                    why = f"one of {name}, M'_{place + 1} is zero, and Theorem A' does not cover that for t = 2"
                    return Ruling(None, why)
            if relation == "far" and is_seen:
                return Ruling(False, self._difference(f"{name} {{}}, and nothing before hides it"))
            are_equal = are_equal and relation == "close"
            if not masked and place < layers - 1:
                is_blind = self.are_zero(place, symmetric=self.is_softmax and two_tokens)
                if are_equal and is_blind:
                    return self._judge_blind(place)
                is_seen = is_seen and is_blind is False
        return UNTOLD

    def _judge_blind(self, place: int) -> Ruling:
        """What is seen of later layers if all before are equal and this one makes all tokens equal."""
        name = f"M_{place + 1}"
        if self.is_softmax:
            seen = f"L and M_1 … {name} {self._agree}, and layer {place + 1} is blind"
            return Ruling(True, f"{seen}: nothing later is seen (Theorem A)")
        why, later = f"{name} = 0 makes all tokens equal, and", range(place + 1, self.architecture.num_layers)
        if all(self.relate(i, symmetric=True) == "close" for i in later):
            return Ruling(True, f"{why} the symmetric parts of later M, which they see, {self._agree}")
        return Ruling(None, f"{why} Theorem S does not cover what is seen then")
