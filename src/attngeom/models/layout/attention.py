"""Attention as tensors: split, stacked or grouped projections, rotary pairs in both layouts, latents."""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LatentWeights
from attngeom.models.layout.tables import AttentionLayout, Load, join_heads, read_linear, split_heads, store_linear
from attngeom.models.specification import GroupedAttention, QKNorm

Rows = Array | slice
PARTITIONS = 4
"""In how many parts CodeGen stores its heads."""


def pair_rows(attention: GroupedAttention, rotated_last: bool = False) -> tuple[Array, Array, Array]:
    """Rows of a head that are first and second in the rotated pairs, and the rows that are not rotated."""
    r, a = attention.rotated, attention.head_dim
    start = a - r if rotated_last else 0
    plain = np.arange(0, a - r) if rotated_last else np.arange(r, a)
    if attention.rotary is not None and attention.rotary.layout == "interleaved":
        return start + np.arange(0, r, 2), start + np.arange(1, r, 2), plain
    return start + np.arange(r // 2), start + np.arange(r // 2, r), plain


def _turn(affine: Affine, rows: tuple[Array, Array, Array]) -> tuple[Affine, Affine]:
    """Split heads (H, a, ·) into complex rotated rows and plain rows."""
    first, second, plain = rows
    heads, _, width = affine.weight.shape
    weight = np.empty((heads, len(first), width), dtype=np.complex128)
    weight.real, weight.imag = affine.weight[:, _span(first)], affine.weight[:, _span(second)]
    rotated = Affine(weight, affine.bias[:, first] + 1j * affine.bias[:, second])
    if not len(first):
        return rotated, affine  # all rows are plain: no copy
    return rotated, Affine(affine.weight[:, plain], affine.bias[:, plain])


def _span(places: Array) -> Array | slice:
    """Places as a slice where they are one, which copies nothing."""
    steps = np.unique(np.diff(places))
    if len(places) < 2 or len(steps) > 1 or steps[0] <= 0:
        return places
    return slice(int(places[0]), int(places[-1]) + 1, int(steps[0]))


def _unrotate(rotated: Affine, plain: Affine, rows: tuple[Array, Array, Array]) -> Affine:
    first, second, rest = rows
    heads, a = plain.weight.shape[0], len(first) + len(second) + len(rest)
    weight = np.zeros((heads, a, rotated.weight.shape[-1]))
    bias = np.zeros((heads, a))
    weight[:, first], weight[:, second], weight[:, rest] = rotated.weight.real, rotated.weight.imag, plain.weight
    bias[:, first], bias[:, second], bias[:, rest] = rotated.bias.real, rotated.bias.imag, plain.bias
    return Affine(weight, bias)


def read_attention(spec: GroupedAttention, layout: AttentionLayout, width: int, load: Load) -> AttentionWeights:
    if layout.packing == "latent":
        return _read_latent(spec, layout, width, load)
    heads, groups, a, v = spec.heads, spec.groups, spec.head_dim, spec.value_dim
    flags = (spec.query_bias, spec.key_bias, spec.value_bias)
    sizes = (heads * (a + v * spec.output_gate), groups * a, groups * v)
    gate = None
    if spec.output_gate and layout.packing != "split":
        raise InputError("a fused projection with a gate of the output given; not known")
    if layout.packing == "split":
        names = (layout.query, layout.key, layout.value)
        query, key, value = (
            read_linear(load, name, rows, width, flag, layout.transposed)
            for name, rows, flag in zip(names, sizes, flags)
        )
    else:
        if len(set(flags)) > 1 or (layout.packing == "grouped" and v != a):
            raise InputError("a fused projection with different biases or widths of q, k, v given; not known")
        fused = read_linear(load, layout.fused, sum(sizes), width, flags[0], layout.transposed)
        query, key, value = (fused.pick(rows) for rows in _fused_rows(spec, layout.packing))
    rows = pair_rows(spec)
    if spec.output_gate:
        # Each head has its rows of the query, then those of the gate.
        both = split_heads(query, heads)
        query, gate = (
            join_heads(Affine(both.weight[:, :a], both.bias[:, :a])),
            Affine(both.weight[:, a:], both.bias[:, a:]),
        )
    rotated_query, plain_query = _turn(split_heads(query, heads), rows)
    rotated_key, plain_key = _turn(split_heads(key, groups), rows)
    output = read_linear(load, layout.output, width, heads * v, spec.output_bias, layout.transposed)
    query_gain = key_gain = rests = None
    shifts: list[Array | None] = [None, None]
    if spec.qk_norm is not None:
        offset, order = spec.qk_norm.norm.offset, np.concatenate(rows)
        stored = (
            [
                load(f"{name}.weight", _gain_shape(spec.qk_norm, count, a)).reshape(-1, a)[:, order]
                for name, count in ((layout.query_norm, heads), (layout.key_norm, groups))
            ]
            if spec.qk_norm.norm.gain
            else [np.ones((1, a))] * 2
        )
        query_gain, key_gain = (gain + offset for gain in stored)
        if spec.shifts_heads:
            norms = ((layout.query_norm, heads), (layout.key_norm, groups))
            shapes = ((f"{name}.bias", _gain_shape(spec.qk_norm, count, a)) for name, count in norms)
            shifts = [load(name, shape).reshape(-1, a)[:, order] for name, shape in shapes]
        if offset:
            rests = two_sum_rest(stored[0], offset), two_sum_rest(stored[1], offset)
    return AttentionWeights(
        rotated_query, rotated_key, plain_query, plain_key, split_heads(value, groups),
        output.weight.reshape(width, heads, v).transpose(1, 0, 2), output.bias,
        query_gain, key_gain, load(layout.extras["sinks"], (heads,)) if spec.sinks else None,
        gain_rests=rests,
        relative=None if spec.relative is None else load(layout.extras["relative"], (spec.relative.rows, heads)).T,
        output_gate=gate, query_shift=shifts[0], key_shift=shifts[1],
    )  # fmt: skip


def two_sum_rest(values: Array, offset: float) -> Array:
    """What the float sum values + offset lacks to the exact one, as a float (Knuth's TwoSum).

    >>> float(two_sum_rest(np.array([1e-20]), 1.0)[0])
    1e-20
    """
    total = values + offset
    back = total - values
    return np.asarray((values - (total - back)) + (offset - back))


def _gain_shape(qk_norm: QKNorm, heads: int, a: int) -> tuple[int, ...]:
    """The stored shape: one vector for all heads, one row for each, or all in one vector."""
    return {"per_head": (a,), "each_head": (heads, a), "all_heads": (heads * a,)}[qk_norm.scope]


def _fused_rows(spec: GroupedAttention, packing: str) -> tuple[Rows, Rows, Rows]:
    """Rows of q, k, v in a fused projection."""
    heads, groups, a, v = spec.heads, spec.groups, spec.head_dim, spec.value_dim
    if packing == "stacked":
        return slice(heads * a), slice(heads * a, (heads + groups) * a), slice((heads + groups) * a, None)
    if packing == "partitioned":
        query, value, key = np.arange(3 * heads * a).reshape(PARTITIONS, 3, -1).transpose(1, 0, 2).reshape(3, -1)
        return query, key, value
    share = np.arange(heads * a + groups * (a + v)).reshape(groups, heads // groups + 2, a)
    return share[:, :-2].reshape(-1), share[:, -2].reshape(-1), share[:, -1].reshape(-1)


def write_attention(spec: GroupedAttention, layout: AttentionLayout, weights: AttentionWeights) -> dict[str, Array]:
    if layout.packing == "latent":
        return _write_latent(spec, layout, weights)
    rows = pair_rows(spec)
    query = _unrotate(weights.rotated_query, weights.query, rows)
    if weights.output_gate is not None:
        weight = np.concatenate([query.weight, weights.output_gate.weight], axis=1)
        query = Affine(weight, np.concatenate([query.bias, weights.output_gate.bias], axis=1))
    query = join_heads(query)
    key = join_heads(_unrotate(weights.rotated_key, weights.key, rows))
    value = join_heads(weights.value)
    flags = (spec.query_bias, spec.key_bias, spec.value_bias)
    tensors: dict[str, Array] = {}
    if layout.packing == "split":
        for name, affine, flag in zip((layout.query, layout.key, layout.value), (query, key, value), flags):
            tensors |= store_linear(name, affine, flag, layout.transposed)
    else:
        count = sum(len(affine.bias) for affine in (query, key, value))
        weight, bias = np.zeros((count, query.weight.shape[1])), np.zeros(count)
        for place, affine in zip(_fused_rows(spec, layout.packing), (query, key, value)):
            weight[place], bias[place] = affine.weight, affine.bias
        tensors |= store_linear(layout.fused, Affine(weight, bias), flags[0], layout.transposed)
    tensors |= _store_output(spec, layout, weights)
    gained = spec.qk_norm is not None and spec.qk_norm.norm.gain
    if gained and spec.qk_norm is not None and weights.query_gain is not None and weights.key_gain is not None:
        back = np.argsort(np.concatenate(rows))
        for name, gain in ((layout.query_norm, weights.query_gain), (layout.key_norm, weights.key_gain)):
            shape = _gain_shape(spec.qk_norm, *gain.shape)
            tensors[f"{name}.weight"] = gain[:, back].reshape(shape) - spec.qk_norm.norm.offset
        for name, shift in ((layout.query_norm, weights.query_shift), (layout.key_norm, weights.key_shift)):
            if shift is not None:
                tensors[f"{name}.bias"] = shift[:, back].reshape(_gain_shape(spec.qk_norm, *shift.shape))
    tensors |= {layout.extras[part]: table.T for part, table in weights.head_tables.items()}
    return tensors | {layout.extras[part]: values for part, values in weights.head_numbers.items()}


def _store_output(spec: GroupedAttention, layout: AttentionLayout, weights: AttentionWeights) -> dict[str, Array]:
    output = weights.output.transpose(1, 0, 2).reshape(weights.output.shape[1], -1)
    return store_linear(layout.output, Affine(output, weights.output_bias), spec.output_bias, layout.transposed)


def _read_latent(spec: GroupedAttention, layout: AttentionLayout, width: int, load: Load) -> AttentionWeights:
    assert spec.latent is not None
    heads, v, r, plain = spec.heads, spec.value_dim, spec.rotated, spec.unrotated
    rank, query_rank = spec.latent.key_rank, spec.latent.query_rank
    rows = pair_rows(spec, rotated_last=True)
    down = read_linear(load, layout.key_down, rank + r, width, spec.latent.bias, False)
    key_latent = LatentWeights(down.pick(np.arange(rank)), load(f"{layout.key_norm}.weight", (rank,)))
    first, second, _ = rows
    real, imag = down.pick(rank + first - plain), down.pick(rank + second - plain)
    rotated_key = Affine((real.weight + 1j * imag.weight)[None], (real.bias + 1j * imag.bias)[None])
    query_latent = None
    if query_rank is None:
        query = load(f"{layout.query}.weight", (heads * spec.head_dim, width))
    else:
        query_down = read_linear(load, layout.query_down, query_rank, width, spec.latent.bias, False)
        query_latent = LatentWeights(query_down, load(f"{layout.query_norm}.weight", (query_rank,)))
        query = load(f"{layout.fused}.weight", (heads * spec.head_dim, query_rank))
    rotated_query, plain_query = _turn(split_heads(Affine.linear(query), heads), rows)
    both = load(f"{layout.value}.weight", (heads * (plain + v), rank)).reshape(heads, plain + v, rank)
    output = read_linear(load, layout.output, width, heads * v, spec.output_bias, False)
    return AttentionWeights(
        rotated_query, rotated_key, plain_query, Affine.linear(both[:, :plain]), Affine.linear(both[:, plain:]),
        output.weight.reshape(width, heads, v).transpose(1, 0, 2), output.bias,
        query_latent=query_latent, key_latent=key_latent,
    )  # fmt: skip


def _write_latent(spec: GroupedAttention, layout: AttentionLayout, weights: AttentionWeights) -> dict[str, Array]:
    assert weights.key_latent is not None and spec.latent is not None
    rows = pair_rows(spec, rotated_last=True)
    first, second, _ = rows
    down, key = weights.key_latent.down, weights.rotated_key
    order = np.argsort(np.concatenate([first, second]))
    weight = np.concatenate([down.weight, np.concatenate([key.weight[0].real, key.weight[0].imag])[order]])
    bias = np.concatenate([down.bias, np.concatenate([key.bias[0].real, key.bias[0].imag])[order]])
    query = join_heads(_unrotate(weights.rotated_query, weights.query, rows)).weight
    both = np.concatenate([weights.key.weight, weights.value.weight], axis=1)
    tensors = {
        f"{layout.key_norm}.weight": weights.key_latent.gain,
        f"{layout.value}.weight": both.reshape(-1, both.shape[-1]),
    }
    tensors |= store_linear(layout.key_down, Affine(weight, bias), spec.latent.bias, False)
    if weights.query_latent is None:
        tensors[f"{layout.query}.weight"] = query
    else:
        tensors |= store_linear(layout.query_down, weights.query_latent.down, spec.latent.bias, False)
        tensors[f"{layout.query_norm}.weight"] = weights.query_latent.gain
        tensors[f"{layout.fused}.weight"] = query
    return tensors | _store_output(spec, layout, weights)
