"""New tensors for a whole model, layer by layer: canonical forms, random symmetries, alignment with another model.

A `Rewrite` computes the tensors of one layer at a time; `writing` puts them into a folder, `state` into memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups.gauges import DEFAULT, Gauge, fix_pair
from attngeom.groups.sampler import Sampler
from attngeom.limits.rounding import RANDOM_CONDITION
from attngeom.models.affine import Affine
from attngeom.models.even_sizes import even_sizes
from attngeom.models.folding import express, unfold_like
from attngeom.models.layer import LayerWeights, NormWeights
from attngeom.models.layout import write_layer, write_norm
from attngeom.models.layout.tables import store_linear
from attngeom.models.model import Model, open_model
from attngeom.models.orbits import PARTS, canonical, even_rows, random_symmetry, recover
from attngeom.models.readers import map_cross_memory
from attngeom.models.residual import canonical_turns, random_turns, residual_turns
from attngeom.models.settings import settings_differences
from attngeom.models.specification import Norm
from attngeom.models.symmetry import act, inverse
from attngeom.models.views import ModelView, Turns, can_flatten, head_orders, is_tied


@dataclass(frozen=True, eq=False)
class Rewrite(ABC):
    """What becomes of a model: `layer` gives the new layer, `outside` the new tensors outside the layers."""

    model: Model
    rotation: Turns | None = field(default=None, kw_only=True)

    @abstractmethod
    def layer(self, layer: int) -> LayerWeights:
        """The new layer, with every bias in a place that the file has."""

    def outside(self) -> dict[str, Array]:
        """New tensors outside the layers, by the names of the family's table."""
        return {}

    @property
    def scope(self) -> Literal["layer", "model"]:
        return "layer" if self.rotation is None else "model"

    @property
    def gauge_of(self) -> Model | None:
        """The model in whose gauge the new one is."""
        return None

    def layer_tensors(self, layer: int) -> dict[str, Array]:
        """The tensors of a layer, by their names in the checkpoint."""
        stack, index = self.model.place(layer)
        layout = self.model.places.blocks[stack.name]
        like = self.gauge_of
        tensors = write_layer(stack.block(index), layout, index, self.layer(layer), None if like is None else like.load)
        return {self.model.stored(name): tensor for name, tensor in tensors.items()}

    def outside_tensors(self) -> dict[str, Array]:
        """New tensors outside the layers, by their names in the checkpoint; a copy of a tied embedding stays one."""
        new = self.outside()
        if self.model.spec.embedding_rank:
            head = new.pop(self.model.places.head, None) if self.model.has_product_head else None
            new = {**self._factored(new.pop(self.model.places.tokens, None), head), **new}
        tensors = {self.model.stored(name): tensor for name, tensor in new.items()}
        return tensors | {copy: tensors[name] for copy, name in self.model.copied() if name in tensors}

    def _factored(self, embedding: Array | None, head: Array | None) -> dict[str, Array]:
        """New projections of the token table for a new embedding and head; the table itself in the gauge."""
        places, (table, into, out) = self.model.places, self.model.factors()
        assert places.projections is not None
        if embedding is not None:
            into = lapack.lstsq(table, embedding)
        if head is not None:
            out = lapack.lstsq(table, head)
        change = self.token_gauge(table, np.concatenate([into, out], axis=1))
        tensors = {places.tokens: table @ change, places.projections[0]: lapack.solve(change, into).T}
        # Where the second projection is no factor of the head, its coordinates are those of the outputs.
        return tensors | ({places.projections[1]: lapack.solve(change, out)} if self.model.has_product_head else {})

    def token_gauge(self, table: Array, maps: Array) -> Array:
        """C of E → E C, where tokens are projected; ``maps`` are both projections, side by side."""
        return np.eye(table.shape[1])

    def state(self) -> dict[str, Array]:
        """All tensors in memory, float64 where they were moved."""
        return {name: np.asarray(self.model.tensors.raw(name)) for name in self.model.tensors} | self.changes()

    def changes(self) -> dict[str, Array]:
        """The tensors that were moved, float64."""
        layers = (self.layer_tensors(layer) for layer in range(self.model.layers))
        return {name: tensor for part in (*layers, self.outside_tensors()) for name, tensor in part.items()}

    def moved(self) -> Model:
        """The rewritten model in memory."""
        return open_model(self.state(), self.model.config)


