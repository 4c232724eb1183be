"""A model as comparisons and canonical forms see it: folded layers, scale and amplitude in the queries, maybe rotated.

With ``scope`` model, the residual stream may be changed (`residual` has the free changes) and what is written along 1
is dropped where every reader is a LayerNorm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.folding import fold
from attngeom.models.layer import AttentionWeights, LayerWeights, NormWeights
from attngeom.models.matching import assign_points
from attngeom.models.model import Model
from attngeom.models.readers import Change, map_attention, map_cross_memory, map_cross_queries, map_mixer, map_mlp
from attngeom.models.specification import GroupedAttention, Norm, Stack, TransformerBlock, TransformerSpec
from attngeom.models.surroundings import sublayers
from attngeom.models.symmetry import GroupedHeadOrder, Symmetry, act
from attngeom.models.symmetry.norms import reader_change
from attngeom.models.unnormed_tables import UnnormedTables, fix_tables

Turns = Mapping[str, Array]
"""Name of a stack → R of the change x' = R x of its residual stream."""


@dataclass(frozen=True, eq=False)
class ModelView:
    """Folded layers of a model; ``rotation`` turns its streams, ``flat`` drops what is written along 1."""

    model: Model
    rotation: Turns | None = None
    flat: bool = False
    heads: Mapping[str, Array] = field(default_factory=dict)
    """An order of the heads of all layers of a stack, by its name: a table of relative positions ties them."""
    loose: bool = False
    """Take a tied head as one of its own, for comparison with a model that has one."""

    fixed_tables: bool = False
    """Choose what the first norm of a post-norm model does not show of its tables (`unnormed`)."""

    @cached_property
    def unnormed(self) -> UnnormedTables | None:
        return fix_tables(self.model.spec, self.stored_tables(), self.keeps_tokens)

    def turn(self, stack: Stack) -> Array | None:
        """R of the stream of a stack; None where it stays."""
        return None if self.rotation is None else self.rotation[stack.name]

    @property
    def is_tied(self) -> bool:
        return is_tied(self.model.spec) and not self.loose

    @property
    def keeps_tokens(self) -> bool:
        """Whether the head reads the token table, so that its rows stay as they are."""
        return self.is_tied or (self.model.keeps_tokens and not is_tied(self.model.spec))

    def relative(self, stack: Stack) -> Array | None:
        """The table of relative positions, its heads in order."""
        table = self.model.relative(stack)
        return table[:, self.heads[stack.name]] if table is not None and stack.name in self.heads else table

    def order_part(self, layer: int) -> Symmetry:
        """The common order of heads as a symmetry of one layer."""
        order = self.heads.get(self.model.place(layer)[0].name)
        return () if order is None else (GroupedHeadOrder(order, order),)

    def memory(self) -> tuple[Norm, NormWeights] | None:
        """The last norm of the encoder, that cross-attention reads through."""
        encoder = self.model.spec.stacks[0]
        if len(self.model.spec.stacks) < 2:
            return None
        weights = self.model.final_norm(encoder)
        if encoder.final_norm is None or weights is None:
            return self.model.stream_norm(encoder)
        return encoder.final_norm, weights

    def is_taken_up(self, layer: int) -> bool:
        """Whether the norm of the sum behind a layer is read by maps alone: by cross-attention, or an own head."""
        stack, index = self.model.place(layer)
        if index < len(stack) - 1 or stack.path or self.model.stream_norm(stack) is None:
            return False
        return stack is not self.model.spec.stack or self.closing_norm() is not None

    def layer(self, layer: int) -> LayerWeights:
        """The folded layer, in the rotated stream."""
        return self.fold(layer, self.stored(layer))

    def stored(self, layer: int) -> LayerWeights:
        """The layer as it is stored, the first one as it reads fixed tables."""
        return self.beside_tables(layer, self.model.layer(layer))

    def beside_tables(self, layer: int, weights: LayerWeights) -> LayerWeights:
        """A layer that was read already, the first one as it reads fixed tables."""
        return self.unnormed.read(weights) if self.reads_unnormed(layer) else weights  # type: ignore[union-attr]

    def reads_unnormed(self, layer: int) -> bool:
        return layer == 0 and self.fixed_tables and self.unnormed is not None

    def fold(self, layer: int, stored: LayerWeights) -> LayerWeights:
        """The folded form of a layer that was read already."""
        block = self.model.block(layer)
        memory = self.memory() if block.cross is not None else None
        folded = act(block, fold(block, stored, memory), self.order_part(layer))
        if self.flat:
            folded = _flatten_writers(folded)
        own = self.turn(self.model.place(layer)[0])
        if own is not None:
            folded = rotate_layer(folded, own, self.turn(self.model.spec.stacks[0]))
        if self.is_taken_up(layer):
            head, norm = self.model.spec.head, folded.norms["mlp.stream"]
            ones = np.ones_like(norm.bias)
            # A head without a bias reads its constant from the bias of the norm.
            kept = layer == self.model.layers - 1 and head is not None and not head.bias
            plain = norm.changed(ones, ones if kept else 0 * ones)
            folded = folded.with_(norms={**folded.norms, "mlp.stream": plain})
        return folded

    def embedding(self) -> Array:
        table, scale = self.model.embedding(), self.model.spec.embedding_scale
        table = table if scale == 1.0 else table * scale
        stack = self.model.spec.stack
        return self.write(table, stack, self.is_flat(stack) and not self.keeps_tokens)

    @property
    def norms_tokens(self) -> bool:
        """Whether tokens are seen behind the norm of the tables alone: nothing is added, and no head is tied."""
        stack = self.model.spec.stack
        tables = stack.positions or stack.sines or stack.token_types or stack.embedding_width
        alone = len(self.model.spec.stacks) == 1 and stack.embeds_tokens and stack.embedding_norm is not None
        return alone and not tables and not self.keeps_tokens

    def seen_tokens(self) -> Array:
        """The token table as the stream sees it."""
        table, stack = self.embedding(), self.model.spec.stack
        norm, weights = stack.embedding_norm, self.embedding_norm(stack)
        if not self.norms_tokens or norm is None or weights is None:
            return table
        table = table - table.mean(axis=-1, keepdims=True) if norm.kind == "layer" else table
        size = np.sqrt((table**2).mean(axis=-1, keepdims=True) + norm.eps)
        table = np.asarray(table / size * weights.gain + weights.bias, dtype=table.dtype)
        return table - table.mean(axis=-1, keepdims=True) if forgets_means(self.model.spec, stack) else table

    def positions(self, stack: Stack) -> Array | None:
        table, places = self.model.positions(stack), self.model.places
        if table is not None and places.patches:
            rows = [self.model.load_any(name).reshape(1, -1) for name in places.added]
            rest = self.model.load_any(places.patch_bias) if places.patch_bias else 0.0
            table = table + np.concatenate([*rows, np.zeros_like(table[len(rows) :]) + rest])
        return None if table is None else self.write(table, stack, self.is_flat(stack))

    def others(self) -> dict[str, Array]:
        """Tensors outside the transformer, which are compared entry by entry."""
        joined = self.model.spec.stacks[0].positions > 0
        added = (*self.model.places.added, self.model.places.patch_bias) if joined else ()
        known = {*added, *map(self.model.stored, added)}
        names = [name for name, why in self.model.unread().items() if why.is_compared and name not in known]
        tensors = {name: self.model.tensors.raw(name).astype(np.float64) for name in names}
        return {**tensors, **{self.model.stored(n): tensor for n, tensor in self.written().items() if n not in known}}

    def written(self) -> dict[str, Array]:
        """Tensors of the front end that write into the first stream, by their names in the family's table.

        Patches are written as they are, and nothing of them is seen along 1 where readers are LayerNorms.
        """
        places, stack = self.model.places, self.model.spec.stacks[0]
        flat = self.is_flat(stack) and places.front == "patches"
        tensors = {}
        for name, axis in places.written.items():
            if self.model.stored(name) in self.model.tensors:
                tensor = np.moveaxis(self.model.load_any(name), axis, -1)
                tensors[name] = np.moveaxis(self.write(tensor, stack, flat), -1, axis)
        return tensors

    def token_types(self, stack: Stack) -> Array | None:
        table = self.model.token_types(stack)
        return None if table is None else self.write(table, stack, self.is_flat(stack))

    def is_flat(self, stack: Stack) -> bool:
        """Whether rows of the tables of a stack are not seen along 1."""
        return self.flat or (stack.embedding_norm is not None and stack.embedding_norm.kind == "layer")

    def tables(self) -> dict[str, tuple[str, Array]]:
        """Tables whose rows are added to the stream: part → name and table."""
        return self.unnormed.tables if self.fixed_tables and self.unnormed is not None else self.stored_tables()

    def stored_tables(self) -> dict[str, tuple[str, Array]]:
        """Tables whose rows are added to the stream: part → name and table.

        A table that is always added to another one can hand a vector to it: the token table of one stack, unless it is
        the head as well, takes up the means of the others.
        """
        spec, places = self.model.spec, self.model.places
        tables = {"embedding": (places.tokens, self.seen_tokens())} if spec.vocabulary else {}
        for stack in spec.stacks:
            named = {"positions": (places.positions.get(stack.name, ""), self.positions(stack))}
            named |= {"token types": (places.token_types, self.token_types(stack))}
            for part, (name, table) in named.items():
                if table is None:
                    continue
                if hands_over(spec) and not self.keeps_tokens:
                    mean = table.mean(axis=0)
                    table = table - mean
                    tables["embedding"] = places.tokens, tables["embedding"][1] + mean
                tables[f"{stack.name} {part}"] = name, table
        return tables

    def write(self, table: Array, stack: Stack, flat: bool) -> Array:
        """Rows that are added to the stream of a stack, in the rotated stream, without their means if ``flat``."""
        if flat:
            table = table - table.mean(axis=-1, keepdims=True)
        turn = None if stack.embedding_width else self.turn(stack)
        return table if turn is None else table @ turn.T.astype(table.dtype)

    def final_norm(self, stack: Stack) -> NormWeights | None:
        """The final norm of a stack; a tied head leaves only orders and signs, which its gain follows."""
        norm = self.model.final_norm(stack)
        return norm if norm is None or not self.is_tied else rotate_norm(norm, self.turn(stack))

    def embedding_norm(self, stack: Stack) -> NormWeights | None:
        """The norm of the tables; that of narrow ones is read by the widening map."""
        norm = None if stack.embedding_width else self.model.embedding_norm(stack)
        if norm is None:
            return None
        if forgets_means(self.model.spec, stack):
            norm = norm.changed(norm.gain, norm.bias - norm.bias.mean())
        return rotate_norm(norm, self.turn(stack))

    def distances(self, stack: Stack) -> tuple[Array, NormWeights | None] | None:
        """The states of distances, and their norm, in the rotated stream; of the table what its norm shows."""
        own, turn, norm = self.model.distances(stack), self.turn(stack), stack.distance_norm
        if own is None:
            return None
        table, weights = own
        table = table - table.mean(axis=1, keepdims=True) if norm is not None and norm.kind == "layer" else table
        if turn is None:
            return table, weights
        return table @ turn.T, None if weights is None else rotate_norm(weights, turn)

    def widening(self, stack: Stack) -> Affine | None:
        """The map of narrow tables, rows of the stream as columns, with the norm of the tables folded into it."""
        own, weights = self.model.widening(stack), self.model.embedding_norm(stack)
        if own is None or weights is None or stack.embedding_norm is None:
            return None
        own, turn = reader_change(stack.embedding_norm, weights)("widening", own), self.turn(stack)
        return own if turn is None else Affine(turn @ own.weight, turn @ own.bias)

    def closing_norm(self) -> tuple[Norm, NormWeights] | None:
        """The norm of the stream behind the last post-LN block, where a head of its own takes up gain and bias."""
        alone = not self.model.spec.stack.path
        has_own = self.model.spec.head is not None and not self.is_tied
        return self.model.stream_norm(self.model.spec.stack) if has_own and alone else None

    def last_norm(self) -> NormWeights | None:
        """The norm that an own head reads: the final one, or that behind the last post-LN block."""
        closing = self.closing_norm()
        return self.model.final_norm(self.model.spec.stack) if closing is None else closing[1]

    def head(self) -> Affine | None:
        """The head of an untied model as a reader of n, the final norm folded into it; None for a tied one."""
        return None if self.is_tied else self.reader()

    def logit_constants(self) -> Array | None:
        """What every logit adds: the constants of an own head, or the bias of a tied one with that of the final norm.

        None for a tied head without a bias, which shows the bias of the norm by its rows.
        """
        head, spec = self.head(), self.model.spec
        if head is not None or spec.head is None or not spec.head.bias:
            return None if head is None else head.bias
        final = self.model.final_norm(spec.stack)
        shown = 0.0 if final is None else np.asarray(self.model.head(), dtype=np.float64) @ final.bias
        return np.asarray(self.model.head_bias() + shown)

    def reader(self) -> Affine | None:
        """The head, tied or not, as a reader of n; None where the function is the hidden states."""
        spec = self.model.spec
        if spec.head is None:
            return None
        head = Affine.linear(self.model.head())
        if spec.head.bias:
            head = Affine(head.weight, self.model.head_bias())
        final = self.model.final_norm(spec.stack)
        if final is not None and spec.stack.final_norm is not None:
            head = reader_change(spec.stack.final_norm, final)("head", head)
        closing = self.closing_norm()
        if closing is not None:
            head = reader_change(*closing)("head", head)
        turn = self.turn(spec.stack)
        return head if turn is None else Affine(head.weight @ turn.T.astype(head.weight.dtype), head.bias)


