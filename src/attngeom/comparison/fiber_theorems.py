"""Theorems A, A' (softmax) and S (sigmoid) on two sets of virtual weights, exact or in floats.

The theorems: docs/theorems/comparison.md. A pair says how its matrices compare and whether they are zero; what floats
do not tell is neither, and nothing is concluded from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from attngeom.comparison.results import UNTOLD, Ruling
from attngeom.comparison.samples import Relation
from attngeom.network.attention import Attention, Sigmoid, Softmax


class Words(NamedTuple):
    """How differences and agreement are said."""

    differs: str
    agrees: str
    agree: str
    is_zero: str


EXACTLY = Words("differs", "is equal", "are equal", "= 0 for both")
IN_FLOATS = Words("differs beyond what the tolerance explains", "agrees", "agree", "is zero for both, up to rounding")


@dataclass(frozen=True, eq=False)
class VirtualPair(ABC):
    """(M_1..M_l, L) and (M'_1..M'_l, L') of two networks; place l stands for L, place i < l for M_{i+1}."""

    rule: Attention
    tokens: int
    layers: int
    words: ClassVar[Words]

    @abstractmethod
    def relate(self, place: int, symmetric: bool = False) -> Relation:
        """How two matrices, or the symmetric parts M + Mᵀ, compare."""

    @abstractmethod
    def are_zero(self, place: int, symmetric: bool = False) -> bool | None:
        """Whether both are zero; False if neither is, None else and where it is not told."""

    @property
    def is_exact(self) -> bool:
        return self.words is EXACTLY

    def judge(self) -> Ruling:
        """What the theorem of the kind says; without one, equal (M, L) are one function."""
        theorem = THEOREMS.get(self.rule.name)
        if theorem is not None:
            return theorem(self)
        are_equal = all(self.relate(place) == "close" for place in range(self.layers + 1))
        return Ruling(True, f"the virtual weights (M, L) {self.words.agree}") if are_equal else UNTOLD


def _judge_product(pair: VirtualPair, relation: Relation, theorem: str) -> Ruling:
    """What L alone says: it is determined, and L = 0 makes the function zero."""
    if relation == "far":
        return Ruling(False, f"L = V_l … V_1 {pair.words.differs} ({theorem})")
    if pair.are_zero(pair.layers):
        return Ruling(True, f"L = V_l … V_1 {pair.words.is_zero}: both functions are zero")
    return UNTOLD


def _theorem_a(pair: VirtualPair) -> Ruling:
    """L ≠ 0 and t ≥ 2 determine L and M_1..M_j up to the first blind layer j < l; with a mask there is none.

    Blind is M_j = 0, for t = 2 also M_j skew. With a mask and t = 2 exactly one of the first M_i ≠ M'_i may be zero.
    """
    tokens, causal, agree = pair.tokens, pair.rule.causal, pair.words.agree
    theorem = "Theorem A'" if causal else "Theorem A"
    total = pair.relate(pair.layers)
    ruling = _judge_product(pair, total, theorem)
    if ruling.same is not None:
        return ruling
    are_equal = total == "close"
    if tokens == 1:
        return Ruling(are_equal or None, f"one token attends to itself alone, and L = V_l … V_1 {pair.words.agrees}")
    # Nothing is seen of M unless L ≠ 0, and nothing of M_i after a layer that may be blind.
    is_seen = pair.are_zero(pair.layers) is False
    for place in range(pair.layers):
        relation, name = pair.relate(place), f"M_{place + 1}"
        if causal and tokens == 2 and not (pair.is_exact and relation == "close"):
            is_seen = is_seen and pair.are_zero(place) is False
            if pair.is_exact and not is_seen:
                why = f"one of {name}, M'_{place + 1} is zero, and Theorem A' does not cover that for t = 2"
                return Ruling(None, why)
        if relation == "far" and is_seen:
            return Ruling(False, f"{name} {pair.words.differs}, and nothing before hides it ({theorem})")
        are_equal = are_equal and relation == "close"
        if not causal and place < pair.layers - 1:
            is_blind = pair.are_zero(place, symmetric=tokens == 2)
            if are_equal and is_blind:
                why = f"L and M_1 … {name} {agree}, and layer {place + 1} is blind: nothing later is seen ({theorem})"
                return Ruling(True, why)
            is_seen = is_seen and is_blind is False
    return Ruling(True, f"the virtual weights (M, L) {agree}") if are_equal else UNTOLD


def _theorem_s(pair: VirtualPair) -> Ruling:
    """L ≠ 0 determines L, and without a mask and for t ≥ 2 also M_i if no earlier M_j is zero.

    One token sees the symmetric parts M + Mᵀ only; so do equal tokens, which a layer with M_j = 0 leaves.
    """
    tokens, agree = pair.tokens, pair.words.agree
    total = pair.relate(pair.layers)
    ruling = _judge_product(pair, total, "Theorem S")
    if ruling.same is not None:
        return ruling
    one_token = tokens == 1
    relations = [pair.relate(place, one_token) for place in range(pair.layers)]
    is_equal = total == "close"
    if is_equal and set(relations) == {"close"}:
        seen = "symmetric parts of M, which one token sees, and L" if one_token else "virtual weights (M, L)"
        return Ruling(True, f"the {seen} {agree}")
    if pair.layers > 1 and (one_token or pair.rule.causal):
        why = "one token" if one_token else "a causal mask"
        return Ruling(None, f"M differs, and Theorem S does not cover several layers with {why}")
    is_seen = pair.are_zero(pair.layers) is False
    for place, relation in enumerate(relations):
        name, are_zero = f"M_{place + 1}", pair.are_zero(place, one_token)
        if relation == "far" and is_seen:
            return Ruling(False, f"{name} {pair.words.differs}, and nothing before hides it (Theorem S)")
        is_equal = is_equal and relation == "close"
        if is_equal and are_zero:
            later = (pair.relate(i, symmetric=True) for i in range(place + 1, pair.layers))
            why = f"{name} = 0 makes all tokens equal, and"
            if all(relation == "close" for relation in later):
                return Ruling(True, f"{why} the symmetric parts of later M, which they see, {agree}")
            return Ruling(None, f"{why} Theorem S does not cover what is seen then")
        is_seen = is_seen and are_zero is False
    return UNTOLD


THEOREMS: dict[str, Callable[[VirtualPair], Ruling]] = {Softmax.name: _theorem_a, Sigmoid.name: _theorem_s}
"""What is proven of fibers in (M, L), by kind of attention."""