def _plain_final(model: Model, view: ModelView) -> dict[str, Array]:
    """Final norms made plain: that of an encoder, whose readers are in the layers, and that before an untied head."""
    tensors: dict[str, Array] = {}
    spec, places = model.spec, model.places
    encoder = spec.stacks[0]
    if view.memory() is not None and encoder.final_norm is not None:
        plain = NormWeights.plain(spec.width)
        tensors |= write_norm(
            encoder.final_norm, places.final_norm[encoder.name], plain.changed(plain.gain, plain.bias)
        )
    head = view.head()
    if head is not None and spec.head is not None and view.closing_norm() is not None:
        # The norm lies in the last layer; its bias is 1 if the head has none.
        bias = {places.head_bias: head.bias} if spec.head.bias else {}
        constant = 0.0 if spec.head.bias else head.bias[:, None] / spec.width
        return {**tensors, **bias, places.head: head.weight + constant}
    if head is None or spec.head is None or spec.stack.final_norm is None:
        return tensors
    final = model.final_norm(spec.stack)
    assert final is not None
    ones = np.ones(spec.width)
    if spec.head.bias:
        tensors[places.head_bias] = head.bias
    elif np.any(head.bias):
        if not spec.stack.final_norm.bias:
            raise InputError("a constant of the head given that the file has no place for")
        head = Affine.linear(head.weight + head.bias[:, None] / spec.width)
        tensors |= write_norm(spec.stack.final_norm, places.final_norm[spec.stack.name], final.changed(ones, ones))
        return {**tensors, places.head: head.weight}
    tensors |= write_norm(spec.stack.final_norm, places.final_norm[spec.stack.name], final.changed(ones, 0 * ones))
    return {**tensors, places.head: head.weight}


def _rotated_tables(model: Model, view: ModelView) -> dict[str, Array]:
    """Tables of ordered heads; in a rotated stream the embedding, positions, and the final norm before a tied head."""
    tables: dict[str, Array] = {}
    for stack in model.spec.stacks:
        ordered = view.relative(stack)
        if ordered is not None and stack.name in view.heads:
            tables[model.places.relative[stack.name]] = ordered
    if view.rotation is None:
        return tables
    tables |= view.written()
    for stack in model.spec.stacks:
        own = view.distances(stack)
        if own is not None:
            tables[model.places.distances] = own[0]
            if stack.distance_norm is not None and own[1] is not None:
                tables |= write_norm(stack.distance_norm, model.places.distance_norm, own[1])
        wide, turn = model.widening(stack), view.turn(stack)
        if wide is not None and turn is not None:
            tables |= store_linear(model.places.widening, Affine(turn @ wide.weight, turn @ wide.bias), True, False)
    if any(stack.embedding_width for stack in model.spec.stacks):
        return tables
    if model.spec.vocabulary:
        tables[model.places.tokens] = view.embedding() / model.spec.embedding_scale
    last, final = model.spec.stack, view.final_norm(model.spec.stack)
    if is_tied(model.spec) and last.final_norm is not None and final is not None:
        tables |= write_norm(last.final_norm, model.places.final_norm[last.name], final)
    for stack in model.spec.stacks:
        norm = view.embedding_norm(stack)
        if stack.embedding_norm is not None and norm is not None:
            tables |= write_norm(stack.embedding_norm, model.places.embedding_norm.format(stack.name), norm)
        table = model.positions(stack)
        if table is not None:
            name = model.places.positions[stack.name]
            tables[name] = view.write(model.load_any(name), stack, view.flat)
    return tables


@dataclass(frozen=True, eq=False)
class Canonical(Rewrite):
    """Every layer folded and in the gauge; with a rotation, in the canonical residual stream as well."""

    gauge: Gauge = DEFAULT

    @property
    def view(self) -> ModelView:
        return ModelView(self.model, self.rotation, self.rotation is not None and can_flatten(self.model.spec))

    def layer(self, layer: int) -> LayerWeights:
        stack, _ = self.model.place(layer)
        block = self.model.block(layer)
        ordered = bool(stack.relative_buckets)
        return express(block, canonical(block, self.view.layer(layer), self.gauge, ordered=ordered))

    def outside(self) -> dict[str, Array]:
        return {**_rotated_tables(self.model, self.view), **_plain_final(self.model, self.view)}

    def token_gauge(self, table: Array, maps: Array) -> Array:
        return lapack.lstsq(table, fix_pair(table.T, maps, self.gauge)[0].T)


