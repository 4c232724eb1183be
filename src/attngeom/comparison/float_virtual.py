"""Float networks with one head and no skip connection, through (M, L), hypotheses first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from attngeom.comparison.fiber_theorems import VirtualPair
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
)
from attngeom.exact.arrays import swap
from attngeom.inspection.hypotheses import Traits, orbit_hypotheses
from attngeom.limits.rounding import NOISE_EXCLUDED, NOISE_EXPLAINS, WORST_AMPLIFIED
from attngeom.network import Architecture


def virtual_samples(layers: Layers) -> list[Sample]:
    """M_1..M_l and L of all copies."""
    d = layers[0][0]["Q"].shape[-1]
    L = Sample(np.broadcast_to(np.eye(d), (len(layers[0][0]["Q"]), d, d)))
    M = []
    for (head,) in layers:
        keys, queries = (Sample(head[name]).normalised().times(L) for name in "KQ")
        M.append(keys.transposed().times(queries))
        V = Sample(head["V"]).normalised()
        if "O" in head:
            V = Sample(head["O"]).normalised().times(V)
        L = V.times(L)
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
    if architecture.rule.is_polynomial:
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
