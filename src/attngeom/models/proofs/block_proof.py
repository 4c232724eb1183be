"""Proof of the redundancy of a block by rank: derivative mod p from below, symmetries from above."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attngeom.errors import SizeError
from attngeom.exact.modular import rank_mod_p
from attngeom.models.checked import require
from attngeom.models.counts.hypotheses import check_block
from attngeom.models.counts.parts import frequencies
from attngeom.models.counts.redundancy import block_redundancy
from attngeom.models.counts.streams import stream
from attngeom.models.counts.sublayers import mlps, sublayers
from attngeom.models.proofs.block_moves import block_moves
from attngeom.models.proofs.coordinates import block_shapes, random_point
from attngeom.models.proofs.evidence import MAX_PARAMETERS, RankProof, checked_upper_bound
from attngeom.models.proofs.formal import PRIME, RootsMissing
from attngeom.models.proofs.independence import arguments_are_independent
from attngeom.models.proofs.regions import is_piecewise
from attngeom.models.proofs.samples import BlockSampler, token_roots
from attngeom.models.proofs.turns import Turns, check_frequencies
from attngeom.models.specification import MLP, GroupedAttention, TransformerBlock

MAX_ROOTS = 14
MAX_POINTS, LEAST_POINTS, POINTS_TIMES_WEIGHTS = 24, 6, 4000
RELATED = "arguments of exponentials are related, or too few points were found to see that they are not"


def check_provable(block: TransformerBlock, width: int) -> None:
    """Refuse with InputError what the function over GF(p) does not describe."""
    check_block(block, width)
    for own in (block.attention, block.cross):
        if own is not None:
            _check_attention(own)
    if block.cross is not None:
        plain = block.cross.rotary is None and block.cross.window is None and block.cross.latent is None
        require(plain, "cross-attention with a rotation, a window or latents given; proofs by rank do not describe it")
    for mlp in mlps(block.mlp) if block.mlp is not None else ():
        smooth = mlp.limit is None or mlp.activation not in ("gelu", "gelu_tanh")
        require(smooth, "gelu with a limit given; proofs by rank do not describe its value at the limit")
    text = "a norm of one dimension with eps 0 given; it shows a sign, which proofs by rank do not describe"
    require(all(size > 1 for size in _dimensions_without_eps(block, width)), text)


def _dimensions_without_eps(block: TransformerBlock, width: int) -> Iterator[int]:
    """How many independent squares are under the roots of norms with eps = 0: the root of a single one is no root."""
    for sublayer in sublayers(block):
        norms, part = sublayer.norms, sublayer.map
        for norm in (sublayer.before, norms.stream):
            if norm is not None and norm.eps == 0:
                yield stream(width, norm).seen
        seen = stream(width, sublayer.before).seen
        own = part if isinstance(part, GroupedAttention) else None
        if own is not None and own.qk_norm is not None and own.qk_norm.norm.eps == 0:
            yield min(seen, own.head_dim - own.qk_norm.is_centred)
        if own is not None and own.latent is not None:
            ranks = ((own.latent.query_rank, own.latent.query_norm), (own.latent.key_rank, own.latent.key_norm))
            yield from (min(seen, rank or 0) for rank, norm in ranks if norm is not None and norm.eps == 0)
        if norms.output is not None and norms.output.eps == 0:
            columns = part.width if isinstance(part, MLP) else 2
            if own is not None:
                one_token = min(seen, own.heads * own.value_dim)
                columns = one_token if own.window == 1 else own.heads * min(seen, own.value_dim)
            yield min(width, columns)


def _check_attention(own: GroupedAttention) -> None:
    if own.rotary is not None:
        check_frequencies(own.rotary.frequencies)
        still, turning = frequencies(own.rotary)
        fixed = not own.rotary.lengthening or (not still and max(turning.values()) == 1)
        require(fixed, "equal or zero frequencies that change with the context given; proofs by rank do not see them")
    for norm in () if own.latent is None else (own.latent.query_norm, own.latent.key_norm):
        require(norm is None or norm.kind == "rms", "a latent with a LayerNorm given; proofs by rank need rms")


def prove_block(
    block: TransformerBlock, width: int, *, seed: int = 0, buckets: int = 0, subject: str = "block"
) -> RankProof:
    """Bounds of the dimension of the functions of a block by rank mod p; equal bounds are a proof.

    Inputs are arbitrary residual vectors, any number of tokens, seen through the window. ``buckets`` > 0 adds a
    relative position table. For blocks of at most 4,096 weights; kinds that are not described are refused.

    >>> from attngeom.models.specification import MLP, Norm, Norms
    >>> mlp = MLP(width=2, activation="silu", gated=True)
    >>> norms = Norms(input=Norm(kind="rms", eps=1e-6))
    >>> prove_block(TransformerBlock(attention=None, mlp=mlp, mlp_norms=norms), 3).redundancy
    5
    """
    check_provable(block, width)
    shapes = block_shapes(block, width)
    size = block.parameters(width, width)
    if buckets and block.attention is not None:
        shapes |= {"attention.relative": (buckets, block.attention.heads)}
        size += buckets * block.attention.heads
    if size > MAX_PARAMETERS:
        raise SizeError(f"a block of {size} weights given; at most {MAX_PARAMETERS} are proved by rank: shrink it")
    for attention in (block.attention, block.cross):
        if token_roots(block, attention, attention is block.cross) > MAX_ROOTS:
            raise SizeError(
                f"a QK-norm with many heads given; at most {MAX_ROOTS} roots per token are drawn: shrink it"
            )
    rng = np.random.default_rng(seed)
    rotaries = [own.rotary for own in (block.attention, block.cross) if own is not None and own.rotary is not None]
    turns = Turns(rng, rotaries)
    lower, upper, samples = 0, size, 0
    obstacle = "" if arguments_are_independent(block, width, shapes, rng, turns) else RELATED
    points = max(LEAST_POINTS, min(MAX_POINTS, POINTS_TIMES_WEIGHTS // size))
    for _ in range(0 if obstacle else points):
        try:
            rank, bound, drawn = _bounds(BlockSampler(block, width, random_point(shapes, rng), rng, turns))
        except RootsMissing:
            continue
        lower, upper, samples = max(lower, rank), min(upper, bound), samples + drawn
        if lower == upper or not is_piecewise(block.mlp):
            break
    return RankProof(
        subject=subject,
        parameters=size,
        lower=lower,
        upper=upper,
        formula=_formula(block, width, buckets),
        prime=PRIME,
        seed=seed,
        samples=samples,
        obstacle=obstacle,
    )


def _formula(block: TransformerBlock, width: int, buckets: int) -> int:
    """What the formula says, with one shift of the relative table per head, and the bucket that is never used."""
    total = block_redundancy(block, width).total
    if not buckets or block.attention is None:
        return total
    own = block.attention
    return total + own.heads * ((own.softcap is None) + (not own.causal))


def _bounds(sampler: BlockSampler) -> tuple[int, int, int]:
    """Rank of the derivative, bound by the symmetries, and the number of samples at a point.

    More samples are drawn as long as they raise the rank.
    """
    size, width = sampler.point.size, sampler.width
    derivative = sampler.rows(8 + size // max(1, width - 1))
    upper = checked_upper_bound(block_moves(sampler.block, width, sampler.point), derivative)
    lower = rank_mod_p(derivative, PRIME)
    before = 0
    while before < lower < upper:
        derivative = np.concatenate([derivative, sampler.rows(8 + size // width)])
        before, lower = lower, rank_mod_p(derivative, PRIME)
    return lower, upper, len(derivative) // width
