"""Theorem C: deep softmax networks of one head, at points where the value maps have full rank."""

from __future__ import annotations

from functools import reduce

from attngeom.inspection.hypotheses import VirtualRanks, virtual_ranks, visible_layers
from attngeom.learning.blocks import HeadBlocks
from attngeom.learning.pairs import Pair, PairFinding
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights


def hidden_width(architecture: Architecture) -> int | None:
    """The width δ of all hidden layers, if the architecture is one of Theorem C; None if it is not."""
    if not architecture.rule.is_normalised or architecture.causal or not architecture.has_virtual_weights:
        return None
    return architecture.bottleneck if architecture.tokens >= 2 else None


def deep_softmax(weights: Weights, blocks: tuple[tuple[HeadBlocks, ...], ...]) -> PairFinding | None:
    """One head, no skip connection or mask, t ≥ 2, equal hidden widths δ, rk L = δ; None if that does not hold.

    s is the first layer with M_s = 0 (t = 2: M_s skew), or the last one: K is of the order of
    Σ_{i ≤ s} ‖A_i' − A_i0'‖² + ‖L − L_0‖² in coordinates that a change of basis between the layers gives.
    """
    architecture = weights.architecture
    width = hidden_width(architecture)
    if width is None:
        return None
    ranks, t = virtual_ranks(weights), architecture.tokens
    if ranks.L.value != width:
        return None
    last = seen_layers(ranks, weights)
    pair = deep_pair(architecture, width, [heads[0].attention.pair for heads in blocks[:last]])
    reason = f"the function determines L and M_i, i ≤ {last}, to first order"
    is_clear = ranks.L.is_clear and None not in visible_layers(ranks, t == 2)[:last]
    return PairFinding("C", reason, pair, is_clear=is_clear)


def seen_layers(ranks: VirtualRanks, weights: Weights) -> int:
    """s: the number of layers whose M_i the function determines, up to the first one that is blind."""
    seen = visible_layers(ranks, weights.architecture.tokens == 2)[:-1]
    return next((index + 1 for index, sees in enumerate(seen) if sees is False), weights.architecture.num_layers)


def deep_pair(architecture: Architecture, width: int, attention: list[Pair]) -> Pair:
    """δ(d_0 + d_l) − δ² coordinates of L, and the products A_i of the layers that are seen."""
    ends = architecture.widths[0] + architecture.widths[-1]
    return reduce(Pair.__add__, attention, Pair.coordinates(width * ends - width**2))
