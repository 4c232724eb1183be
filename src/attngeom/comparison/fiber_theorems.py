"""Theorems A, A' (softmax) and S (sigmoid) on two sets of virtual weights, exact or in floats.

The theorems: docs/theorems/comparison.md. A pair says how its matrices compare and whether they are zero; what floats
do not tell is neither, and nothing is concluded from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
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
        tokens, masked, layers = self.architecture.tokens, self.architecture.mask.hides, self.architecture.num_layers
        theorem = FIBER_THEOREMS.get(self.architecture.kind)
        theorem = theorem if theorem in ("Theorem A", "Theorem S") else None
        is_softmax, one_token = theorem == "Theorem A", tokens == 1 and theorem is not None
        cited = f"({theorem}')" if is_softmax and masked else f"({theorem})"
        differs = "differs" if self.is_exact else "differs beyond what the tolerance explains"
        agree = "are equal" if self.is_exact else "agree"
        total = self.relate(layers)
        if theorem is not None and total == "far":
            return Ruling(False, f"L = V_l … V_1 {differs} {cited}")
        if self.are_zero(layers):
            zero = "= 0 for both" if self.is_exact else "is zero for both, up to rounding"
            return Ruling(True, f"L = V_l … V_1 {zero}: both functions are zero")
        if one_token and is_softmax:
            agrees = "is equal" if self.is_exact else "agrees"
            seen = f"one token attends to itself alone, and L = V_l … V_1 {agrees}"
            return Ruling(True, seen) if total == "close" else UNTOLD
        relations = [self.relate(place, one_token) for place in range(layers)]
        if {total, *relations} == {"close"}:
            seen = "symmetric parts of M, which one token sees, and L" if one_token else "virtual weights (M, L)"
            return Ruling(True, f"the {seen} {agree}")
        if theorem is None:
            return UNTOLD
        if not is_softmax and layers > 1 and (one_token or masked):
            why = "one token" if one_token else f"a {self.architecture.mask} mask"
            return Ruling(None, f"M differs, and Theorem S does not cover several layers with {why}")
        # Nothing is seen of M unless L ≠ 0, and nothing of M_i after a layer that may be blind.
        are_equal, is_seen = total == "close", self.are_zero(layers) is False
        for place, relation in enumerate(relations):
            name = f"M_{place + 1}"
            if is_softmax and masked and tokens == 2 and not (self.is_exact and relation == "close"):
                is_seen = is_seen and self.are_zero(place) is False
                if self.is_exact and not is_seen:
                    why = f"one of {name}, M'_{place + 1} is zero, and Theorem A' does not cover that for t = 2"
                    return Ruling(None, why)
            if relation == "far" and is_seen:
                return Ruling(False, f"{name} {differs}, and nothing before hides it {cited}")
            are_equal = are_equal and relation == "close"
            if not masked and place < layers - 1:
                is_blind = self.are_zero(place, symmetric=is_softmax and tokens == 2)
                if are_equal and is_blind:
                    return self._judge_blind(place, is_softmax, agree)
                is_seen = is_seen and is_blind is False
        return UNTOLD

    def _judge_blind(self, place: int, is_softmax: bool, agree: str) -> Ruling:
        """What is seen of later layers if all before are equal and this one makes all tokens equal."""
        name = f"M_{place + 1}"
        if is_softmax:
            seen = f"L and M_1 … {name} {agree}, and layer {place + 1} is blind"
            return Ruling(True, f"{seen}: nothing later is seen (Theorem A)")
        why, later = f"{name} = 0 makes all tokens equal, and", range(place + 1, self.architecture.num_layers)
        if all(self.relate(i, symmetric=True) == "close" for i in later):
            return Ruling(True, f"{why} the symmetric parts of later M, which they see, {agree}")
        return Ruling(None, f"{why} Theorem S does not cover what is seen then")
