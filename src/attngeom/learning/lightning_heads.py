"""Theorem H3: one layer of lightning heads at every size, λ head by head from ranks of single heads and pairs of them.

The proof is in docs/theorems/learning.md. All hypotheses say that a rank is large, so ranks mod a prime prove them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from attngeom.exact.domains import GF, QQ, Array, Domain
from attngeom.exact.numbers import BLAS_PRIME, modulo_some_prime
from attngeom.learning.blocks import Block, HeadBlocks
from attngeom.learning.pairs import Pair, PairFinding
from attngeom.network.attention import Lightning
from attngeom.network.weights import Head, Weights


@dataclass(frozen=True, eq=False)
class _Spans:
    """Rows that span the four spaces of a head, im V, row V, column space of A, row A, mod p, and its blocks."""

    blocks: HeadBlocks
    outputs: Array
    values: Array
    keys: Array
    queries: Array

    @property
    def v(self) -> int:
        return self.blocks.value.rank

    @property
    def a(self) -> int:
        return self.blocks.attention.rank


def lightning_heads(weights: Weights, blocks: tuple[HeadBlocks, ...]) -> PairFinding | None:
    """Σ_h (λ(A_h) + λ(V_h) − ½) where the function determines the heads to first order; None if that is not shown.

    Rational weights, one layer, two heads or more, t ≥ 2, no head with A_h = V_h = 0. A head with A_h = 0 or V_h = 0
    counts with that matrix alone.

    >>> from attngeom.learning.blocks import head_blocks
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((4, 4), 2, heads=2), QQ, seed=0)
    >>> str(lightning_heads(w, head_blocks(w)[0]).pair)
    '(23, 1)'
    """
    architecture = weights.architecture
    if architecture.rule.name != Lightning.name or not architecture.is_plain or architecture.num_layers > 1:
        return None
    if len(blocks) < 2 or architecture.tokens < 2 or not weights.domain.is_rational:
        return None
    if any(head.attention.is_zero and head.value.is_zero for head in blocks):
        return None
    p, spans = modulo_some_prime(lambda p: _spans(weights, blocks, GF(p)), BLAS_PRIME)
    if not _is_direct(spans, p) or any(_meets(g, h, g is h, p) for g, h in product(spans, repeat=2)):
        return None
    parts = [_head_pair(head) for head in blocks]
    reason = (
        "the outputs and the queries of the heads are independent, so up to scales the function determines each head"
    )
    return PairFinding("H3", reason, reduce(Pair.__add__, parts))


def _head_pair(head: HeadBlocks) -> Pair:
    """λ of one head: of both matrices less the scale, or of the one that is zero."""
    A, V = head.attention, head.value
    if A.is_zero or V.is_zero:
        return A.pair if A.is_zero else V.pair
    return (A.pair + V.pair).less(1)


def _spans(weights: Weights, blocks: tuple[HeadBlocks, ...], field: Domain) -> list[_Spans]:
    return [_span(head, own, field) for head, own in zip(weights.layers[0], blocks)]


def _span(head: Head, blocks: HeadBlocks, field: Domain) -> _Spans:
    """Factors where they span the same space as the product, else the product."""
    assert head.O is not None
    outputs, values = _sides(head.O, head.V, blocks.value, field)
    keys, queries = _sides(head.K.T, head.Q, blocks.attention, field)
    return _Spans(blocks, outputs.T, values, keys.T, queries)


def _sides(left: Array, right: Array, block: Block, field: Domain) -> tuple[Array, Array]:
    """A matrix with the column space, and one with the row space, of left · right."""
    assert block.point is not None
    inner = right.shape[0]
    columns = left if block.point.right == inner else None
    rows = right if block.point.left == inner else None
    if columns is None or rows is None:
        both = QQ.matmul(left, right)
        columns, rows = both if columns is None else columns, both if rows is None else rows
    return field.convert(columns), field.convert(rows)


def _rank(p: int, *parts: Array) -> int:
    return GF(p).rank(np.concatenate(parts))


def _is_direct(heads: list[_Spans], p: int) -> bool:
    """[O_1 … O_H] and [Q_1; …; Q_H], in lowest terms, have full rank."""
    outputs = _rank(p, *(head.outputs for head in heads))
    queries = _rank(p, *(head.queries for head in heads))
    return outputs == sum(head.v for head in heads) and queries == sum(head.a for head in heads)


def _meets(g: _Spans, h: _Spans, same: bool, p: int) -> bool:
    """Whether a change of V_h inside the outputs of g and of A_g inside the queries of h may cancel to first order.

    For one head the scale does not count; it is aligned if more changes cancel.
    """
    if g.v == 0 or h.a == 0:
        return False
    is_parallel = g.v == h.a == 1 and _rank(p, g.values, h.keys) < 2
    if same:
        return is_parallel
    bounded_V, bounded_A = h.blocks.value.is_smooth, g.blocks.attention.is_smooth
    if is_parallel:
        # One form p in both row spaces, where these bound it.
        if not (bounded_V and bounded_A):
            return True
        return _rank(p, h.values, g.keys) < h.v + g.a
    inside_V = not bounded_V or _rank(p, h.values, g.values) == h.v
    inside_A = not bounded_A or _rank(p, g.keys, h.keys) == g.a
    return inside_V and inside_A
