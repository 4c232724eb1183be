"""One layer at every point: Theorems A1 (a lightning head), A2 (softmax), A3 (sigmoid), D and S (their heads).

The proofs are in docs/theorems/learning.md. A skip connection adds X to both functions, so it changes nothing here.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.exact.precise import Rank, measured_rank
from attngeom.learning.blocks import Block, HeadBlocks, unit_size
from attngeom.learning.pairs import Pair, PairFinding
from attngeom.learning.products import ProductPoint
from attngeom.limits.rounding import MAYBE_EQUAL
from attngeom.network.attention import Sigmoid, Softmax
from attngeom.network.weights import Head, Weights

ZERO_FUNCTION = "A = 0 or V = 0, so K is of the order of ‖A‖² ‖V‖²"
BOUNDED = {Softmax.name: "A2", Sigmoid.name: "A3"}
"""The theorems on a head that is an immersion of (A, V) at every A, by kind of attention."""
HEADS = {Softmax.name: "D", Sigmoid.name: "S"}
"""The theorems on several such heads."""
IMMERSION = "K is of the order of ‖A − A_0‖² + ‖V − V_0‖²"


def single_layer(weights: Weights, blocks: tuple[HeadBlocks, ...]) -> PairFinding | None:
    """What the theorems on one layer say; None if they say nothing."""
    architecture, rule = weights.architecture, weights.architecture.rule
    if architecture.num_layers > 1:
        return None
    if len(blocks) > 1:
        return bounded_heads(HEADS[rule.name], weights, blocks) if rule.name in HEADS else None
    (head,), (block,) = weights.layers[0], blocks
    if architecture.is_cubic:
        if architecture.tokens < 2:
            return one_lightning_token(head, block, weights.domain)
        return lightning(block, _is_aligned(head, block, weights.domain))
    if architecture.view == "nothing":
        return PairFinding("A2", "one token attends to itself alone, so the function is V x", block.value.pair)
    theorem = BOUNDED.get(rule.name) if architecture.tokens >= 2 or block.value.is_zero else None
    return None if theorem is None else bounded(theorem, block)


def bounded(theorem: str, head: HeadBlocks) -> PairFinding:
    """A softmax or sigmoid head, t ≥ 2: an immersion at every A if V_0 ≠ 0; else K is of the order of ‖V‖²."""
    if head.value.is_zero:
        return PairFinding(theorem, "V = 0, so K is of the order of ‖V‖²", head.value.pair)
    return PairFinding(theorem, IMMERSION, head.attention.pair + head.value.pair)


def lightning(head: HeadBlocks, aligned: Rank | None) -> PairFinding:
    """Theorem A1: a lightning head, t ≥ 2, with or without a mask.

    ``aligned`` is the rank of the key and value directions if rk A = rk V = 1: one if these are parallel.
    """
    A, V = head.attention, head.value
    if A.is_zero or V.is_zero:
        pair = A.pair * V.pair if A.is_zero and V.is_zero else A.pair if A.is_zero else V.pair
        return PairFinding("A1.1", ZERO_FUNCTION, pair)
    if aligned is not None and aligned.value == 1:
        reason = "A = k qᵀ and V = h kᵀ share their direction: K contains the squares of products a_i a_j"
        return PairFinding("A1.3", reason, aligned_pair(A, V), is_clear=aligned.is_clear)
    reason = "up to the scale (sA, V/s) the function determines A and V to first order"
    clear = aligned is None or aligned.is_clear
    return PairFinding("A1.2", reason, (A.pair + V.pair).less(1), is_clear=clear)


def aligned_pair(A: Block, V: Block) -> Pair:
    """Theorem A1 (3): A_0 = k qᵀ, V_0 = h kᵀ: 2d + d' − 2 coordinates, d − 1 of fourth order, and two products."""
    d, d_out = A.rows, V.rows
    fourth = Pair(Pair.coordinates(d - 1).value / 2)
    return Pair.coordinates(2 * d + d_out - 2) + fourth + _rest(A) + _rest(V)


def _rest(block: Block) -> Pair:
    """What is left of a block of rank one: a product of zero, all sizes and ranks less one."""
    if block.point is None:
        return Pair.coordinates((block.rows - 1) * (block.columns - 1))
    P, H, N = block.point.sizes
    return ProductPoint(P - 1, H - 1, N - 1, block.point.left - 1, block.point.right - 1, 0).pair


def _is_aligned(head: Head, blocks: HeadBlocks, domain: Domain) -> Rank | None:
    """The rank of (k, v) where A = k qᵀ and V = h vᵀ; None if a rank is not one."""
    if blocks.attention.rank != 1 or blocks.value.rank != 1:
        return None
    if domain.rounds:
        head = Head(*(unit_size(tensor) for tensor in head.tensors.values()))
    A, V = head.attention_matrix(domain), head.value_matrix(domain)
    return measured_rank(np.stack([_direction(A.T, domain), _direction(V, domain)]), domain)


def _direction(a: Array, domain: Domain) -> Array:
    """A row of a matrix of rank one that is not zero, over floats the longest one with unit norm."""
    if domain.rounds:
        lengths = np.linalg.norm(a, axis=1)
        longest = int(np.argmax(lengths))
        return np.asarray(a[longest] / lengths[longest])
    return np.asarray(a[domain.pivot(a) // a.shape[1]])


def one_lightning_token(head: Head, blocks: HeadBlocks, domain: Domain) -> PairFinding | None:
    """One token sees the quadratic form xᵀAx: if it is not zero and V_0 = 0, K is of the order of ‖V‖²."""
    if not blocks.value.is_zero:
        return None
    A = head.attention_matrix(domain)
    form = measured_rank(domain.reduce(A + A.T), domain)
    if form.value == 0:
        return None
    reason = "V = 0 and the quadratic form xᵀAx is not zero, so K is of the order of ‖V‖²"
    return PairFinding("A1.1", reason, blocks.value.pair, is_clear=form.is_clear)


def _differ(A: Array, B: Array, domain: Domain) -> bool | None:
    """Whether two matrices differ; None if floats differ by little more than rounding."""
    if domain.equal(A, B):
        return False
    if domain.rounds and np.linalg.norm(A - B) <= MAYBE_EQUAL * (np.linalg.norm(A) + np.linalg.norm(B)):
        return None
    return True


def bounded_heads(theorem: str, weights: Weights, blocks: tuple[HeadBlocks, ...]) -> PairFinding | None:
    """Theorems D, S: heads with different A_h (sigmoid and t = 2: up to sign) are an immersion of (A_h, V_h), t ≥ 2.

    One A_h may be zero. Where V_h = 0 the function does not depend on A_h, and K is of the order of ‖V_h‖² there.
    """
    domain, t = weights.domain, weights.architecture.tokens
    if t < 2:
        return None
    matrices = [head.attention_matrix(domain) for head in weights.layers[0]]
    apart = [_differ(A, B, domain) for A, B in combinations(matrices, 2)]
    if t == 2 or theorem == "S":
        apart += [_differ(A, domain.reduce(-B), domain) for A, B in combinations(matrices, 2)]
    if False in apart:
        return None
    parts = [head.value.pair if head.value.is_zero else head.attention.pair + head.value.pair for head in blocks]
    reason = "the A_h differ, so K is of the order of the sum of all ‖A_h − A_h0‖² and ‖V_h − V_h0‖²"
    return PairFinding(theorem, reason, reduce(Pair.__add__, parts), is_clear=None not in apart)