def canonicalize(model: Model, gauge: Gauge = DEFAULT, scope: str = "layer") -> Canonical:
    """One representative of the orbit of a model, layer by layer or with the residual stream (``scope`` model)."""
    if scope not in ("layer", "model"):
        raise InputError(f"scope {scope[:40]!r} given; layer or model is required")
    if scope == "layer":
        return Canonical(model, gauge)
    return Canonical(model.headed, gauge, rotation=canonical_turns(model.headed))


class OuterStream(IntEnum):
    """Streams of random numbers for what stands outside the layers, whose streams have their own numbers below."""

    MEMORY = 2**20
    FINAL_NORM = 2**20 + 1
    TOKENS = 2**20 + 2
    RESIDUAL = 2**21


@dataclass(frozen=True, eq=False)
class Teleported(Rewrite):
    """Every layer moved by random symmetries of the chosen parts, all from one seed."""

    seed: int = 0
    condition: float = RANDOM_CONDITION
    parts: Collection[str] = PARTS

    def _sampler(self, place: int) -> Sampler:
        sampler = Sampler(0, self.condition)
        sampler.rng = np.random.default_rng([self.seed, place])
        return sampler

    def _scale(self, place: int, norm: Norm | None) -> Array | None:
        """Factors of the gains of a final norm, if norms are moved and it has gains."""
        if "norms" not in self.parts or norm is None or not norm.gain:
            return None
        sampler = self._sampler(place)
        return sampler.scales(self.model.spec.width) * sampler.signs(self.model.spec.width)

    def layer(self, layer: int) -> LayerWeights:
        stack, _ = self.model.place(layer)
        block = self.model.block(layer)
        weights = self.model.layer(layer)
        if self.rotation is not None:
            weights = express(block, ModelView(self.model, self.rotation).layer(layer))
        parts = [part for part in self.parts if part != "residual"]
        if {"qk", "vo"} <= set(parts):
            # A random matrix mixes the rows of a head: small ones beside large ones would be lost.
            weights, _ = even_rows(block, weights)
        sampler = self._sampler(layer)
        symmetry = random_symmetry(block, weights, sampler, parts=parts, ordered=bool(stack.relative_buckets))
        weights = act(block, weights, symmetry)
        # In a rotated stream the last norm of the encoder is plain already.
        view, scale = ModelView(self.model), self._memory_scale() if self.rotation is None else None
        if scale is None:
            return weights
        if weights.cross is not None:
            weights = weights.with_(
                cross=map_cross_memory(weights.cross, lambda name, reader: Affine(reader.weight / scale, reader.bias))
            )
        if view.is_taken_up(layer) and stack is not self.model.spec.stack:
            norm = weights.norms["mlp.stream"]
            moved = norm.changed(norm.gain * scale, norm.bias * scale)
            weights = weights.with_(norms={**weights.norms, "mlp.stream": moved})
        return weights

    def _memory_scale(self) -> Array | None:
        """Factors of the gains of the encoder's last norm."""
        memory = ModelView(self.model).memory()
        return None if memory is None else self._scale(OuterStream.MEMORY, memory[0])

    def outside(self) -> dict[str, Array]:
        view = ModelView(self.model, self.rotation)
        tensors = _rotated_tables(self.model, view)
        if self.rotation is not None:
            return {**tensors, **_plain_final(self.model, view)}
        spec, places = self.model.spec, self.model.places
        memory, scale = view.memory(), self._memory_scale()
        if memory is not None and scale is not None and spec.stacks[0].final_norm is not None:
            moved = memory[1].changed(memory[1].gain * scale, memory[1].bias * scale)
            tensors |= write_norm(memory[0], places.final_norm[spec.stacks[0].name], moved)
        scale = self._scale(OuterStream.FINAL_NORM, spec.stack.final_norm)
        final = self.model.final_norm(spec.stack)
        untied = spec.head is not None and not spec.head.tied
        if untied and scale is not None and final is not None and spec.stack.final_norm is not None:
            moved = final.changed(final.gain * scale, final.bias * scale)
            tensors |= write_norm(spec.stack.final_norm, places.final_norm[spec.stack.name], moved)
            tensors[places.head] = self.model.head() / scale
        return tensors

    def token_gauge(self, table: Array, maps: Array) -> Array:
        return np.asarray(self._sampler(OuterStream.TOKENS).invertible(1, table.shape[1])[0])


