"""Deep networks by theorem: softmax of one head (C, C2, C3), and residual networks without values (E0).

The proofs are in docs/theorems/learning.md.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from attngeom.exact.domains import Array
from attngeom.inspection.hypotheses import VirtualRanks, virtual_ranks, visible_layers
from attngeom.learning.blocks import HeadBlocks
from attngeom.learning.chains import product_pair, product_ranks
from attngeom.learning.pairs import Pair, PairFinding
from attngeom.learning.single import HEADS
from attngeom.limits.sizes import PRODUCT_FACTORS
from attngeom.network.architecture import Architecture
from attngeom.network.attention import Softmax
from attngeom.network.weights import Weights


def hidden_width(architecture: Architecture) -> int | None:
    """The width δ of all hidden layers, if the architecture is one of Theorem C; None if it is not."""
    if architecture.kind != Softmax.name or architecture.mask.hides or not architecture.has_virtual_weights:
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


def deficient_softmax(weights: Weights, blocks: tuple[tuple[HeadBlocks, ...], ...]) -> PairFinding | None:
    """One softmax head in each layer, exact weights, L of any rank: Theorems C2 and C3, None outside.

    Where L = 0, or for one token, where heads add up to one matrix, only the product of the value maps counts.
    """
    architecture = weights.architecture
    if architecture.kind != Softmax.name or architecture.residual or weights.domain.rounds:
        return None
    if architecture.tokens == 1:
        return _product_alone(weights, "one token attends to itself alone, so the function is the product of the V_i")
    if not architecture.has_virtual_weights or architecture.num_layers < 2:
        return None
    ranks = virtual_ranks(weights)
    if ranks.L.value == 0:
        return _product_alone(weights, "L = 0, so K is of the order of ‖L‖²")
    if architecture.mask.hides:
        return None
    last = seen_layers(ranks, weights)
    attention = [heads[0].attention.pair for heads in blocks[:last]]
    if last == 1:
        chain = _values_pair(weights)
        if chain is not None:
            reason = "the first layer is blind: the function determines A_1 and the product of the V_i to first order"
            return PairFinding("C3", reason, attention[0] + chain)
    return _before_the_last(weights, blocks, last, attention)


def value_factors(weights: Weights) -> list[Array]:
    """The matrices whose product is the value map of one token: V_i, or all W_ih below and all O_ih beside each other.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> w = random_weights(Architecture((3, 2, 4), 1, heads=2, value_width=1), QQ, seed=0)
    >>> [F.shape for F in value_factors(w)]
    [(2, 3), (2, 2), (2, 2), (4, 2)]
    """
    factors: list[Array] = []
    for heads in weights.layers:
        factors.append(np.concatenate([head.V for head in heads]))
        outputs = [head.O for head in heads if head.O is not None]
        factors += [np.concatenate(outputs, axis=1)] if outputs else []
    return factors


def _values_pair(weights: Weights) -> Pair | None:
    """(λ, m) of ‖L − L_0‖² in the value factors (Theorem P)."""
    factors = value_factors(weights)
    return product_pair(product_ranks(factors, weights.domain)) if len(factors) <= PRODUCT_FACTORS else None


def _product_alone(weights: Weights, reason: str) -> PairFinding | None:
    """K is of the order of ‖L − L_0‖²."""
    pair = _values_pair(weights)
    return None if pair is None else PairFinding("C3", reason, pair)


def _before_the_last(
    weights: Weights, blocks: tuple[tuple[HeadBlocks, ...], ...], last: int, attention: list[Pair]
) -> PairFinding | None:
    """Theorem C2: the values before the last layer have full rank δ together, those of the last one any rank."""
    d_0, *hidden, d_l = weights.architecture.widths
    width, domain = hidden[0], weights.domain
    if set(hidden) != {width} or width > d_0 or blocks[-1][0].value.point is not None:
        return None
    before = reduce(lambda L, V: domain.matmul(V[0], L), weights.value_matrices()[:-1], domain.eye(d_0))
    if domain.rank(before) != width:
        return None
    virtual = weights.virtual()
    seen = [virtual.L, *(part for M in virtual.M[1:last] for part in (M, M.T))]
    rank = domain.rank(np.concatenate(seen))
    pair = reduce(Pair.__add__, attention, Pair.coordinates(width * d_l + rank * (d_0 - width)))
    reason = (
        f"the function determines L, of rank {domain.rank(virtual.L)} < {width}, and M_i, i ≤ {last}, to first order"
    )
    return PairFinding("C2", reason, pair)


def without_values(weights: Weights, blocks: tuple[tuple[HeadBlocks, ...], ...]) -> PairFinding | None:
    """Theorem E0: residual softmax or sigmoid layers with all V_h = 0 and different A_h: K is of the order of Σ ‖V_h‖².

    The A_h of all layers together are pairwise different (sigmoid, and t = 2: up to sign); exact weights, t ≥ 2.
    """
    architecture, domain = weights.architecture, weights.domain
    if architecture.rule.name not in HEADS or not architecture.is_plain or domain.rounds or architecture.tokens < 2:
        return None
    if not architecture.residual or not all(head.value.is_zero for heads in blocks for head in heads):
        return None
    signed = architecture.tokens == 2 or HEADS[architecture.rule.name] == "S"
    known: set[tuple[str, ...]] = set()
    for A in (matrix for matrices in weights.attention_matrices() for matrix in matrices):
        both = [tuple(map(str, B.ravel())) for B in ((A, domain.reduce(-A)) if signed else (A,))]
        if known & set(both):
            return None
        known |= set(both)
    reason = "all V_h are zero and the A_h differ, so K is of the order of the sum of all ‖V_h‖²"
    return PairFinding("E0", reason, reduce(Pair.__add__, [head.value.pair for heads in blocks for head in heads]))


def seen_layers(ranks: VirtualRanks, weights: Weights) -> int:
    """s: the number of layers whose M_i the function determines, up to the first one that is blind."""
    seen = visible_layers(ranks, weights.architecture.tokens == 2)[:-1]
    return next((index + 1 for index, sees in enumerate(seen) if sees is False), weights.architecture.num_layers)


def deep_pair(architecture: Architecture, width: int, attention: list[Pair]) -> Pair:
    """δ(d_0 + d_l) − δ² coordinates of L, and the products A_i of the layers that are seen."""
    ends = architecture.widths[0] + architecture.widths[-1]
    return reduce(Pair.__add__, attention, Pair.coordinates(width * ends - width**2))
