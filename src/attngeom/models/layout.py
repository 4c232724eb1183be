"""Where the weights of a layer lie in a checkpoint: names and packings, read and written by the same tables.

A `BlockLayout` names the tensors of one block; `read_layer` turns them into `LayerWeights` and `write_layer` turns them
back, so a family is a table of names and not code. Rows of projections are outputs unless ``transposed`` (Conv1D).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from attngeom.errors import InputError
from attngeom.models.layer import (
    Affine,
    Array,
    AttentionWeights,
    ExpertsWeights,
    LatentWeights,
    LayerWeights,
    MLPWeights,
    NormWeights,
)
from attngeom.models.specification import MLP, Attention, Block, Experts, Norm

Load = Callable[[str, tuple[int, ...]], Array]
"""load(name, shape): the tensor as float64; the reader refuses another shape in one line."""


@dataclass(frozen=True)
class AttentionLayout:
    """``split``: query, key, value; ``stacked``: all q rows, all k, all v; ``grouped``: per group its q, k, v rows."""

    packing: Literal["split", "stacked", "grouped", "latent"]
    output: str
    query: str = ""
    key: str = ""
    value: str = ""
    fused: str = ""
    transposed: bool = False
    query_norm: str = ""
    key_norm: str = ""
    sinks: str = ""
    query_down: str = ""
    key_down: str = ""
    rotated_last: bool = False


@dataclass(frozen=True)
class MLPLayout:
    """``split``: up, down and gate if gated; ``fused``: gate rows over up rows; experts: one by one, or ``packed``."""

    packing: Literal["split", "fused", "experts", "packed_experts"]
    up: str
    down: str
    gate: str = ""
    transposed: bool = False
    router: str = ""
    correction: str = ""
    expert: str = ""
    shared: str = ""


@dataclass(frozen=True)
class BlockLayout:
    """Tensor names of one block below ``prefix``, which holds ``{}`` for the number of the layer."""

    prefix: str
    attention: AttentionLayout
    mlp: MLPLayout
    norms: Mapping[str, str] = field(default_factory=dict)
    cross: AttentionLayout | None = None
    experts: MLPLayout | None = None


def norm_specs(block: Block) -> dict[str, Norm]:
    """The norms that a block has, by the keys of `LayerWeights.norms`."""
    places = {"attention": block.attention_norms, "cross": block.cross_norms, "mlp": block.mlp_norms}
    found = {f"{part}.{place}": getattr(norms, place) for part, norms in places.items() for place in _PLACES}
    return {name: norm for name, norm in found.items() if norm is not None}


_PLACES = ("input", "output", "stream")


def read_layer(block: Block, layout: BlockLayout, index: int, width: int, load: Load, load_large: Load) -> LayerWeights:
    """The weights of layer ``index`` in normal form; ``load_large`` serves the MLP and may keep float32."""
    prefix = layout.prefix.format(index)

    def below(name: str, shape: tuple[int, ...]) -> Array:
        return load(prefix + name, shape)

    def large(name: str, shape: tuple[int, ...]) -> Array:
        return load_large(prefix + name, shape)

    if block.attention is None or block.mlp is None:
        raise InputError(f"layer {index} without attention or MLP given; both are required to read weights")
    cross = None
    if block.cross is not None and layout.cross is not None:
        cross = _read_attention(block.cross, layout.cross, width, below)
    norms = {name: _read_norm(norm, layout.norms[name], width, below) for name, norm in norm_specs(block).items()}
    attention = _read_attention(block.attention, layout.attention, width, below)
    mlp: MLPWeights | ExpertsWeights
    if isinstance(block.mlp, Experts):
        mlp = _read_experts(block.mlp, layout.experts or layout.mlp, width, large)
    else:
        mlp = _read_mlp(block.mlp, layout.mlp, width, large, "")
    return LayerWeights(attention, mlp, norms, cross)


def write_layer(block: Block, layout: BlockLayout, index: int, layer: LayerWeights) -> dict[str, Array]:
    """The tensors of layer ``index`` by name: the inverse of `read_layer`."""
    assert block.attention is not None
    tensors = _write_attention(block.attention, layout.attention, layer.attention)
    if block.cross is not None and layout.cross is not None and layer.cross is not None:
        tensors |= _write_attention(block.cross, layout.cross, layer.cross)
    for name, norm in norm_specs(block).items():
        tensors |= _write_norm(norm, layout.norms[name], layer.norms[name])
    if isinstance(block.mlp, Experts):
        assert isinstance(layer.mlp, ExpertsWeights)
        tensors |= _write_experts(block.mlp, layout.experts or layout.mlp, layer.mlp)
    elif block.mlp is not None:
        assert isinstance(layer.mlp, MLPWeights)
        tensors |= _write_mlp(block.mlp, layout.mlp, layer.mlp, "")
    prefix = layout.prefix.format(index)
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _read_norm(norm: Norm, name: str, width: int, load: Load) -> NormWeights:
    stored = load(f"{name}.weight", (width,)) if norm.gain else np.ones(width)
    bias = load(f"{name}.bias", (width,)) if norm.bias else np.zeros(width)
    return NormWeights(stored, bias, norm.offset)


def _write_norm(norm: Norm, name: str, weights: NormWeights) -> dict[str, Array]:
    tensors = {}
    if norm.gain:
        tensors[f"{name}.weight"] = weights.stored
    if norm.bias:
        tensors[f"{name}.bias"] = weights.bias
    return tensors


def read_norm(norm: Norm, name: str, width: int, load: Load) -> NormWeights:
    """The weights of a norm outside the layers."""
    return _read_norm(norm, name, width, load)


def write_norm(norm: Norm, name: str, weights: NormWeights) -> dict[str, Array]:
    """The tensors of a norm outside the layers."""
    return _write_norm(norm, name, weights)


def _linear(load: Load, name: str, rows: int, columns: int, bias: bool, transposed: bool) -> Affine:
    weight = load(f"{name}.weight", (columns, rows) if transposed else (rows, columns))
    offset = load(f"{name}.bias", (rows,)) if bias else np.zeros(rows, weight.dtype)
    return Affine(weight.T if transposed else weight, offset)


def _store(name: str, affine: Affine, bias: bool, transposed: bool) -> dict[str, Array]:
    tensors = {f"{name}.weight": affine.weight.T if transposed else affine.weight}
    if bias:
        tensors[f"{name}.bias"] = affine.bias
    return tensors


def _heads(affine: Affine, count: int) -> Affine:
    rows, columns = affine.weight.shape
    return Affine(affine.weight.reshape(count, rows // count, columns), affine.bias.reshape(count, rows // count))


def _flat(affine: Affine) -> Affine:
    return Affine(affine.weight.reshape(-1, affine.weight.shape[-1]), affine.bias.reshape(-1))


def pair_rows(attention: Attention, rotated_last: bool = False) -> tuple[Array, Array, Array]:
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
    weight = affine.weight[:, first] + 1j * affine.weight[:, second]
    turned = Affine(weight, affine.bias[:, first] + 1j * affine.bias[:, second])
    return turned, Affine(affine.weight[:, plain], affine.bias[:, plain])


def _unturn(turned: Affine, plain: Affine, rows: tuple[Array, Array, Array]) -> Affine:
    first, second, rest = rows
    heads, a = plain.weight.shape[0], len(first) + len(second) + len(rest)
    weight = np.zeros((heads, a, turned.weight.shape[-1]))
    bias = np.zeros((heads, a))
    weight[:, first], weight[:, second], weight[:, rest] = turned.weight.real, turned.weight.imag, plain.weight
    bias[:, first], bias[:, second], bias[:, rest] = turned.bias.real, turned.bias.imag, plain.bias
    return Affine(weight, bias)


def _read_attention(spec: Attention, layout: AttentionLayout, width: int, load: Load) -> AttentionWeights:
    if layout.packing == "latent":
        return _read_latent(spec, layout, width, load)
    heads, groups, a, v = spec.heads, spec.groups, spec.head_dim, spec.value_dim
    flags = (spec.query_bias, spec.key_bias, spec.value_bias)
    sizes = (heads * a, groups * a, groups * v)
    if layout.packing == "split":
        names = (layout.query, layout.key, layout.value)
        query, key, value = (
            _linear(load, name, rows, width, flag, layout.transposed) for name, rows, flag in zip(names, sizes, flags)
        )
    else:
        if len(set(flags)) > 1 or (layout.packing == "grouped" and v != a):
            raise InputError("a fused projection with different biases or widths of q, k, v given; not known")
        fused = _linear(load, layout.fused, sum(sizes), width, flags[0], layout.transposed)
        query, key, value = (fused.pick(rows) for rows in _fused_rows(spec, layout.packing))
    rows = pair_rows(spec)
    turned_query, plain_query = _turn(_heads(query, heads), rows)
    turned_key, plain_key = _turn(_heads(key, groups), rows)
    output = _linear(load, layout.output, width, heads * v, spec.output_bias, layout.transposed)
    query_gain = key_gain = None
    if spec.qk_norm is not None:
        shared, offset = spec.qk_norm.scope == "per_head", spec.qk_norm.norm.offset
        order = np.concatenate(rows)
        gains = [
            load(f"{name}.weight", (a if shared else count * a,)).reshape(-1, a)[:, order] + offset
            for name, count in ((layout.query_norm, heads), (layout.key_norm, groups))
        ]
        query_gain, key_gain = gains
    return AttentionWeights(
        turned_query, turned_key, plain_query, plain_key, _heads(value, groups),
        output.weight.reshape(width, heads, v).transpose(1, 0, 2), output.bias,
        query_gain, key_gain, load(layout.sinks, (heads,)) if spec.sinks else None,
    )  # fmt: skip


def _fused_rows(spec: Attention, packing: str) -> tuple[Array, Array, Array]:
    """Rows of q, k, v in a fused projection."""
    heads, groups, a, v = spec.heads, spec.groups, spec.head_dim, spec.value_dim
    every = np.arange(heads * a + groups * (a + v))
    if packing == "stacked":
        q, k, v_rows = np.split(every, [heads * a, (heads + groups) * a])
        return q, k, v_rows
    share = every.reshape(groups, heads // groups + 2, a)
    return share[:, :-2].reshape(-1), share[:, -2].reshape(-1), share[:, -1].reshape(-1)


def _write_attention(spec: Attention, layout: AttentionLayout, weights: AttentionWeights) -> dict[str, Array]:
    if layout.packing == "latent":
        return _write_latent(spec, layout, weights)
    rows = pair_rows(spec)
    query = _flat(_unturn(weights.turned_query, weights.query, rows))
    key = _flat(_unturn(weights.turned_key, weights.key, rows))
    value = _flat(weights.value)
    flags = (spec.query_bias, spec.key_bias, spec.value_bias)
    tensors: dict[str, Array] = {}
    if layout.packing == "split":
        for name, affine, flag in zip((layout.query, layout.key, layout.value), (query, key, value), flags):
            tensors |= _store(name, affine, flag, layout.transposed)
    else:
        count = sum(len(affine.bias) for affine in (query, key, value))
        weight, bias = np.zeros((count, query.weight.shape[1])), np.zeros(count)
        for place, affine in zip(_fused_rows(spec, layout.packing), (query, key, value)):
            weight[place], bias[place] = affine.weight, affine.bias
        tensors |= _store(layout.fused, Affine(weight, bias), flags[0], layout.transposed)
    tensors |= _store_output(spec, layout, weights)
    if spec.qk_norm is not None and weights.query_gain is not None and weights.key_gain is not None:
        back = np.argsort(np.concatenate(rows))
        offset = spec.qk_norm.norm.offset
        tensors[f"{layout.query_norm}.weight"] = weights.query_gain[:, back].reshape(-1) - offset
        tensors[f"{layout.key_norm}.weight"] = weights.key_gain[:, back].reshape(-1) - offset
    if weights.sinks is not None:
        tensors[layout.sinks] = weights.sinks
    return tensors


def _store_output(spec: Attention, layout: AttentionLayout, weights: AttentionWeights) -> dict[str, Array]:
    output = weights.output.transpose(1, 0, 2).reshape(weights.output.shape[1], -1)
    return _store(layout.output, Affine(output, weights.output_bias), spec.output_bias, layout.transposed)


def _read_latent(spec: Attention, layout: AttentionLayout, width: int, load: Load) -> AttentionWeights:
    assert spec.latent is not None
    heads, v, r, plain = spec.heads, spec.value_dim, spec.rotated, spec.unrotated
    rank, query_rank = spec.latent.key_rank, spec.latent.query_rank
    rows = pair_rows(spec, rotated_last=True)
    down = load(f"{layout.key_down}.weight", (rank + r, width))
    key_latent = LatentWeights(Affine.linear(down[:rank]), load(f"{layout.key_norm}.weight", (rank,)))
    first, second, _ = rows
    turned_key = Affine.linear((down[rank + first - plain] + 1j * down[rank + second - plain])[None])
    query_latent = None
    if query_rank is None:
        query = load(f"{layout.query}.weight", (heads * spec.head_dim, width))
    else:
        query_down = Affine.linear(load(f"{layout.query_down}.weight", (query_rank, width)))
        query_latent = LatentWeights(query_down, load(f"{layout.query_norm}.weight", (query_rank,)))
        query = load(f"{layout.fused}.weight", (heads * spec.head_dim, query_rank))
    turned_query, plain_query = _turn(_heads(Affine.linear(query), heads), rows)
    both = load(f"{layout.value}.weight", (heads * (plain + v), rank)).reshape(heads, plain + v, rank)
    output = _linear(load, layout.output, width, heads * v, spec.output_bias, False)
    return AttentionWeights(
        turned_query, turned_key, plain_query, Affine.linear(both[:, :plain]), Affine.linear(both[:, plain:]),
        output.weight.reshape(width, heads, v).transpose(1, 0, 2), output.bias,
        query_latent=query_latent, key_latent=key_latent,
    )  # fmt: skip


def _write_latent(spec: Attention, layout: AttentionLayout, weights: AttentionWeights) -> dict[str, Array]:
    assert weights.key_latent is not None
    rows = pair_rows(spec, rotated_last=True)
    first, second, _ = rows
    turned = np.zeros((spec.rotated, weights.turned_key.weight.shape[-1]))
    turned[first - spec.unrotated] = weights.turned_key.weight[0].real
    turned[second - spec.unrotated] = weights.turned_key.weight[0].imag
    query = _flat(_unturn(weights.turned_query, weights.query, rows)).weight
    both = np.concatenate([weights.key.weight, weights.value.weight], axis=1)
    tensors = {
        f"{layout.key_down}.weight": np.concatenate([weights.key_latent.down.weight, turned]),
        f"{layout.key_norm}.weight": weights.key_latent.gain,
        f"{layout.value}.weight": both.reshape(-1, both.shape[-1]),
    }
    if weights.query_latent is None:
        tensors[f"{layout.query}.weight"] = query
    else:
        tensors[f"{layout.query_down}.weight"] = weights.query_latent.down.weight
        tensors[f"{layout.query_norm}.weight"] = weights.query_latent.gain
        tensors[f"{layout.fused}.weight"] = query
    return tensors | _store_output(spec, layout, weights)


def _read_mlp(spec: MLP, layout: MLPLayout, width: int, load: Load, prefix: str) -> MLPWeights:
    m, flip = spec.width, layout.transposed
    gate = None
    if layout.packing == "fused":
        both = _linear(load, prefix + layout.up, 2 * m, width, spec.up_bias, flip)
        gate, up = both.pick(np.arange(m)), both.pick(np.arange(m, 2 * m))
    else:
        if spec.gated:
            gate = _linear(load, prefix + layout.gate, m, width, spec.up_bias, flip)
        up = _linear(load, prefix + layout.up, m, width, spec.up_bias, flip)
    down = _linear(load, prefix + layout.down, width, m, spec.down_bias, flip)
    return MLPWeights(gate, up, down.weight, down.bias)


def _write_mlp(spec: MLP, layout: MLPLayout, weights: MLPWeights, prefix: str) -> dict[str, Array]:
    flip = layout.transposed
    tensors = _store(prefix + layout.down, Affine(weights.down, weights.down_bias), spec.down_bias, flip)
    if layout.packing == "fused":
        assert weights.gate is not None
        weight = np.concatenate([weights.gate.weight, weights.up.weight])
        both = Affine(weight, np.concatenate([weights.gate.bias, weights.up.bias]))
        return tensors | _store(prefix + layout.up, both, spec.up_bias, flip)
    if weights.gate is not None:
        tensors |= _store(prefix + layout.gate, weights.gate, spec.up_bias, flip)
    return tensors | _store(prefix + layout.up, weights.up, spec.up_bias, flip)


def _read_experts(spec: Experts, layout: MLPLayout, width: int, load: Load) -> ExpertsWeights:
    count, m = spec.count, spec.expert.width
    router = _linear(load, layout.router, count, width, spec.router_bias, False)
    correction = load(layout.correction, (count,)) if spec.correction else None
    if layout.packing == "packed_experts":
        # Columns of the packed tensor alternate between gate and up.
        up = load(layout.up, (count, width, 2 * m)).transpose(0, 2, 1)
        up_bias = load(f"{layout.up}_bias", (count, 2 * m))
        down = load(layout.down, (count, m, width)).transpose(0, 2, 1)
        down_bias = load(f"{layout.down}_bias", (count, width))
        experts = tuple(
            MLPWeights(
                Affine(up[e, 0::2], up_bias[e, 0::2]), Affine(up[e, 1::2], up_bias[e, 1::2]), down[e], down_bias[e]
            )
            for e in range(count)
        )
    else:
        experts = tuple(_read_mlp(spec.expert, layout, width, load, layout.expert.format(e)) for e in range(count))
    shared = None if spec.shared is None else _read_mlp(spec.shared, layout, width, load, layout.shared)
    return ExpertsWeights(router, correction, experts, shared)


def _write_experts(spec: Experts, layout: MLPLayout, weights: ExpertsWeights) -> dict[str, Array]:
    tensors = _store(layout.router, weights.router, spec.router_bias, False)
    if weights.correction is not None:
        tensors[layout.correction] = weights.correction
    if layout.packing == "packed_experts":
        gates = [expert.gate for expert in weights.experts if expert.gate is not None]
        ups = [expert.up for expert in weights.experts]
        rows = np.stack([np.stack([g.weight, u.weight], axis=1) for g, u in zip(gates, ups)])
        bias = np.stack([np.stack([g.bias, u.bias], axis=1) for g, u in zip(gates, ups)])
        tensors[layout.up] = rows.reshape(spec.count, -1, rows.shape[-1]).transpose(0, 2, 1)
        tensors[f"{layout.up}_bias"] = bias.reshape(spec.count, -1)
        tensors[layout.down] = np.stack([expert.down.T for expert in weights.experts])
        tensors[f"{layout.down}_bias"] = np.stack([expert.down_bias for expert in weights.experts])
    else:
        for e, expert in enumerate(weights.experts):
            tensors |= _write_mlp(spec.expert, layout, expert, layout.expert.format(e))
    if spec.shared is not None and weights.shared is not None:
        tensors |= _write_mlp(spec.shared, layout, weights.shared, layout.shared)
    return tensors
