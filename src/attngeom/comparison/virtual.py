"""Theorems A, A' (softmax) and S (sigmoid) on two sets of virtual weights (M, L), exact or in floats.

The theorems: docs/theorems/comparison.md. A pair says how its matrices compare and whether they are zero; what floats
do not tell is neither, and nothing is concluded from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

import numpy as np

from attngeom.comparison.matching import ClearedNetwork
from attngeom.comparison.results import UNTOLD, Ruling
from attngeom.comparison.samples import (
    Layers,
    Relation,
    Sample,
    best_known,
    has_rank_two,
    is_far_from_zero,
    is_zero,
    log_ratio,
    relate,
    value_sample,
)
from attngeom.errors import InputError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.numbers import WORD_PRIME
from attngeom.inspection.hypotheses import FIBER_THEOREMS, Traits, orbit_hypotheses
from attngeom.limits.rounding import NOISE_EXCLUDED, NOISE_EXPLAINS, WORST_AMPLIFIED
from attngeom.network import Architecture
from attngeom.network.weights import VirtualWeights


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


@dataclass(frozen=True, eq=False)
class ExactPair(VirtualPair):
    """Virtual weights over Q, or their residues."""

    one: VirtualWeights
    two: VirtualWeights
    is_exact = True

    def _matrices(self, place: int, symmetric: bool) -> Iterator[Array]:
        for side in (self.one, self.two):
            matrix = (*side.M, side.L)[place]
            yield side.domain.reduce(matrix + matrix.T) if symmetric else matrix

    def relate(self, place: int, symmetric: bool = False) -> Relation:
        return "close" if self.one.domain.equal(*self._matrices(place, symmetric)) else "far"

    def are_zero(self, place: int, symmetric: bool = False) -> bool | None:
        zeros = {self.one.domain.is_zero(matrix) for matrix in self._matrices(place, symmetric)}
        return zeros.pop() if len(zeros) == 1 else None


def compare_virtual(first: ClearedNetwork, second: ClearedNetwork) -> Ruling:
    """Theorems A, A' (softmax) and S (sigmoid) for rational networks with one head and no skip connection.

    Different residues are different numbers and nonzero residues are nonzero, so almost all different pairs are told
    apart modulo a prime; equality is checked over Q.

    >>> from attngeom.comparison.matching import clear
    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = clear(random_weights(Architecture((2, 2, 2), 1, kind="softmax"), QQ, seed=0))
    >>> compare_virtual(w, w).same
    True
    """
    architecture = first.architecture
    # Two tokens with a mask: which M_i vanish matters, and that is seen over Q only.
    if not (architecture.mask.hides and architecture.tokens == 2):
        try:
            residues = [_virtual_mod_p(network, GF(WORD_PRIME)) for network in (first, second)]
        except InputError:
            residues = []
        if residues and not residues[0].domain.is_zero(residues[0].L):
            verdict = ExactPair(architecture, residues[0], residues[1]).judge()
            if verdict.same is False:
                return verdict
    return ExactPair(architecture, first.weights.virtual(), second.weights.virtual()).judge()


def _virtual_mod_p(network: ClearedNetwork, field: PrimeField) -> VirtualWeights:
    """(M, L) mod p, inside FLINT; InputError if p divides a denominator."""
    L, M = field.to_flint(field.eye(network.architecture.widths[0])), []
    for (head,) in network.layers:
        M.append((field.image(head.K) * L).transpose() * (field.image(head.Q) * L))
        L = field.image(head.values()) * L
    return VirtualWeights(tuple(map(field.from_flint, M)), field.from_flint(L), field, network.architecture.rule)


def virtual_samples(layers: Layers) -> list[Sample]:
    """M_1..M_l and L of all copies."""
    d = layers[0][0]["Q"].shape[-1]
    L = Sample(np.broadcast_to(np.eye(d), (len(layers[0][0]["Q"]), d, d)))
    M = []
    for (head,) in layers:
        keys, queries = (Sample(head[name]).normalised().times(L) for name in "KQ")
        M.append(keys.transposed().times(queries))
        L = value_sample(head).times(L)
    return [*M, L]


def symmetric(M: Sample) -> Sample:
    """M + Mᵀ."""
    return M.map(lambda a: a + swap(a))


@dataclass(frozen=True, eq=False)
class SamplePair(VirtualPair):
    """Virtual weights in floats, with copies."""

    sides: tuple[list[Sample], list[Sample]]
    tolerance: float
    is_exact = False

    def _matrices(self, place: int, is_symmetric: bool) -> list[Sample]:
        return [symmetric(side[place]) if is_symmetric else side[place] for side in self.sides]

    def relate(self, place: int, symmetric: bool = False) -> Relation:
        one, two = self._matrices(place, symmetric)
        return relate(one, two, self.tolerance)

    def are_zero(self, place: int, symmetric: bool = False) -> bool | None:
        matrices = self._matrices(place, symmetric)
        if all(is_zero(x, self.tolerance) for x in matrices):
            return True
        return False if all(map(is_far_from_zero, matrices)) else None


def judge_virtual(architecture: Architecture, one: Layers, two: Layers, tolerance: float) -> Ruling:
    """The verdict on two networks with one head and no skip connection from their virtual weights.

    Equal (M, L), up to the scales of [G] Eq 13 for lightning, are one function without any hypothesis. Different ones
    are different functions only where a theorem says so, and only if its hypotheses hold for all copies.
    """
    sides = virtual_samples(one), virtual_samples(two)
    if architecture.view == "scaled":
        return _judge_lightning(architecture, sides, tolerance)
    return SamplePair(architecture, sides, tolerance).judge()


def _judge_lightning(architecture: Architecture, given: tuple[list[Sample], list[Sample]], tolerance: float) -> Ruling:
    layers = architecture.num_layers
    blunt = _sees_symmetric_parts(architecture)
    sides = [[symmetric(x) if i in blunt else x for i, x in enumerate(side)] for side in given]
    if all(any(is_zero(x, tolerance) for x in side) for side in sides):
        return Ruling(True, "a factor M_i or L is zero for both, up to rounding: both functions are zero")
    if not all(is_far_from_zero(x) for side in sides for x in side):
        return Ruling(None, "a factor M_i or L is not told from zero")
    relations: list[Relation] = []
    logs = np.zeros(len(given[0][-1].values))
    sign = 1.0
    for i, (a, b) in enumerate(zip(*sides)):
        place = best_known(a, b)
        pivots = a.entry(place), b.entry(place)
        relations.append(relate(a.over(pivots[0]), b.over(pivots[1]), tolerance))
        power = float(3 ** (layers - 1 - i)) if i < layers else 1.0
        logs = logs + power * log_ratio(*pivots)
        sign *= float(np.sign((pivots[0].value * pivots[1].value).item()))
    powers = (3.0**layers - 1) / 2 + 1
    relations.append(_relate_scale(Sample(logs), sign, powers, tolerance))
    if all(relation == "close" for relation in relations):
        seen = "their symmetric parts where only these are seen" if blunt else "up to the scales of [G] Eq 13"
        return Ruling(True, f"the virtual weights (M, L) agree, {seen}")
    # Functions that differ by a factor alone differ if they are not zero, as at one token x ≠ 0 with xᵀM_ix ≠ 0.
    by_scale = relations[-1] == "far" and set(relations[:-1]) == {"close"}
    is_nonzero = by_scale and all(is_far_from_zero(symmetric(x)) for x in given[0][:-1])
    if "far" in relations and (is_nonzero or any(_is_orbit(architecture, side) for side in sides)):
        names = [*(f"M_{i + 1}" for i in range(layers)), "L", "the scale"]
        name = names[relations.index("far")]
        return Ruling(False, f"{name} differs beyond what the tolerance explains (Theorem F)")
    return UNTOLD


def _sees_symmetric_parts(architecture: Architecture) -> set[int]:
    """The layers of which only A + Aᵀ is seen: all if t = 1; later ones after attention of rank one, without a mask."""
    layers = architecture.num_layers
    if architecture.tokens == 1:
        return set(range(layers))
    ranks = [min(sizes) for sizes in zip(architecture.attention, accumulate(architecture.widths, min))]
    return set(range(ranks.index(1) + 1, layers)) if 1 in ranks and not architecture.mask.hides else set()


def _relate_scale(logs: Sample, sign: float, powers: float, tolerance: float) -> Relation:
    """How log ρ Π λ_i^(3^(l-i)) compares with 0; weights off by τ move it by up to τ times the sum of the powers."""
    if not np.all(np.isfinite(logs.values)):
        return "unclear"
    value, noise = abs(float(logs.value)), float(logs.noise)
    if sign < 0 or value > NOISE_EXCLUDED * noise:
        return "far"
    return "close" if value <= NOISE_EXPLAINS * noise and value <= WORST_AMPLIFIED * tolerance * powers else "unclear"


def _is_orbit(architecture: Architecture, side: list[Sample]) -> bool:
    """Whether the hypotheses under which the fiber is an orbit of the scales hold for all copies."""
    *M, L = side
    traits = [Traits(is_far_from_zero(x), is_far_from_zero(symmetric(x)), has_rank_two(x)) for x in M]
    product = Traits(is_far_from_zero(L), None, has_rank_two(L))
    return all(hypothesis.holds for hypothesis in orbit_hypotheses(architecture.tokens, traits, product))
