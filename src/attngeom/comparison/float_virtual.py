"""Float networks with one head and no skip connection, through (M, L): Theorems A, A' and F, hypotheses first."""

from __future__ import annotations

import numpy as np

from attngeom.comparison.results import UNTOLD, Ruling
from attngeom.comparison.samples import (
    AMPLIFIED,
    FAR,
    NEAR,
    Layers,
    Relation,
    Sample,
    best_known,
    has_rank_two,
    is_far_from_zero,
    is_zero,
    relate,
)
from attngeom.network import Architecture


def virtual_samples(layers: Layers) -> tuple[list[Sample], Sample]:
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
    return M, L


def symmetric(M: Sample) -> Sample:
    """M + Mᵀ."""
    return Sample(M.values + np.swapaxes(M.values, -1, -2), M.exponent)


def judge_virtual(architecture: Architecture, one: Layers, two: Layers, tolerance: float) -> Ruling:
    """The verdict on two networks with one head and no skip connection from their virtual weights.

    Equal (M, L), up to the scales of [G] Eq 13 for lightning, are one function without any hypothesis. Different ones
    are different functions only where a theorem says so, and only if its hypotheses hold for all copies.
    """
    if architecture.rule.is_normalised:
        return _judge_softmax(architecture, virtual_samples(one), virtual_samples(two), tolerance)
    if architecture.rule.is_polynomial:
        return _judge_lightning(architecture, virtual_samples(one), virtual_samples(two), tolerance)
    (M, L), (N, K) = virtual_samples(one), virtual_samples(two)
    close = all(relate(a, b, tolerance) == "close" for a, b in zip([*M, L], [*N, K]))
    return Ruling(True, "the virtual weights (M, L) agree") if close else UNTOLD


Virtual = tuple[list[Sample], Sample]


def _judge_softmax(architecture: Architecture, one: Virtual, two: Virtual, tolerance: float) -> Ruling:
    (M, L), (N, K) = one, two
    tokens, causal = architecture.tokens, architecture.causal
    theorem = "Theorem A'" if causal else "Theorem A"
    total = relate(L, K, tolerance)
    if total == "far":
        return Ruling(False, f"L = V_l … V_1 differs beyond what the tolerance explains ({theorem})")
    if is_zero(L, tolerance) and is_zero(K, tolerance):
        return Ruling(True, "L = V_l … V_1 is zero for both, up to rounding: both functions are zero")
    if tokens == 1:
        same = total == "close"
        return Ruling(True if same else None, "one token attends to itself alone, and L = V_l … V_1 agrees")
    # Nothing is seen of M unless L ≠ 0 for all copies, and nothing of M_i after a layer that may be blind.
    is_seen = is_far_from_zero(L) and is_far_from_zero(K)
    agree = total == "close"
    for i, (a, b) in enumerate(zip(M, N), start=1):
        relation = relate(a, b, tolerance)
        if causal and tokens == 2:
            is_seen = is_seen and is_far_from_zero(a) and is_far_from_zero(b)
        if relation == "far" and is_seen:
            return Ruling(False, f"M_{i} differs beyond what the tolerance explains ({theorem})")
        agree = agree and relation == "close"
        if not causal and i < len(M):
            tests = [symmetric(x) if tokens == 2 else x for x in (a, b)]
            if agree and all(is_zero(x, tolerance) for x in tests):
                return Ruling(True, f"L and M_1 … M_{i} agree, and layer {i} is blind ({theorem})")
            is_seen = is_seen and all(is_far_from_zero(x) for x in tests)
    return Ruling(True, "the virtual weights (M, L) agree") if agree else UNTOLD