def teleport(
    model: Model, seed: int, condition: float = RANDOM_CONDITION, parts: Collection[str] = PARTS
) -> Teleported:
    """A random point of the orbit of a model; ``parts`` may contain residual where the architecture allows it."""
    unknown = set(parts) - {*PARTS, "residual"}
    if unknown:
        raise InputError(f"part {sorted(unknown)[0][:40]!r} given; parts are {', '.join(PARTS)} and residual")
    if "residual" not in parts:
        return Teleported(model, seed, condition, tuple(parts))
    turns = random_turns(model.headed, np.random.default_rng([seed, OuterStream.RESIDUAL]))
    return Teleported(model.headed, seed, condition, tuple(parts), rotation=turns)


@dataclass(frozen=True, eq=False)
class Aligned(Rewrite):
    """The model moved next to a target: its heads, units, gauges, gains and constants where the target has them."""

    target: Model

    @property
    def gauge_of(self) -> Model:
        return self.target

    @property
    def view(self) -> ModelView:
        return ModelView(self.model, self.rotation, heads=head_orders(self.target, self.model))

    def layer(self, layer: int) -> LayerWeights:
        stack, _ = self.model.place(layer)
        block = self.target.block(layer)
        near = ModelView(self.target)
        pattern = near.layer(layer)
        even, gauge = even_rows(block, pattern)
        source, _ = even_rows(block, self.view.layer(layer))
        symmetry = recover(block, even, source, ordered=bool(stack.relative_buckets))
        memory = near.memory() if block.cross is not None else None
        stored = self.target.layer(layer)
        beside = even_sizes(block, even, symmetry.moved)
        moved = unfold_like(block, act(block, beside, inverse(gauge)), stored, pattern, memory)
        if near.is_taken_up(layer):
            moved = moved.with_(norms={**moved.norms, "mlp.stream": stored.norms["mlp.stream"]})
        return moved

    def outside(self) -> dict[str, Array]:
        view, spec, places = self.view, self.model.spec, self.model.places
        tensors = {**_rotated_tables(self.model, view), **_plain_final(self.model, view)}
        goal = ModelView(self.target).memory()
        if goal is not None and spec.stacks[0].final_norm is not None:
            tensors |= write_norm(goal[0], places.final_norm[spec.stacks[0].name], goal[1])
        last = ModelView(self.target).closing_norm()
        final, norm = self.target.final_norm(spec.stack), spec.stack.final_norm
        if last is not None:
            norm, final = last
        head = view.head()
        if head is None or final is None or norm is None or not np.all(final.gain != 0):
            return tensors
        assert spec.head is not None
        means = 0.0
        if norm.kind == "layer" and (spec.head.bias or not norm.bias):
            means = (self.target.head() * final.gain).mean(axis=1, keepdims=True)
        weight = (head.weight + means) / final.gain
        bias = head.bias - weight @ final.bias
        total = float((final.bias / final.gain).sum())
        if not spec.head.bias and np.any(bias):
            if norm.kind != "layer" or not total:
                return tensors
            # The head has no bias: its rows along 1/gain, which n does not show, read the constant from the norm.
            weight = weight + (bias / total)[:, None] / final.gain
        if last is None:
            tensors |= write_norm(norm, places.final_norm[spec.stack.name], final)
        return {**tensors, places.head: weight, **({places.head_bias: bias} if spec.head.bias else {})}

    def token_gauge(self, table: Array, maps: Array) -> Array:
        return lapack.lstsq(table, self.target.factors()[0])


def align(target: Model, model: Model, scope: str = "layer") -> Aligned:
    """``model`` in the gauge of ``target``: what has to be done before weights of two copies are averaged."""
    differences = settings_differences(target.spec, model.spec)
    if differences or target.spec.family != model.spec.family:
        key = next(iter(differences), "family")
        raise InputError(f"models of different kinds given ({key[:60]} differs); align needs two of the same kind")
    if scope == "layer":
        return Aligned(model, target)
    turns = residual_turns(target.headed, model.headed)
    return Aligned(model.headed, target.headed, rotation=turns)