def hands_over(spec: TransformerSpec) -> bool:
    """Whether tables of positions and types can hand a vector to the token table, if no tied head reads it."""
    return len(spec.stacks) == 1 and spec.stack.embeds_tokens and spec.vocabulary > 0


def is_tied(spec: TransformerSpec) -> bool:
    """Whether the head is the embedding."""
    return spec.head is not None and spec.head.tied


def scaled_queries(spec: GroupedAttention, weights: AttentionWeights) -> AttentionWeights:
    """Scale and rotary amplitude multiplied into the queries (into their gains under a QK-norm)."""
    amplitude = 1.0 if spec.rotary is None else spec.rotary.amplitude**2
    f = weights.rotated_query.weight.shape[1]
    if weights.query_gain is not None:
        factors = np.full(weights.query_gain.shape[1], spec.scale)
        factors[: 2 * f] *= amplitude
        shift = None if weights.query_shift is None else weights.query_shift * factors
        return weights.with_(query_gain=weights.query_gain * factors, query_shift=shift)
    rotated, plain = weights.rotated_query, weights.query
    return weights.with_(
        rotated_query=Affine(rotated.weight * (spec.scale * amplitude), rotated.bias * (spec.scale * amplitude)),
        query=Affine(plain.weight * spec.scale, plain.bias * spec.scale),
    )


