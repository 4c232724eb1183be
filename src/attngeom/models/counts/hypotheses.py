"""Theorem 1' of docs/theorems/models.md: which of its hypotheses a block does not meet, and what is refused at all."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attngeom.models.checked import require
from attngeom.models.specification import (
    PLACES,
    Experts,
    GroupedAttention,
    Latent,
    Norm,
    Norms,
    RecurrentMixer,
    TransformerBlock,
)
from attngeom.models.sublayers import SHOW_SCORES
from attngeom.models.surroundings import Stream, Sublayer, mlps, stream, sublayers

LEAST_SEEN = 3


def violations(block: TransformerBlock, width: int, *, source: Norm | None = None) -> tuple[str, ...]:
    """The hypotheses of Theorem 1' that a block of this width does not meet, one sentence each; () if it meets all.

    ``source`` is the norm behind which cross-attention finds the encoder's stream; None: arbitrary vectors.

    >>> from dataclasses import replace
    >>> norms = {"attention_norms": Norms(input=Norm(kind="rms", eps=1e-6))}
    >>> own = GroupedAttention(heads=2, groups=2, head_dim=2, value_dim=2, scale=0.5)
    >>> violations(TransformerBlock(attention=own, mlp=None, **norms), 6)
    ()
    >>> violations(TransformerBlock(attention=replace(own, window=1), mlp=None, **norms), 6)
    ('attention: a window of 1 token given; at least 2 are required',)
    """
    unmet = [*_meaningless(block, width)]
    for sublayer in sublayers(block):
        unmet += [f"{sublayer.label}: {text}" for text in _sublayer(block, sublayer, width, source)]
    return tuple(unmet)


def check_block(block: TransformerBlock, width: int) -> None:
    """Refuse with InputError what has no function of its own, or no count that is known to hold."""
    for text in _meaningless(block, width):
        require(False, text)
    for sublayer in sublayers(block):
        norms = sublayer.norms
        alone = norms.stream is None or (norms.input is None and norms.output is None)
        require(alone, "a sublayer with a norm of the sum and another norm given; no count is known, drop one")
        flat = norms.output is None or norms.output.kind == "rms"
        require(flat, "a LayerNorm of a sublayer's output given; counts are known for rms only")
        require(norms.output is None or not block.parallel, "a parallel block with output norms given; not known")


def _meaningless(block: TransformerBlock, width: int) -> Iterator[str]:
    """What no model computes: norms of nothing, clamps without gate, LayerNorm of one number divided by 0."""
    if any(getattr(block, place) is None and norms != Norms() for place, norms in zip(PLACES, block.norms)):
        yield "a norm of a sublayer that is absent given; drop the norm or add the sublayer"
    for mlp in mlps(block.mlp) if block.mlp is not None else ():
        if not mlp.gated and mlp.limit is not None:
            yield "a limit without a gate given; a clamp is known for gated units only"
        if not mlp.gated and mlp.activation == "swiglu_oai":
            yield "swiglu_oai without a gate given; it multiplies a gate and up + 1"
    norms_of = [(norm, width) for norms in block.norms for norm in (norms.input, norms.output, norms.stream)]
    for own in (block.attention, block.cross):
        if own is not None:
            norms_of.append((own.head_norm, own.head_dim))
    if any(norm is not None and norm.kind == "layer" and norm.eps == 0 and size == 1 for norm, size in norms_of):
        yield "a LayerNorm of one coordinate with eps 0 given; it divides 0 by 0"


def _sublayer(block: TransformerBlock, sublayer: Sublayer, width: int, source: Norm | None) -> Iterator[str]:
    """Clause 1, then those of the map and of its output norm."""
    if sublayer.norms.stream is not None:
        yield "a norm of the sum given; norms in front of a map or behind it are required"
    elif sublayer.before is None and _has_bias(block):
        yield "no norm in front and a bias in the block given; a norm, or no bias anywhere, is required"
    own = stream(width, sublayer.before)
    read = stream(width, source) if sublayer.is_cross else own
    seen = min(own.seen, read.seen)
    if seen < LEAST_SEEN:
        yield f"{seen} dimensions of the stream seen; at least {LEAST_SEEN} are required"
    part = sublayer.map
    if isinstance(part, GroupedAttention):
        yield from _attention(part, sublayer, own, read)
    if isinstance(part, RecurrentMixer):
        yield "a recurrent state given; the groups act exactly, that nothing else is lost is not proved"
    if isinstance(part, Experts):
        yield from _experts(part)
    if sublayer.norms.output is not None:
        yield from _output(sublayer, sublayer.norms.output, width)


def _has_bias(block: TransformerBlock) -> bool:
    """Whether a sublayer or a norm of the block has a bias."""
    biases = [norm.bias for norms in block.norms for norm in (norms.input, norms.output, norms.stream) if norm]
    for own in (block.attention, block.cross):
        if own is not None:
            biases += [own.query_bias, own.key_bias, own.value_bias, own.output_bias]
            biases.append(own.latent is not None and own.latent.bias)
    if block.mixer is not None:
        biases += [block.mixer.bias, block.mixer.conv_bias, block.mixer.output_bias]
    if block.mlp is not None:
        biases += [mlp.up_bias or mlp.down_bias for mlp in mlps(block.mlp)]
        biases.append(isinstance(block.mlp, Experts) and block.mlp.router_bias)
    return any(biases)


def needed_tokens(own: GroupedAttention, norms: Norms) -> int:
    """How many tokens a window or a context has to show: two, one more than rotate, three in front of an output norm.

    >>> own = GroupedAttention(heads=1, groups=1, head_dim=2, value_dim=2, scale=1.0)
    >>> needed_tokens(own, Norms())
    2
    """
    return max(2, own.head_dim - own.rotations[0] + 1, 3 if norms.output is not None else 0)


def _attention(own: GroupedAttention, sublayer: Sublayer, queries: Stream, source: Stream) -> Iterator[str]:
    """Clause 2: rotation, window, sizes of heads."""
    plain, turning = own.rotations
    still, seen = plain - own.unrotated, min(queries.seen, source.seen)
    if sublayer.is_cross and (own.rotary is not None or own.reach is not None or own.latent is not None):
        yield "a rotation, a window or latents given; cross-attention without them is required"
    if max(turning, default=0.0) >= math.pi:
        yield f"a rotary frequency of {max(turning):.6g} given; frequencies below pi are required"
    need = needed_tokens(own, sublayer.norms)
    if own.reach is not None and own.reach < need:
        tokens = "1 token" if own.reach == 1 else f"{own.reach} tokens"
        kind = "chunk" if own.reach == own.chunk else "window"
        yield f"a {kind} of {tokens} given; at least {need} are required"
    if own.temperature is not None and own.temperature[0] <= need:
        yield f"scores that grow from token {own.temperature[0]:g} on given; {need} tokens without that are required"
    if own.rotary is not None and own.rotary.lengthening and (still or len(turning) < sum(turning.values())):
        yield "equal or zero frequencies that change with the context given; different ones are required"
    if own.latent is not None:
        yield from _latents(own, own.latent, sublayer, queries)
        return
    if plain > seen:
        yield f"{plain} unrotated coordinates of a head given; at most {seen}, the dimensions seen, are required"
    if max(turning.values(), default=0) > seen:
        yield f"a frequency for {max(turning.values())} pairs given; at most {seen}, the dimensions seen, are required"
    if own.disentangled is not None:
        yield "scores of contents against positions given; none are required"
    if own.relative is not None and own.relative.tokens:
        yield "a table of positions of an image given; one of distances, or none, is required"
    if own.output_gate:
        yield "a gate of the output given; attention without one is required"
    if own.value_dim > seen:
        yield f"values of {own.value_dim} coordinates given; at most {seen}, the dimensions seen, are required"
    if own.head_norm is not None:
        yield from _head_norm(own, own.head_norm, queries, source)


def _head_norm(own: GroupedAttention, norm: Norm, queries: Stream, source: Stream) -> Iterator[str]:
    """Clause 3."""
    plain, turning = own.rotations
    if norm.eps == 0:
        yield "a QK-norm with eps 0 given; eps > 0 is required"
    if norm.bias:
        yield "a QK-norm with biases given; one without is required"
    if own.head_dim < 2:
        yield "a QK-norm of one coordinate given; at least 2 are required"
    if len(turning) < sum(turning.values()):
        yield "a QK-norm with equal rotary frequencies given; different ones are required"
    for name, count, read in (("queries", own.heads, queries), ("keys", own.groups, source)):
        rows = own.head_dim * (count if own.is_joint else 1)
        most = read.seen - read.is_round
        if rows > most:
            yield f"{rows} rows of {name} under one QK-norm given; at most {most} are required"
    spaces = len(turning) + bool(plain)
    if own.is_centred and spaces < 3:
        yield f"a QK-norm that takes means away from {spaces} rotated or unrotated parts given; 3 are required"


def _latents(own: GroupedAttention, latent: Latent, sublayer: Sublayer, queries: Stream) -> Iterator[str]:
    """Clause 4; queries may be read from the stream without a latent of their own."""
    plain, turning = own.rotations
    if sublayer.before is None or sublayer.before.kind != "rms":
        yield "latents without an RMS norm in front given; one is required"
    if own.shows_scores:
        yield f"latents with {SHOW_SCORES} given; none are required"
    if plain > own.unrotated or len(turning) < sum(turning.values()):
        yield "latents with equal or zero rotary frequencies given; different ones are required"
    ranks = {"key": (latent.key_rank, latent.key_norm)}
    if latent.query_rank is not None:
        ranks["query"] = (latent.query_rank, latent.query_norm)
    for name, (rank, norm) in ranks.items():
        if norm is None or norm.kind != "rms" or norm.eps == 0:
            yield f"a {name} latent without an RMS norm with eps > 0 given; one is required"
        if not 2 <= rank < queries.width:
            yield f"a {name} latent of rank {rank} given; 2 to {queries.width - 1} are required"
        if own.unrotated > rank:
            yield f"{own.unrotated} unrotated coordinates over a {name} latent of rank {rank} given; no more may be"
    if latent.query_rank is None and own.unrotated > queries.seen:
        yield f"{own.unrotated} unrotated coordinates of a head given; at most {queries.seen} are required"
    if own.value_dim > latent.key_rank:
        yield f"values of {own.value_dim} coordinates over a latent of rank {latent.key_rank} given; no more may be"


def _output(sublayer: Sublayer, norm: Norm, width: int) -> Iterator[str]:
    """Clause 5."""
    writer = sublayer.writer
    if writer is None:
        yield "an output norm after experts given; one after attention or a single MLP is required"
        return
    if norm.eps == 0:
        yield "an output norm with eps 0 given; eps > 0 is required"
    columns, bias = writer
    if bias:
        yield "a bias inside an output norm given; none is required"
    if columns < 2 or columns * (columns + 1) // 2 < width:
        yield f"an output norm of {columns} columns given; k >= 2 with k(k + 1)/2 >= {width} are required"


def _experts(experts: Experts) -> Iterator[str]:
    """Clause 6; that a correction leaves every expert a chance is a matter of its values."""
    if experts.router == "sparsemixer":
        yield "a router that draws one expert after the other given; softmax or sigmoid are required"
    if experts.scales_inputs:
        yield "scaled inputs of experts given; scaled outputs are required"
    if experts.active < 2:
        yield "one active expert given; at least two are required"
    compared = experts.router == "softmax" and experts.normalised
    if compared and experts.expert_groups > 1 and experts.active_groups < 2:
        yield "one kept group of experts under a normalised softmax given; at least two are required"
