"""Proof of the redundancy of a block by rank: derivative mod p from below, symmetries from above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.models.counts.blocks import sublayers
from attngeom.models.counts.redundancy import block_redundancy
from attngeom.models.proofs.block_moves import block_moves
from attngeom.models.proofs.blocks import MAX_DISTANCE, BlockFunction, Turns
from attngeom.models.proofs.coordinates import ResiduePoint, block_shapes, random_point
from attngeom.models.proofs.evidence import MAX_PARAMETERS, RankProof, checked_upper_bound
from attngeom.models.proofs.formal import PRIME, Dual, RootsMissing, Tape
from attngeom.models.specification import Experts, GroupedAttention, TransformerBlock

MAX_ROOTS = 14
MAX_FRUITLESS = 24
MAX_POINTS = 8
MAX_ENTRIES = 2**22


@dataclass(eq=False)
class BlockSampler:
    """Rows of the derivative of a block at random inputs, all square roots in GF(p)."""

    block: TransformerBlock
    width: int
    point: ResiduePoint
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.turns = Turns(self.rng)

    def rows(self, samples: int) -> Array:
        """width rows for each of at least ``samples`` inputs."""
        batch = max(4, MAX_ENTRIES // (2 * self.point.size * self.width))
        found, count, fruitless = [], 0, 0
        while count < samples:
            rows = self._batch(max(4, min(batch, samples - count)))
            found.append(rows)
            count += len(rows) // self.width
            fruitless = 0 if len(rows) else fruitless + 1
            if fruitless > MAX_FRUITLESS:
                raise RootsMissing
        return np.concatenate(found)

    def _batch(self, size: int) -> Array:
        """Rows for at most ``size`` inputs: each last token is tried with many free values until all roots exist.

        Last tokens are all different, so no two samples share a score; the other token is one of them, at random.
        """
        tries = 2 ** (1 + _later_roots(self.block))
        last = self._tokens(size, self.block.attention, cross=False)
        first = last[(np.arange(size)[:, None] + self.rng.integers(1, size, (size, tries))) % size]
        tokens = np.stack([first, np.broadcast_to(last[:, None], first.shape)], axis=2).reshape(-1, 2, self.width)
        other = None
        if self.block.cross is not None:
            pairs = self._tokens(2 * size, self.block.cross, cross=True).reshape(size, 2, self.width)
            other = np.repeat(pairs, tries, axis=0)
        distances = self.rng.integers(1, MAX_DISTANCE, tokens.shape[:2])
        distances[:, -1] = 0
        tape = Tape(self.rng, len(tokens))
        function = BlockFunction(self.block, self.point.without_slopes, self.turns, tape)
        function(Dual(tokens), distances, None if other is None else Dual(other))
        good = tape.good.reshape(size, tries)
        places = np.flatnonzero(good.any(axis=1)) * tries + good.argmax(axis=1)[good.any(axis=1)]
        if not len(places):
            return np.zeros((0, self.point.size), np.int64)
        tape = tape.kept(places)
        function = BlockFunction(self.block, self.point, self.turns, tape)
        output = function(Dual(tokens[places]), distances[places], None if other is None else Dual(other[places]))
        assert output.slope is not None and tape.good.all()
        return output.slope.reshape(-1, self.point.size)

    def _tokens(self, need: int, attention: GroupedAttention | None, cross: bool) -> Array:
        """Random token vectors for which the norms of the vector, its query and its key are squares."""
        found, count, fruitless = [], 0, 0
        while count < need:
            draws = min(2**14, 2 * need * 2 ** _token_roots(self.block, attention, cross))
            vectors = self.rng.integers(1, PRIME, (draws, self.width))
            tape = Tape(self.rng, draws)
            function = BlockFunction(self.block, self.point.without_slopes, self.turns, tape)
            u = Dual(vectors)
            if not cross:
                u = function.normalise("attention.input", self.block.attention_norms.input, u)
            if attention is not None:
                name = "cross" if cross else "attention"
                function.keys_values(name, attention, u[:, None])
                if not cross:
                    function.queries(name, attention, u)
            found.append(vectors[tape.good])
            count += len(found[-1])
            fruitless = 0 if tape.good.any() else fruitless + 1
            if fruitless > MAX_FRUITLESS:
                raise RootsMissing
        return np.concatenate(found)[:need]


def _later_roots(block: TransformerBlock) -> int:
    """Number of square roots that depend on what tokens attend to."""
    count = 0
    for index, sublayer in enumerate(sublayers(block)):
        norms, part = sublayer.norms, sublayer.map
        later = (norms.input if index else None, norms.output, norms.stream)
        count += sum(norm is not None for norm in later)
        if isinstance(part, GroupedAttention) and sublayer.is_cross and part.qk_norm is not None:
            count += 1 if part.qk_norm.is_joint else part.heads
    return count


def _token_roots(block: TransformerBlock, attention: GroupedAttention | None, cross: bool) -> int:
    """Number of square roots that a token vector alone determines."""
    count = int(not cross and block.attention_norms.input is not None)
    if attention is not None and attention.qk_norm is not None:
        count += 2 if attention.qk_norm.is_joint else attention.heads + attention.groups
    if attention is not None and attention.latent is not None:
        count += (attention.latent.query_norm is not None) + (attention.latent.key_norm is not None)
    return count


def prove_block(
    block: TransformerBlock, width: int, *, seed: int = 0, buckets: int = 0, subject: str = "block"
) -> RankProof:
    """Bounds of the dimension of the functions of a block by rank mod p; equal bounds are a proof.

    Hypotheses: arbitrary residual vectors as inputs, any number of tokens, rotary frequencies generic except for
    those that are equal or 0. ``buckets`` > 0 adds a relative position table. For blocks of at most 4,096 weights.

    >>> from attngeom.models.specification import MLP, Norm, Norms
    >>> mlp = MLP(width=2, activation="silu", gated=True)
    >>> norms = Norms(input=Norm(kind="rms", eps=1e-6))
    >>> prove_block(TransformerBlock(attention=None, mlp=mlp, mlp_norms=norms), 3).redundancy
    5
    """
    shapes = block_shapes(block, width)
    if buckets and block.attention is not None:
        shapes |= {"attention.relative": (buckets, block.attention.heads)}
    rng = np.random.default_rng(seed)
    size = block.parameters(width, width) + (buckets * block.attention.heads if block.attention else 0)
    if size > MAX_PARAMETERS:
        raise SizeError(f"a block of {size} weights given; at most {MAX_PARAMETERS} are proved by rank: shrink it")
    for attention in (block.attention, block.cross):
        if _token_roots(block, attention, attention is block.cross) > MAX_ROOTS:
            raise SizeError(
                f"a QK-norm with many heads given; at most {MAX_ROOTS} roots per token are drawn: shrink it"
            )
    formula = _formula(block, width, buckets)
    lower, upper, samples = 0, size, 0
    for _ in range(MAX_POINTS):
        point = random_point(shapes, rng)
        try:
            rank, bound, drawn = _bounds(block, width, point, rng)
        except RootsMissing:
            continue
        lower, upper, samples = max(lower, rank), min(upper, bound), samples + drawn
        if lower == upper or not _is_piecewise(block):
            break
    return RankProof(
        subject=subject,
        parameters=size,
        lower=lower,
        upper=upper,
        formula=formula,
        prime=PRIME,
        seed=seed,
        samples=samples,
    )


def _is_piecewise(block: TransformerBlock) -> bool:
    """Whether units switch on and off: where few are on, one point may have none of the roots that a piece needs."""
    mlp = block.mlp.expert if isinstance(block.mlp, Experts) else block.mlp
    return mlp is not None and (mlp.activation == "relu" or mlp.limit is not None)


def _formula(block: TransformerBlock, width: int, buckets: int) -> int | None:
    """What the formula says, with one shift of the relative table per head; None if it is not known."""
    heads = 0
    if buckets and block.attention is not None:
        if block.attention.softcap is not None:
            return None
        heads = block.attention.heads
    try:
        return block_redundancy(block, width).total + heads
    except InputError:
        return None


def _bounds(block: TransformerBlock, width: int, point: ResiduePoint, rng: np.random.Generator) -> tuple[int, int, int]:
    """Rank of the derivative, bound by the symmetries, and the number of samples at a point.

    More samples are drawn as long as they raise the rank.
    """
    sampler = BlockSampler(block, width, point, rng)
    size = point.size
    derivative = sampler.rows(8 + size // (width - 1))
    upper = checked_upper_bound(block_moves(block, width, point), derivative)
    lower = rank_mod_p(derivative, PRIME)
    before = 0
    while before < lower < upper:
        derivative = np.concatenate([derivative, sampler.rows(8 + size // width)])
        before, lower = lower, rank_mod_p(derivative, PRIME)
    return lower, upper, len(derivative) // width
