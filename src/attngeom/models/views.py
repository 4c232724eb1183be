"""A model as comparisons and canonical forms see it: folded layers, scale and amplitude in the queries, maybe rotated.

With ``scope`` model, the residual stream may be turned (RMSNorm, untied head: O(d)) and what is written along 1 is
dropped where every reader is a LayerNorm. `residual_rotation` finds the turn between two models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.models.folding import fold, reader_change
from attngeom.models.layer import (
    Affine,
    AttentionWeights,
    ExpertsWeights,
    LayerWeights,
    MLPWeights,
    NormWeights,
)
from attngeom.models.model import Model
from attngeom.models.readers import map_attention, map_cross_queries, map_mlp
from attngeom.models.specification import GroupedAttention, Norm, Stack, TransformerSpec


@dataclass(frozen=True, eq=False)
class ModelView:
    """Folded layers of a model; ``rotation`` turns the residual stream, ``flat`` drops what is written along 1."""

    model: Model
    rotation: Array | None = None
    flat: bool = False

    def memory(self) -> tuple[Norm, NormWeights] | None:
        """The final norm of the encoder that cross-attention reads through."""
        encoder = self.model.spec.stacks[0]
        if len(self.model.spec.stacks) < 2 or encoder.final_norm is None:
            return None
        weights = self.model.final_norm(encoder)
        return None if weights is None else (encoder.final_norm, weights)

    def layer(self, layer: int) -> LayerWeights:
        """The folded layer, in the turned stream."""
        return self.fold(layer, self.model.layer(layer))

    def fold(self, layer: int, stored: LayerWeights) -> LayerWeights:
        """The folded form of a layer that was read already."""
        block = self.model.block(layer)
        memory = self.memory() if block.cross is not None else None
        folded = fold(block, stored, memory)
        if self.flat:
            folded = _flatten_writers(folded)
        return folded if self.rotation is None else rotate_layer(folded, self.rotation)

    def embedding(self) -> Array:
        table, scale = self.model.embedding(), self.model.spec.embedding_scale
        table = table if scale == 1.0 else table * scale
        return self._write(table, self.flat and not _is_tied(self.model.spec))

    def positions(self, stack: Stack) -> Array | None:
        table = self.model.positions(stack)
        return None if table is None else self._write(table, self.flat)

    def _write(self, table: Array, flat: bool) -> Array:
        if flat:
            table = table - table.mean(axis=1, keepdims=True)
        return table if self.rotation is None else table @ self.rotation.T.astype(table.dtype)

    def head(self) -> Affine | None:
        """The head of an untied model as a reader of n, the final norm folded into it; None for a tied one."""
        return None if _is_tied(self.model.spec) else self.reader()

    def reader(self) -> Affine | None:
        """The head, tied or not, as a reader of n; None where the function is the hidden states."""
        spec = self.model.spec
        if spec.head is None:
            return None
        head = Affine.linear(self.model.head())
        if spec.head.bias:
            head = Affine(head.weight, self.model.load(self.model.places.head_bias, (spec.vocabulary,)))
        final = self.model.final_norm(spec.stack)
        if final is not None and spec.stack.final_norm is not None:
            head = reader_change(spec.stack.final_norm, final)("head", head)
        return (
            head
            if self.rotation is None
            else Affine(head.weight @ self.rotation.T.astype(head.weight.dtype), head.bias)
        )


def _is_tied(spec: TransformerSpec) -> bool:
    return spec.head is not None and spec.head.tied


def scaled_queries(spec: GroupedAttention | None, weights: AttentionWeights) -> AttentionWeights:
    """Scale and rotary amplitude multiplied into the queries (into their gains under a QK-norm)."""
    assert spec is not None
    amplitude = 1.0 if spec.rotary is None else spec.rotary.amplitude**2
    f = weights.turned_query.weight.shape[1]
    if weights.query_gain is not None:
        factors = np.full(weights.query_gain.shape[1], spec.scale)
        factors[: 2 * f] *= amplitude
        return weights.with_(query_gain=weights.query_gain * factors)
    turned, plain = weights.turned_query, weights.query
    return weights.with_(
        turned_query=Affine(turned.weight * (spec.scale * amplitude), turned.bias * (spec.scale * amplitude)),
        query=Affine(plain.weight * spec.scale, plain.bias * spec.scale),
    )


def check_rotation(spec: TransformerSpec) -> Norm:
    """The kind of norm whose stream may be turned; InputError if the architecture fixes the stream."""
    norms: set[Norm] = set()
    for stack in spec.stacks:
        for block in stack.kinds:
            for part in (block.attention_norms, block.mlp_norms):
                if part.output is not None or part.stream is not None:
                    raise InputError(f"{spec.family} has norms behind its sublayers, which fix the residual stream")
                if part.input is not None:
                    norms.add(part.input)
    if len(spec.stacks) > 1:
        raise InputError(f"{spec.family} has an encoder and a decoder; --scope model is known for one stack only")
    if _is_tied(spec) or spec.head is None or not norms:
        raise InputError(f"{spec.family} ties its head to the embedding or has none; no rotation of the stream is free")
    final = spec.stack.final_norm
    if final is None or spec.stack.embedding_norm is not None or len({norm.kind for norm in norms | {final}}) > 1:
        raise InputError(f"{spec.family} has a norm on its embedding or no final norm; the residual stream is fixed")
    return final


def can_flatten(spec: TransformerSpec) -> bool:
    """Whether every reader of the stream is a LayerNorm, so that what is written along 1 is never seen."""
    blocks = [block for stack in spec.stacks for block in stack.kinds]
    inputs = [block.attention_norms.input for block in blocks]
    inputs += [block.mlp_norms.input for block in blocks if not block.shared_norm]
    inputs += [block.cross_norms.input for block in blocks if block.cross is not None]
    inputs += [stack.final_norm for stack in spec.stacks]
    behind = any(p.output or p.stream for block in blocks for p in (block.attention_norms, block.mlp_norms))
    return not behind and all(norm is not None and norm.kind == "layer" for norm in inputs)


def rotate_layer(layer: LayerWeights, rotation: Array) -> LayerWeights:
    """A folded layer in the stream x' = R x: readers W Rᵀ, writers R W."""

    def change(name: str, reader: Affine) -> Affine:
        return Affine(reader.weight @ rotation.T.astype(reader.weight.real.dtype), reader.bias)

    attention = map_attention(layer.attention, change)
    layer = layer.with_(attention=_rotate_output(attention, rotation), mlp=map_mlp(layer.mlp, change))
    if layer.cross is not None:
        layer = layer.with_(cross=_rotate_output(map_cross_queries(layer.cross, change), rotation))
    return layer.with_(mlp=_map_writers(layer.mlp, lambda down: rotation.astype(down.dtype) @ down))


