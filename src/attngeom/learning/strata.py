"""All rank strata of an architecture with their pairs (λ, m), and the least pair over the weights of one function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Any

from attngeom.errors import InputError, SizeError
from attngeom.exact.precise import Rank
from attngeom.inspection.hypotheses import virtual_ranks
from attngeom.learning.answer import LearningCoefficient, learning_coefficient
from attngeom.learning.blocks import Block, HeadBlocks
from attngeom.learning.deep import deep_pair, hidden_width, seen_layers
from attngeom.learning.pairs import Pair
from attngeom.learning.products import least_pair, product_points
from attngeom.learning.single import BOUNDED, aligned_pair, bounded, lightning
from attngeom.limits.work import LISTED_STRATA
from attngeom.network.architecture import Architecture, LayerShape
from attngeom.network.weights import Weights
from attngeom.results import Result, Standing

ALIGNED, APART = (Rank(rank, True) for rank in (1, 2))


@dataclass(frozen=True)
class Stratum:
    """Weights with given ranks: they all have the same (λ, m)."""

    words: str
    pair: Pair
    theorem: str

    def to_json(self) -> dict[str, Any]:
        return {
            "stratum": self.words,
            "lambda": str(self.pair.value),
            "multiplicity": self.pair.multiplicity,
            "theorem": self.theorem,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningTable(Result):
    """The strata of an architecture; every point of the weights that the ``scope`` names lies in exactly one."""

    architecture: Architecture
    scope: str
    strata: tuple[Stratum, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture.to_json(),
            **self.select("is_proven", "standing", "reason"),
            "scope": self.scope,
            "strata": [stratum.to_json() for stratum in self.strata],
        }

    def rows(self) -> Mapping[str, Any]:
        return {"strata": self.scope} | {row.words: f"{row.pair} by Theorem {row.theorem}" for row in self.strata}


def learning_table(architecture: Architecture) -> LearningTable:
    """All rank strata with (λ, m): one lightning, softmax or sigmoid head, and deep softmax where rk L = δ.

    >>> [str(row.pair) for row in learning_table(Architecture((1, 1), 1, tokens=2)).strata]
    ['(1/2, 3)', '(1/2, 2)', '(1/2, 2)', '(1/2, 1)', '(1/2, 2)', '(1/2, 1)', '(1/2, 1)', '(1/2, 1)']
    """
    if hidden_width(architecture) is not None:
        scope = "weights with rk L = δ, the hidden width, and M_i ≠ 0 (t = 2: not skew) before the last layer"
        rows = _deep_strata(architecture)
    elif architecture.num_layers == architecture.heads == 1 and architecture.tokens >= 2:
        scope = "all weights"
        rows = _strata(architecture)
    else:
        raise InputError(
            "a table was asked for; it exists for one head in one layer with two tokens or more,"
            " and for deep softmax of one head with equal hidden widths"
        )
    return LearningTable(
        standing="theorem",
        reason="the ranks decide (λ, m)",
        architecture=architecture,
        scope=scope,
        strata=tuple(rows),
    )


def _check_size(least: int) -> None:
    if least > LISTED_STRATA:
        raise SizeError(f"{least:,} or more rank strata; ask for single weights, or give smaller widths")


def _blocks(name: str, P: int, H: int | None, N: int) -> Iterator[Block]:
    """All points of a P×N matrix, one matrix or a product of inner width H, up to changes of basis."""
    if H is None:
        yield from (Block(name, P, N, rank, None) for rank in range(min(P, N) + 1))
        return
    # The pairs of ranks of the two factors alone.
    _check_size((min(P, H) + 1) * (min(H, N) + 1))
    yield from (Block(name, P, N, point.rank, point) for point in product_points(P, H, N))


def _attention_blocks(layer: LayerShape, name: str) -> Iterator[Block]:
    return _blocks(name, layer.d_in, layer.attention, layer.d_in)


def _combine(*choices: Iterator[Block]) -> Iterator[tuple[Block, ...]]:
    """All combinations of blocks; SizeError before the first one if there are too many."""
    lists = [list(islice(blocks, LISTED_STRATA + 1)) for blocks in choices]
    _check_size(prod(len(blocks) for blocks in lists))
    return product(*lists)


def _strata(architecture: Architecture) -> Iterator[Stratum]:
    layer = architecture.layer(0)
    for A, V in _combine(_attention_blocks(layer, "A"), _blocks("V", layer.d_out, layer.value_width, layer.d_in)):
        head = HeadBlocks(A, V, ())
        words = f"{A.words}, {V.words}"
        if architecture.kind in BOUNDED:
            finding = bounded(BOUNDED[architecture.kind], head)
            yield Stratum(words, _known(finding.pair), finding.theorem)
        elif A.rank == V.rank == 1:
            if layer.d_in > 1:
                yield Stratum(f"{words}, not aligned", _known(lightning(head, APART).pair), "A1.2")
            yield Stratum(f"{words}, aligned", aligned_pair(A, V), "A1.3")
        else:
            finding = lightning(head, None)
            yield Stratum(words, _known(finding.pair), finding.theorem)


def _known(pair: Pair | None) -> Pair:
    assert pair is not None
    return pair


def _deep_strata(architecture: Architecture) -> Iterator[Stratum]:
    """All ranks of K_i, Q_i and A_i; A_i ≠ 0 before the last layer."""
    width = hidden_width(architecture)
    assert width is not None
    last = architecture.num_layers
    layers = [_attention_blocks(layer, f"A_{i + 1}") for i, layer in enumerate(architecture.layers)]
    for blocks in _combine(*layers):
        if any(block.is_zero for block in blocks[: last - 1]):
            continue
        pair = deep_pair(architecture, width, [block.pair for block in blocks])
        yield Stratum("; ".join(block.words for block in blocks), pair, "C")


def global_learning_coefficient(weights: Weights, *, seed: int = 0) -> LearningCoefficient:
    """The least λ, with its largest m, over all weights with the same function as the given ones.

    One lightning head with t ≥ 2, one softmax or sigmoid head with t ≥ 2, and the deep softmax networks of Theorem C;
    for all others the answer is undecided, and the local λ is an upper bound.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> zero = Weights.from_vector(Architecture((2, 2), 1), QQ.convert([0] * 8), QQ)
    >>> str(global_learning_coefficient(zero).pair)
    '(1, 2)'
    """
    local = learning_coefficient(weights, seed=seed)
    pair = None if local.pair is None else _least(weights, local)
    if pair is None:
        return _restate(local, None, "undecided", "not proven: the weights with this function are not all known")
    return _restate(local, pair, local.standing, "the least pair over all weights of this function")


def _least(weights: Weights, local: LearningCoefficient) -> Pair | None:
    """The fibers: (A, V) up to scale, or two points, or all (A, V) with A = 0 or V = 0; and all factors of these."""
    architecture = weights.architecture
    blocks = local.blocks
    if local.theorem == "C":
        attention = [least_block(block) for block in blocks if block.name[0] == "A"]
        return deep_pair(
            architecture, architecture.widths[1], attention[: seen_layers(virtual_ranks(weights), weights)]
        )
    if architecture.heads > 1 or architecture.num_layers > 1 or architecture.tokens < 2:
        return None
    A, V = blocks
    if local.theorem in ("A2", "A3"):
        return least_block(V) if V.is_zero else least_block(A) + least_block(V)
    if local.theorem == "A1.2":
        return (least_block(A) + least_block(V)).less(1)
    if local.theorem == "A1.3":
        pairs = [aligned_pair(a, v) for a, v in product(_others(A), _others(V))]
        return min(pairs, key=lambda pair: pair.rank)
    # The zero function: A = 0 with V anything, V = 0 with A anything, or both zero.
    zero_A, zero_V = (_others(Block(x.name, x.rows, x.columns, 0, x.point)) for x in (A, V))
    pairs = [a.pair * v.pair for a, v in product(zero_A, zero_V)]
    pairs += [block.pair for block in [*zero_A, *zero_V]]
    return min(pairs, key=lambda pair: pair.rank)


def _others(block: Block) -> list[Block]:
    """The same matrix with all other factors."""
    if block.point is None:
        return [block]
    points = product_points(*block.point.sizes, block.rank)
    return [Block(block.name, block.rows, block.columns, block.rank, point) for point in points]


def least_block(block: Block) -> Pair:
    """The least pair over all factors of the same matrix."""
    return block.pair if block.point is None else least_pair(*block.point.sizes, block.rank)


def _restate(local: LearningCoefficient, pair: Pair | None, standing: Standing, reason: str) -> LearningCoefficient:
    lower = local.lower * 0 if pair is None else pair.value
    upper = local.upper if pair is None else pair.value
    return replace(local, standing=standing, reason=reason, pair=pair, lower=lower, upper=upper, witness=None)