def scaled_outputs(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """The residual scale multiplied into what attention and MLP write."""
    scale = block.residual_scale
    return layer if scale == 1 else _map_writers(layer, lambda written: written * scale)


def can_flatten(spec: TransformerSpec) -> bool:
    """Whether every reader of the stream is a LayerNorm, so that what is written along 1 is never seen.

    A first attention may read the embedding behind its LayerNorm, before anything is written.
    """
    blocks = [block for stack in spec.stacks for block in stack.kinds]
    inputs = [
        stack.embedding_norm if first and part.before is None else part.before
        for stack in spec.stacks
        for layer, block in enumerate(stack.blocks)
        for first, part in zip((not layer, *(False,) * 3), sublayers(block))
    ]
    inputs += [stack.final_norm for stack in spec.stacks]
    behind = any(p.output or p.stream for block in blocks for p in (block.attention_norms, block.mlp_norms))
    return not behind and all(norm is not None and norm.kind == "layer" for norm in inputs)


def forgets_means(spec: TransformerSpec, stack: Stack) -> bool:
    """Whether what tables write along 1 is not seen either: the first sublayer has a LayerNorm of its own."""
    return can_flatten(spec) and bool(stack.order) and sublayers(stack.block(0))[0].before is not None


def rotate_norm(norm: NormWeights, rotation: Array | None) -> NormWeights:
    """A norm that is not folded, in the stream x' = R x, where R orders coordinates and changes signs."""
    return norm if rotation is None else norm.changed(np.abs(rotation) @ norm.gain, rotation @ norm.bias)


def rotate_layer(layer: LayerWeights, rotation: Array, memory: Array | None = None) -> LayerWeights:
    """A folded layer in the stream x' = R x: readers W Rᵀ, writers R W; norms that stay allow orders and signs only.

    ``memory`` is the R of the stream that cross-attention reads.
    """

    def reading(turn: Array) -> Change:
        return lambda _, reader: Affine(reader.weight @ turn.T.astype(reader.weight.real.dtype), reader.bias)

    change = reading(rotation)
    layer = layer.with_(
        attention=None if layer.attention is None else map_attention(layer.attention, change),
        mixer=None if layer.mixer is None else map_mixer(layer.mixer, change),
        mlp=map_mlp(layer.mlp, change),
    )
    if layer.cross is not None:
        assert memory is not None
        layer = layer.with_(cross=map_cross_memory(map_cross_queries(layer.cross, change), reading(memory)))
    kept = {name: norm for name, norm in layer.norms.items() if not name.endswith(".input")}
    layer = layer.with_(norms={**layer.norms, **{name: rotate_norm(norm, rotation) for name, norm in kept.items()}})
    return _map_writers(layer, lambda written: rotation.astype(written.dtype) @ written)


def _map_writers(layer: LayerWeights, change: Callable[[Array], Array]) -> LayerWeights:
    """What all sublayers write, as columns (…, width, ·) and as constants (width), changed along the width."""
    for place, own in layer.writers.items():
        constant = change(own.output_bias[:, None])[:, 0]
        layer = layer.with_(**{place: own.with_(output=change(own.output), output_bias=constant)})
    for name, units in layer.hidden.items():
        constant = change(units.down_bias[:, None])[:, 0]
        layer = layer.with_hidden(name, units.with_(down=change(units.down), down_bias=constant))
    return layer


def _flatten_writers(layer: LayerWeights) -> LayerWeights:
    return _map_writers(layer, lambda written: np.asarray(written - written.mean(axis=-2, keepdims=True)))


def expanded(weights: AttentionWeights) -> AttentionWeights:
    """Keys and values repeated for every query head, for comparison with a model that stores them so."""
    share = weights.heads // weights.groups
    return weights.each_head(lambda own: own, lambda own: np.repeat(own, share, axis=0))


def head_orders(one: Model, other: Model) -> dict[str, Array]:
    """Per stack with a table of relative positions the order of other's heads that brings its table next to one's."""
    orders: dict[str, Array] = {}
    for stack, twin in zip(one.spec.stacks, other.spec.stacks):
        left, right = one.relative(stack), other.relative(twin)
        if left is not None and right is not None:
            orders[stack.name] = assign_points((left - left[:1]).T, (right - right[:1]).T)
    return orders