def _rotate_output(weights: AttentionWeights, rotation: Array) -> AttentionWeights:
    return weights.with_(output=rotation @ weights.output, output_bias=rotation @ weights.output_bias)


def _map_writers(mlp: MLPWeights | ExpertsWeights, change: object) -> MLPWeights | ExpertsWeights:
    def one(units: MLPWeights) -> MLPWeights:
        return units.with_(down=change(units.down), down_bias=change(units.down_bias))  # type: ignore[operator]

    if isinstance(mlp, MLPWeights):
        return one(mlp)
    shared = None if mlp.shared is None else one(mlp.shared)
    return mlp.with_(experts=tuple(map(one, mlp.experts)), shared=shared)


def _flatten_writers(layer: LayerWeights) -> LayerWeights:
    def flat(array: Array) -> Array:
        return np.asarray(array - array.mean(axis=0))

    def attention(weights: AttentionWeights) -> AttentionWeights:
        output = weights.output - weights.output.mean(axis=1, keepdims=True)
        return weights.with_(output=output, output_bias=flat(weights.output_bias))

    crossed = None if layer.cross is None else attention(layer.cross)
    return layer.with_(attention=attention(layer.attention), cross=crossed, mlp=_map_writers(layer.mlp, flat))


def _stream_tables(view: ModelView) -> Array:
    """Rows that turn with the stream: the embedding, and the head with the final norm folded in, of equal weight."""
    head = view.head()
    assert head is not None
    tables = [np.asarray(table, dtype=np.float64) for table in (view.embedding(), head.weight)]
    return np.concatenate([table / np.linalg.norm(table) for table in tables])


def residual_rotation(one: Model, other: Model) -> Array:
    """R with other's tables times Rᵀ nearest to one's (orthogonal Procrustes); R 1 = 1 under LayerNorm."""
    norm = check_rotation(one.spec)
    left, right = (_stream_tables(ModelView(model, flat=norm.kind == "layer")) for model in (one, other))
    return _polar(left.T @ right, norm)


def canonical_rotation(model: Model) -> Array:
    """The turn that makes the Gram matrix of embedding and head diagonal, decreasing, signs by the largest entries."""
    norm = check_rotation(model.spec)
    if norm.kind == "layer":
        raise InputError("a LayerNorm model given; its canonical residual stream is not known, use --scope layer")
    table = _stream_tables(ModelView(model))
    vectors = lapack.eigh(table.T @ table)[1][:, ::-1]
    columns = table @ vectors
    places = np.abs(columns).argmax(axis=0)
    signs = np.where(columns[places, np.arange(len(places))] < 0, -1.0, 1.0)
    return np.asarray((vectors * signs).T)


def random_rotation(model: Model, rng: np.random.Generator) -> Array:
    """A random turn of the residual stream, fixing 1 under LayerNorm."""
    norm = check_rotation(model.spec)
    return _polar(rng.normal(size=(model.spec.width, model.spec.width)), norm)


def _polar(matrix: Array, norm: Norm) -> Array:
    """The orthogonal factor; under LayerNorm that of the matrix on the complement of 1, and 1 is fixed."""
    d = len(matrix)
    if norm.kind == "rms":
        u, _, w = lapack.svd(matrix)
        return np.asarray(u @ w)
    ones = np.full((d, 1), d**-0.5)
    rest = lapack.qr(np.concatenate([ones, np.eye(d)[:, 1:]], axis=1))[0][:, 1:]
    u, _, w = lapack.svd(rest.T @ matrix @ rest)
    return np.asarray(ones @ ones.T + rest @ u @ w @ rest.T)


def expanded(weights: AttentionWeights) -> AttentionWeights:
    """Keys and values repeated for every query head, for comparison with a model that stores them so."""
    heads = weights.heads

    def every(affine: Affine) -> Affine:
        return affine.pick(np.repeat(np.arange(len(affine.bias)), heads // len(affine.bias)))

    gain = weights.key_gain
    if gain is not None and len(gain) > 1:
        gain = np.repeat(gain, heads // len(gain), axis=0)
    return replace(
        weights, turned_key=every(weights.turned_key), key=every(weights.key), value=every(weights.value), key_gain=gain
    )