def _judge_lightning(architecture: Architecture, one: Virtual, two: Virtual, tolerance: float) -> Ruling:
    (M, L), (N, K) = one, two
    tokens, layers = architecture.tokens, architecture.num_layers
    sides = [[*M, L], [*N, K]]
    blunt = _sees_symmetric_parts(architecture)
    sides = [[symmetric(x) if i in blunt else x for i, x in enumerate(side)] for side in sides]
    if all(any(is_zero(x, tolerance) for x in side) for side in sides):
        return Ruling(True, "a factor M_i or L is zero for both, up to rounding: both functions are zero")
    if not all(is_far_from_zero(x) for side in sides for x in side):
        return Ruling(None, "a factor M_i or L is not told from zero")
    relations: list[Relation] = []
    logs = np.zeros(len(L.values))
    sign = 1.0
    for i, (a, b) in enumerate(zip(*sides)):
        place = best_known(a, b)
        pivots = [x.values[:, place[0], place[1]] for x in (a, b)]
        normal = [Sample(x.values / p[:, None, None]) for x, p in zip((a, b), pivots)]
        relations.append(relate(normal[0], normal[1], tolerance))
        power = float(3 ** (layers - 1 - i)) if i < layers else 1.0
        ratio = np.log(np.abs(pivots[1])) - np.log(np.abs(pivots[0])) + np.log(2) * (b.exponent - a.exponent)
        logs = logs + power * ratio
        sign *= float(np.sign(pivots[0][0] * pivots[1][0]))
    powers = (3.0**layers - 1) / 2 + 1
    relations.append(_relate_scale(Sample(logs), sign, powers, tolerance))
    if all(relation == "close" for relation in relations):
        seen = "their symmetric parts where only these are seen" if blunt else "up to the scales of [G] Eq 13"
        return Ruling(True, f"the virtual weights (M, L) agree, {seen}")
    # Functions that differ by a factor alone differ if they are not zero, as at one token x ≠ 0 with xᵀM_ix ≠ 0.
    by_scale = relations[-1] == "far" and set(relations[:-1]) == {"close"}
    is_nonzero = by_scale and all(is_far_from_zero(symmetric(x)) for x in M)
    if "far" in relations and (is_nonzero or any(_has_known_fiber(tokens, side) for side in sides)):
        names = [*(f"M_{i + 1}" for i in range(layers)), "L", "the scale"]
        name = names[relations.index("far")]
        return Ruling(False, f"{name} differs beyond what the tolerance explains (Theorem F)")
    return UNTOLD


def _sees_symmetric_parts(architecture: Architecture) -> set[int]:
    """The layers of which only A + Aᵀ is seen: all if t = 1; later ones after attention of rank one, not causal."""
    layers = range(architecture.num_layers)
    if architecture.tokens == 1:
        return set(layers)
    if architecture.causal:
        return set()
    width = architecture.widths[0]
    for i in layers:
        width = min(width, architecture.widths[i])
        if min(architecture.attention[i], width) == 1:
            return set(range(i + 1, architecture.num_layers))
    return set()


def _relate_scale(logs: Sample, sign: float, powers: float, tolerance: float) -> Relation:
    """How log ρ Π λ_i^(3^(l-i)) compares with 0; weights off by τ move it by up to τ times the sum of the powers."""
    if not np.all(np.isfinite(logs.values)):
        return "unclear"
    value, noise = abs(float(logs.value)), float(logs.noise)
    if sign < 0 or value > FAR * noise:
        return "far"
    return "close" if value <= NEAR * noise and value <= AMPLIFIED * tolerance * powers else "unclear"


def _has_known_fiber(tokens: int, side: list[Sample]) -> bool:
    """Whether the hypotheses of Theorem F, or of its case t = 1, hold for all copies; no factor is zero."""
    *M, L = side
    if tokens == 1:
        return has_rank_two(L)
    if len(M) == 1:
        # [G] Theorem 3.2.
        return has_rank_two(M[0]) or has_rank_two(L)
    first, last = M[:-1], M[-1]
    skew = all(is_far_from_zero(symmetric(x)) for x in M)
    return skew and all(has_rank_two(x) for x in first) and (has_rank_two(last) or has_rank_two(L))
