"""A small model of the same kind: the same options everywhere, sizes of a few units."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from attngeom.models.specification import (
    MLP,
    Experts,
    GroupedAttention,
    Norms,
    RecurrentMixer,
    Rotary,
    Stack,
    TransformerBlock,
    TransformerSpec,
)
from attngeom.models.surroundings import sublayers

SMALL_WIDTH = 6
WIDTH_FOR_JOINT_NORMS = 10
VOCABULARY, VOCABULARY_FOR_JOINT_NORMS = 20, 32
UNITS, UNITS_FOR_JOINT_NORMS = 4, 12
SMALL_TABLE = 4
"""Rows of a table of relative positions."""


def shrink(spec: TransformerSpec) -> TransformerSpec:
    """A description with every kind of block of ``spec`` once (one kind: twice) and a handful of dimensions each.

    Kept are all options, equal and zero rotary frequencies, whether heads share keys, whether the values of all
    groups fill the stream, and whether a window hides distances; a front end is left out.

    >>> from attngeom.models.presets import published
    >>> small = shrink(published("llama-3-8b"))
    >>> small.width, small.layers, small.parameters
    (6, 2, 846)
    """
    width = small_width(spec)
    stacks = tuple(_shrink_stack(stack, spec.width, width) for stack in spec.stacks)
    vocabulary = min(spec.vocabulary, VOCABULARY if width <= SMALL_WIDTH else VOCABULARY_FOR_JOINT_NORMS)
    return replace(spec, width=width, stacks=stacks, vocabulary=vocabulary, other_parameters=0)


def one_layer(spec: TransformerSpec) -> TransformerSpec:
    """The first layer of every stack alone."""
    return replace(spec, stacks=tuple(replace(stack, order=stack.order[:1]) for stack in spec.stacks))


def small_width(spec: TransformerSpec) -> int:
    """6, or 10 if one norm covers all heads: its rows have to fit into the width."""
    joint = any(
        part.map.is_joint or part.map.is_centred
        for stack in spec.stacks
        for block in stack.kinds
        for part in sublayers(block)
        if isinstance(part.map, GroupedAttention)
    )
    return min(spec.width, WIDTH_FOR_JOINT_NORMS if joint else SMALL_WIDTH)


def _shrink_stack(stack: Stack, width: int, small: int) -> Stack:
    """Kinds that become equal are merged."""
    used = dict.fromkeys(shrink_block(stack.kinds[kind], width, small) for kind in stack.order)
    kinds = tuple(used)
    layers = len(kinds) if len(kinds) > 1 else min(2, len(stack))
    return replace(
        stack,
        kinds=kinds,
        order=tuple(index % len(kinds) for index in range(layers)) if kinds else (),
        positions=min(stack.positions, 3 + stack.unread_positions),
        token_types=min(stack.token_types, 2),
        relative_buckets=min(stack.relative_buckets, SMALL_TABLE),
    )


def shrink_block(block: TransformerBlock, width: int, small: int) -> TransformerBlock:
    """The block with small sizes at the small width."""
    return replace(
        block,
        attention=None if block.attention is None else _shrink_attention(block.attention, width, small),
        mixer=None if block.mixer is None else _shrink_mixer(block.mixer),
        cross=None if block.cross is None else _shrink_attention(block.cross, width, small),
        mlp=None if block.mlp is None else _shrink_mlp(block.mlp, block.mlp_norms, small),
    )


def _shrink_mixer(mixer: RecurrentMixer) -> RecurrentMixer:
    groups, share = min(mixer.groups, 2), min(mixer.heads // mixer.groups, 2)
    a, v = min(mixer.head_dim, 2), min(mixer.value_dim, 2)
    return replace(mixer, heads=groups * share, groups=groups, head_dim=a, value_dim=v, taps=min(mixer.taps, 2))


def _shrink_attention(attention: GroupedAttention, width: int, small: int) -> GroupedAttention:
    # The mean of a head ties its pairs: three of them are the least for which nothing else is lost.
    rotary = None if attention.rotary is None else _shrink_rotary(attention.rotary, 3 if attention.is_centred else 2)
    plain = min(attention.unrotated, 2)
    shared = min(attention.heads // attention.groups, 2)
    groups = min(attention.groups, 2)
    if attention.is_joint and shared > 1:
        groups = 1
    fill = attention.groups * attention.value_dim >= width
    value_dim = -(-small // groups) if fill else min(attention.value_dim, 2)
    latent = attention.latent
    if latent is not None:
        shared, groups, value_dim = 1, min(attention.heads, 2), min(attention.value_dim, 2)
        query_rank = None if latent.query_rank is None else min(latent.query_rank, 4)
        latent = replace(latent, query_rank=query_rank, key_rank=min(latent.key_rank, 3))
    return replace(
        attention,
        heads=shared * groups,
        groups=groups,
        head_dim=plain + (0 if rotary is None else rotary.dims),
        value_dim=value_dim,
        rotary=rotary,
        latent=latent,
        relative=None if attention.relative is None else attention.relative.shrunk(SMALL_TABLE),
        window=_shrink_reach(attention, attention.window, 0 if rotary is None else rotary.dims),
        chunk=_shrink_reach(attention, attention.chunk, 0 if rotary is None else rotary.dims),
    )


def _shrink_reach(attention: GroupedAttention, reach: int | None, rotated: int) -> int | None:
    """A window or chunk that shows as many tokens as the rotation needs is no limit; a smaller one stays one."""
    if reach is None or reach > max(2, attention.rotated):
        return None
    return min(reach, max(1, rotated))


def _shrink_rotary(rotary: Rotary, count: int) -> Rotary:
    """``count`` frequencies, one of them twice if there are equal ones, and 0 if it occurs."""
    counts = Counter(rotary.frequencies)
    still = [0.0] if counts.pop(0.0, 0) else []
    kept = sorted(counts, key=lambda frequency: (-counts[frequency], -frequency))[:count]
    if kept and counts[kept[0]] > 1:
        kept.insert(0, kept[0])
    frequencies = tuple(kept + still)
    return replace(rotary, dims=2 * len(frequencies), frequencies=frequencies)


def _shrink_mlp(mlp: MLP | Experts, norms: Norms, small: int) -> MLP | Experts:
    """Four hidden units, or three experts; after an output norm the units have to fix its gains and the stream."""
    if isinstance(mlp, MLP):
        many = norms.output is not None and small > SMALL_WIDTH
        return replace(mlp, width=min(mlp.width, UNITS_FOR_JOINT_NORMS if many else UNITS))
    width = 2 if norms.output is None else 4
    count = min(mlp.count, 3)
    return replace(
        mlp,
        expert=replace(mlp.expert, width=min(mlp.expert.width, width)),
        shared=None if mlp.shared is None else replace(mlp.shared, width=min(mlp.shared.width, width)),
        count=count,
        active=count if mlp.active == mlp.count else min(mlp.active, 2),
        expert_groups=1,
        active_groups=1,
    )
