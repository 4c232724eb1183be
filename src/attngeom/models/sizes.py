"""Two models of other sizes, brought to the same ones without a change of their functions, exactly.

Blocks that write nothing are left out; equal experts are one MLP; units and heads that contribute nothing are left out,
and the shorter model gets as many units and heads of zeros as the other one has more. Only exact zeros and equal
entries count.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.work import BEGINNING
from attngeom.models.affine import Affine
from attngeom.models.crews import Crew, each_layer
from attngeom.models.layer import (
    AttentionWeights,
    ExpertsWeights,
    LayerWeights,
    MLPWeights,
    NormWeights,
    parts_of,
)
from attngeom.models.model import Model
from attngeom.models.specification import MLP, Experts, GroupedAttention, TransformerBlock
from attngeom.models.views import expanded

Units = MLP | Experts | None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Resized(Model):
    """A model of which some layers were left out, and whose layers have other numbers of units and heads."""

    source: Model
    kept: tuple[int, ...] = ()
    """The layers of the source that are left."""
    wanted: tuple[TransformerBlock, ...] = field(default=())
    """The kind of each of these layers after the change."""

    def layer(self, layer: int) -> LayerWeights:
        return _fit(self.source.block(self.kept[layer]), self.wanted[layer], self.source.layer(self.kept[layer]))

    def origin(self, layer: int) -> tuple[Model, int]:
        return self.source, self.kept[layer]


def match_sizes(one: Model, other: Model, crew: Crew = 1) -> tuple[Model, Model] | None:
    """Both models with equal numbers of layers, units and heads; None if nothing can be left out of either.

    Every layer is read once, by a ``crew``.
    """
    models = one, other
    if [stack.name for stack in one.spec.stacks] != [stack.name for stack in other.spec.stacks]:
        return None
    items = [(model, layer) for model in models for layer in range(model.layers)]
    surveys = each_layer(_survey, items, crew)
    lives = [surveys[: one.layers], surveys[one.layers :]]
    kept = [[layer for layer, live in enumerate(own) if live is not None] for own in lives]
    sizes = [_stack_sizes(model, layers) for model, layers in zip(models, kept)]
    if sizes[0] != sizes[1] or one.spec.width != other.spec.width:
        return None
    ordered = [any(stack.relative_buckets for stack in model.spec.stacks) for model in models]
    pairs: list[tuple[TransformerBlock, TransformerBlock]] = []
    is_changed = any(len(layers) < model.layers for model, layers in zip(models, kept))
    for places in zip(*kept):
        blocks = [model.block(place) for model, place in zip(models, places)]
        parts = [live for own, place in zip(lives, places) if (live := own[place]) is not None]
        wanted = _common(blocks, parts, heads=not any(ordered))
        is_changed |= any(new != block for new, block in zip(wanted, blocks))
        is_changed |= any(live.units < _units(block.mlp) for block, live in zip(blocks, parts))
        pairs.append((wanted[0], wanted[1]))
    if not is_changed:
        return None
    return _resize(one, kept[0], [pair[0] for pair in pairs]), _resize(other, kept[1], [pair[1] for pair in pairs])


def one_layer(model: Model, layer: int) -> Resized:
    """The model with one layer alone, in the place of all."""
    return _resize(model, [layer], [model.block(layer)])


def _resize(model: Model, kept: list[int], wanted: list[TransformerBlock]) -> Resized:
    stacks, start, place = [], 0, 0
    for stack in model.spec.stacks:
        own = [layer for layer in kept if start <= layer < start + len(stack)]
        blocks = wanted[place : place + len(own)]
        kinds = tuple(dict.fromkeys(blocks))
        order = tuple(kinds.index(block) for block in blocks)
        path = tuple(own.index(start + layer) for layer in stack.path if start + layer in own)
        stacks.append(replace(stack, kinds=kinds or stack.kinds, order=order, path=path))
        start, place = start + len(stack), place + len(own)
    fields = {name: getattr(model, name) for name in Model.__dataclass_fields__ if name != "spec"}
    spec = replace(model.spec, stacks=tuple(stacks))
    return Resized(spec=spec, **fields, source=model, kept=tuple(kept), wanted=tuple(wanted))


def _stack_sizes(model: Model, kept: list[int]) -> list[int]:
    ends = np.cumsum([0, *map(len, model.spec.stacks)])
    return [sum(1 for layer in kept if low <= layer < high) for low, high in pairwise(ends)]


def _survey(model: Model, layer: int) -> LiveParts | None:
    """What of a layer contributes; None if it writes nothing into the stream."""
    block, weights = model.block(layer), model.layer(layer)
    return None if _is_identity(block, weights) else _live_parts(block, weights)


def is_whole(block: TransformerBlock, weights: LayerWeights) -> bool:
    """Whether nothing of a layer can be left out, as `match_sizes` would: all parts contribute, experts differ."""
    if _is_identity(block, weights):
        return False
    live, own = _live_parts(block, weights), 0 if weights.attention is None else weights.attention.heads
    return (live.units, live.heads) == (_units(block.mlp), own) and (live.dense is None or isinstance(block.mlp, MLP))


def _is_identity(block: TransformerBlock, weights: LayerWeights) -> bool:
    """Whether a block adds nothing: zeros come out of every sublayer, and norms behind them keep zeros."""
    if any(norms.stream is not None for norms in block.norms):
        return False
    silent = [
        _is_silent(weights.norms.get(f"{place}.output"), own.output, own.output_bias)
        for place, own in weights.writers.items()
    ]
    output = weights.norms.get("mlp.output")
    silent += [_is_silent(output, mlp.down, mlp.down_bias) for mlp in weights.hidden.values()]
    epsilons = [norms.output.eps for norms in block.norms if norms.output is not None]
    return all(silent) and all(eps > 0 for eps in epsilons)


def _is_silent(norm: NormWeights | None, *written: Array) -> bool:
    if norm is not None and np.any(norm.bias):
        return False
    return not any(np.any(part) for part in written) or (norm is not None and not np.any(norm.gain))


# One layer


@dataclass(frozen=True)
class LiveParts:
    """What of a layer contributes: units of its MLPs, heads; the dense kind that its MLP is, and the units of that."""

    units: int
    heads: int
    dense: MLP | None
    dense_units: int


def _live_parts(block: TransformerBlock, layer: LayerWeights) -> LiveParts:
    dense = _as_dense(block.mlp, layer)
    units = _live_units(block.mlp, layer)
    of_dense = units if dense is None or isinstance(block.mlp, MLP) else _live_units(dense, layer)
    heads = 0 if layer.attention is None else len(_live_heads(layer.attention))
    return LiveParts(units=units, heads=heads, dense=dense, dense_units=of_dense)


def _common(
    blocks: list[TransformerBlock], parts: list[LiveParts], *, heads: bool
) -> tuple[TransformerBlock, TransformerBlock]:
    """The kinds that both layers can have: dense where experts are equal, with the larger number of live parts."""
    mlps: list[Units] = [block.mlp for block in blocks]
    width = max(1, *(live.units for live in parts))
    if all(live.dense is not None for live in parts) and any(isinstance(mlp, Experts) for mlp in mlps):
        mlps = [live.dense for live in parts]
        width = max(1, *(live.dense_units for live in parts))
    mlps = [_with_units(mlp, width) for mlp in mlps]
    attentions, count = [block.attention for block in blocks], max(live.heads for live in parts)
    whole = [own is not None and own.heads == count for own in attentions]
    if heads and not all(whole) and count and all(_can_drop_heads(own) for own in attentions):
        attentions = [replace(own, heads=count, groups=count) for own in attentions if own is not None]
    first, second = (replace(block, mlp=mlp, attention=own) for block, mlp, own in zip(blocks, mlps, attentions))
    return first, second


def _can_drop_heads(spec: GroupedAttention | None) -> bool:
    plain = spec is not None and not spec.alibi and not spec.is_joint and not spec.output_gate
    return plain and spec is not None and spec.latent is None


def _live_heads(weights: AttentionWeights) -> Array:
    writes = np.any(weights.output.reshape(weights.heads, -1), axis=1)
    reads = np.any(weights.value.rows.reshape(weights.groups, -1), axis=1)
    return np.flatnonzero(writes & np.repeat(reads, weights.heads // weights.groups))


def _units(spec: Units) -> int:
    return spec.expert.width if isinstance(spec, Experts) else 0 if spec is None else spec.width


def _with_units(spec: Units, width: int) -> Units:
    if isinstance(spec, Experts):
        return replace(spec, expert=replace(spec.expert, width=width))
    return None if spec is None else replace(spec, width=width)


def _live_units(spec: Units, layer: LayerWeights) -> int:
    """The largest number of units of one MLP that contribute something."""
    mlp = layer.mlp
    if mlp is None:
        return 0
    if isinstance(mlp, MLPWeights):
        assert isinstance(spec, MLP)
        return int(is_live(spec, mlp).sum())
    if isinstance(spec, Experts):
        return max(int(is_live(spec.expert, expert).sum()) for expert in mlp.experts)
    assert spec is not None
    return int(is_live(spec, _one_of(mlp, 1.0)).sum())


def _any_of_rows(matrix: Array) -> Array:
    """Per row, whether an entry is not zero; the first columns tell of most matrices."""
    beginning = np.any(matrix[:, :BEGINNING], axis=1)
    return np.asarray(beginning if beginning.all() else np.any(matrix, axis=1))


def is_live(spec: MLP, mlp: MLPWeights) -> Array:
    """Per unit, whether it can add something: it writes, and what it multiplies or activates is not always zero."""

    def reads(reader: Affine) -> Array:
        return np.asarray(_any_of_rows(reader.weight) | (reader.bias != 0))

    live = _any_of_rows(mlp.down.T)
    if spec.activation != "sigmoid":  # φ(0) = 0
        live = live & reads(mlp.up if mlp.gate is None else mlp.gate)
    if mlp.gate is not None and spec.activation != "swiglu_oai":
        live = live & reads(mlp.up)
    return np.asarray(live)


def _as_dense(spec: Units, layer: LayerWeights) -> MLP | None:
    """The dense kind that the MLP of a layer is: itself, or its experts if they are equal and their weights fixed."""
    if not isinstance(spec, Experts):
        return spec
    mlp = layer.mlp
    assert isinstance(mlp, ExpertsWeights)
    fixed = spec.normalised or (spec.router == "softmax" and spec.active == spec.count)
    if not fixed or spec.shared is not None:
        return None
    first = parts_of(LayerWeights(None, mlp.experts[0]))
    for expert in mlp.experts[1:]:
        other = parts_of(LayerWeights(None, expert))
        if any(not np.array_equal(first[name], other[name]) for name in first):
            return None
    return spec.expert


def _one_of(mlp: ExpertsWeights, factor: float) -> MLPWeights:
    expert = mlp.experts[0]
    return expert.with_(down=factor * expert.down, down_bias=factor * expert.down_bias)


def _fit(block: TransformerBlock, wanted: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """A layer of one kind as one of another kind that `_common` has found."""
    spec, mlp = block.mlp, layer.mlp
    if isinstance(spec, Experts) and isinstance(wanted.mlp, MLP):
        assert isinstance(mlp, ExpertsWeights)
        layer = layer.with_(mlp=_fit_units(spec.expert, _one_of(mlp, spec.factor), wanted.mlp.width))
    elif isinstance(mlp, MLPWeights):
        assert isinstance(spec, MLP) and isinstance(wanted.mlp, MLP)
        layer = layer.with_(mlp=_fit_units(spec, mlp, wanted.mlp.width))
    elif isinstance(spec, Experts) and isinstance(wanted.mlp, Experts):
        assert isinstance(mlp, ExpertsWeights)
        width = wanted.mlp.expert.width
        layer = layer.with_(mlp=mlp.with_(experts=tuple(_fit_units(spec.expert, e, width) for e in mlp.experts)))
    own, heads = layer.attention, wanted.attention
    if own is not None and heads is not None and (heads.heads != own.heads or heads != block.attention):
        layer = layer.with_(attention=_fit_heads(own, heads.heads))
    return layer


def _fit_units(spec: MLP, mlp: MLPWeights, width: int) -> MLPWeights:
    live = is_live(spec, mlp)
    if live.all() and len(live) == width:
        return mlp
    more = width - int(live.sum())

    def rows(reader: Affine) -> Affine:
        weight = np.pad(reader.weight[live], ((0, more), (0, 0)))
        return Affine(weight, np.pad(reader.bias[live], (0, more)))

    down = np.pad(mlp.down[:, live], ((0, 0), (0, more)))
    return mlp.with_(gate=None if mlp.gate is None else rows(mlp.gate), up=rows(mlp.up), down=down)


def _fit_heads(weights: AttentionWeights, count: int) -> AttentionWeights:
    """The heads that write, each with keys and values of its own, and heads of zeros."""
    live = _live_heads(weights)
    more = count - len(live)
    weights = expanded(weights) if weights.groups != weights.heads else weights

    def take(array: Array) -> Array:
        return np.pad(array[live], ((0, more), *((0, 0) for _ in array.shape[1:])))

    return weights.each_head(take, take)
