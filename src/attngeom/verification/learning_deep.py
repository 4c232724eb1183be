"""Recheck the theorems on several layers and heads: ranks over Q of products and of pairs of heads.

Written independently of :mod:`attngeom.learning`, from the statements in docs/theorems/learning.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from attngeom.exact.domains import QQ, Array
from attngeom.limits.recheck import HEAD_PAIRS
from attngeom.limits.sizes import PRODUCT_FACTORS
from attngeom.network.weights import Weights
from attngeom.verification.budget import afford, afford_elimination, height
from attngeom.verification.learning_pairs import HeadMatrices, Twice, plus, product_of_ranks
from attngeom.verification.reading import require


def _rank(*parts: Array) -> int:
    """The rank over Q of matrices below each other."""
    a = np.concatenate(parts)
    afford_elimination(min(a.shape), height(a.ravel()))
    return QQ.rank(a)


def _virtual(weights: Weights) -> tuple[list[Array], list[Array]]:
    """M_1, …, M_l and L_0 = 1, …, L_l."""
    L, M = [QQ.eye(weights.architecture.widths[0])], []
    for (head,) in weights.layers:
        M.append(QQ.matmul(QQ.matmul(head.K, L[-1]).T, QQ.matmul(head.Q, L[-1])))
        L.append(QQ.matmul(head.value_matrix(QQ), L[-1]))
    return M, L


def _product_pair(weights: Weights) -> Twice:
    """Theorem P for the value maps of one token: all factors, those of several heads side by side."""
    factors: list[Array] = []
    for layer in weights.layers:
        factors.append(np.concatenate([head.V for head in layer]))
        if layer[0].O is not None:
            factors.append(np.concatenate([head.O for head in layer if head.O is not None], axis=1))
    last = len(factors)
    afford(last, PRODUCT_FACTORS, "factors of a product")
    ranks = {(0, 0): factors[0].shape[1], **{(b, b): factors[b - 1].shape[0] for b in range(1, last + 1)}}
    for b in range(1, last + 1):
        product = factors[b - 1]
        for a in reversed(range(b)):
            product = product if a == b - 1 else QQ.matmul(product, factors[a])
            ranks[a, b] = _rank(product)
    return product_of_ranks(ranks, last)


def deficient_softmax(weights: Weights, heads: list[HeadMatrices], is_chain: bool) -> Twice:
    """Theorem C2, or C3 (a product of value matrices): deep softmax of one head, L of any rank; or one token."""
    architecture = weights.architecture
    require(architecture.kind == "softmax" and not architecture.residual, "softmax without skip connection is required")
    if is_chain and architecture.tokens == 1:
        return _product_pair(weights)
    require(architecture.num_layers >= 2 and architecture.heads == 1, "two layers of one head are required")
    M, L = _virtual(weights)
    rank = _rank(L[-1])
    if is_chain and rank == 0:
        return _product_pair(weights)
    require(rank > 0, "L must not be zero")
    require(not architecture.mask.hides and architecture.tokens >= 2, "no mask and two tokens are required")
    blind = [QQ.is_zero(m + m.T if architecture.tokens == 2 else m) for m in M[:-1]]
    seen = blind.index(True) + 1 if True in blind else len(M)
    attention = [A.pair for A, _ in heads[:seen]]
    widths, values = architecture.widths, [V for _, V in heads]
    if is_chain:
        require(seen == 1, "a blind first layer is required")
        return plus(attention[0], _product_pair(weights))
    delta = widths[1]
    require(set(widths[1:-1]) == {delta}, "equal hidden widths are required")
    require(_rank(L[-2]) == delta, f"the values before the last layer must have rank {delta} together")
    require(values[-1].inner is None, "one value matrix in the last layer is required")
    shown = _rank(L[-1], *(part for m in M[1:seen] for part in (m, m.T)))
    return plus((Fraction(delta * widths[-1] + shown * (widths[0] - delta)), 1), *attention)


def without_values(weights: Weights, heads: list[HeadMatrices]) -> Twice:
    """Theorem E0: residual softmax or sigmoid layers with V_h = 0, and A_h that differ among all layers."""
    architecture = weights.architecture
    require(architecture.kind in ("softmax", "sigmoid"), "softmax or sigmoid attention is required")
    require(architecture.residual and architecture.tokens >= 2, "a skip connection and two tokens are required")
    require(all(V.rank == 0 for _, V in heads), "all values must be zero")
    signs = (1, -1) if architecture.kind == "sigmoid" or architecture.tokens == 2 else (1,)
    listed = [head.attention_matrix(QQ) for layer in weights.layers for head in layer]
    afford(len(listed) ** 2, HEAD_PAIRS, "pairs of heads")
    for n, A in enumerate(listed):
        for B in listed[:n]:
            require(
                not any(QQ.is_zero(A - sign * B) for sign in signs), "the A_h must differ (where needed, in sign too)"
            )
    return plus(*(V.pair for _, V in heads))


def lightning_heads(weights: Weights, heads: list[HeadMatrices]) -> Twice:
    """Theorem H3: one layer of lightning heads, no kernel of the differential but the scales."""
    architecture = weights.architecture
    require(architecture.kind == "lightning" and architecture.num_layers == 1, "one lightning layer is required")
    require(architecture.heads >= 2 and architecture.tokens >= 2, "two heads and two tokens are required")
    require(all(A.rank or V.rank for A, V in heads), "a head without A and V is not covered")
    afford(len(heads) ** 2, HEAD_PAIRS, "pairs of heads")
    A = [head.attention_matrix(QQ) for head in weights.layers[0]]
    V = [head.value_matrix(QQ) for head in weights.layers[0]]
    outputs, queries = _rank(*(v.T for v in V)), _rank(*A)
    require(outputs == sum(v.rank for _, v in heads), "the outputs of the heads are dependent")
    require(queries == sum(a.rank for a, _ in heads), "the queries of the heads are dependent")
    for g, (a_g, v_g) in enumerate(heads):
        for h, (a_h, v_h) in enumerate(heads):
            if not (v_g.rank and a_h.rank):
                continue
            parallel = v_g.rank == a_h.rank == 1 and _rank(V[g], A[h].T) == 1
            if g == h:
                require(not parallel, f"head {g + 1} is aligned")
            elif parallel:
                bounded = v_h.is_full and a_g.is_full
                apart = bounded and _rank(V[h], A[g].T) == v_h.rank + a_g.rank
                require(apart, f"heads {g + 1} and {h + 1} exchange a direction")
            else:
                outside_V = v_h.is_full and _rank(V[h], V[g]) > v_h.rank
                outside_A = a_g.is_full and _rank(A[g].T, A[h].T) > a_g.rank
                require(outside_V or outside_A, f"head {g + 1} and head {h + 1} mix to first order")
    value, m = plus(*(plus(a.pair, v.pair) if a.rank and v.rank else a.pair if v.rank else v.pair for a, v in heads))
    return value - sum(1 for a, v in heads if a.rank and v.rank), m
