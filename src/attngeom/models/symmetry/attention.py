"""Factors of attention without QK-norms: queries with keys, rotated pairs, values with outputs, orders of heads, gates.

Where the output is gated entry by entry, scales and orders of the coordinates of values are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import ComplexScales, Gauge, GeneralLinear, Group, RealScales, Sampler
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights
from attngeom.models.matching import match_heads, match_values
from attngeom.models.probes import PAIRS, AttentionProbe, Invariants
from attngeom.models.readers import key_bias_is_invisible, value_bias_is_constant
from attngeom.models.residues import P, dot
from attngeom.models.specification import TransformerBlock
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.factor import (
    AttentionFactor,
    ColumnSlot,
    Freedom,
    Move,
    Part,
    RedundantPart,
    RowFactor,
    RowSlot,
)
from attngeom.models.tensor_errors import Along, Errors, Loss, Noise, TensorPart, by_entry, lost, size_of


@dataclass(frozen=True)
class RotaryScales(RowFactor):
    """(C*)^f per group on rotated pairs: k → g k, q → q / ḡ, what commutes with rotations by f frequencies."""

    topic = "qk"
    group: ClassVar[type[Group]] = ComplexScales
    carried = RowSlot("rotated_key")
    dual = RowSlot("rotated_query")
    stored_as = ("GroupedQueryKey", "turned")
    pivots_in_constants = False

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        """(C*) for every frequency; GL(m, C) for one that m pairs share."""
        spec, reading = self.spec, around.readings[self.place]
        if spec.latent is not None:
            shared = ComplexScales(spec.rotated // 2)
            text = f"{shared.symbol(1)} shared by all heads"
            yield RedundantPart(part="query_key", count=shared.dimension, group=text, lemma="Lemmas 1, 3")
            return
        columns = self.key_columns(reading, spec.key_bias, True), self.share * self.query_columns(reading)
        for size, number in sorted(Counter(spec.rotations[1].values()).items()):
            copies = spec.groups * number
            # A complex matrix has two numbers where a real one has one.
            count = 2 * copies * GeneralLinear(size).fiber(*columns)
            text = ComplexScales(1).symbol(copies) if size == 1 else f"GL({size},C)^{copies}"
            yield RedundantPart(part="query_key", count=count, group=text, lemma="Lemmas 1, 3")

    def freedoms(self) -> Iterator[Freedom]:
        whose = self.each_group if self.spec.latent is None else "all heads together"
        for size, number in sorted(Counter(self.spec.rotations[1].values()).items()):
            text = f"a turn and a scale in each of {number} rotated planes, for {whose}"
            if size > 1:
                text = f"an invertible complex {size} × {size} matrix for each of {number} frequencies, for {whose}"
            yield Freedom(f"q, k of {self.place}", text, "in planes")

    def row_errors(
        self, one: AttentionWeights, other: AttentionWeights, group: Group, element: Array, noise: Noise
    ) -> Iterator[Errors]:
        """One rotated key that all heads share is a tensor of its own."""
        keys, queries = super().row_errors(one, other, group, element, noise)
        shared = one.rotated_groups != one.groups
        yield queries
        yield replace(keys, part=TensorPart(self.place, self.carried.name), growth=None) if shared else keys

    def stored_element(self, move: Move) -> Array:
        """The factors of the queries."""
        return move.group.dual(move.element)

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """k̄ q of every pair; equal or zero frequencies have a larger group, which keeps less."""
        rotary = self.spec.rotary
        is_generic = rotary is None or len({0.0, *rotary.frequencies}) == 1 + len(rotary.frequencies)
        return Invariants(scores=list(probe.rotated(probe.query_rows, probe.key_rows)), is_generic=is_generic)


@dataclass(frozen=True)
class GroupedQueryKey(RowFactor):
    """GL(a₀) per group on unrotated coordinates: K → C K, Q → C⁻ᵀ Q (Lemma 2)."""

    topic = "qk"
    group: ClassVar[type[Group]] = GeneralLinear
    carried = RowSlot("key")
    dual = RowSlot("query")
    stored_as = ("GroupedQueryKey", "plain")

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        """GL of the coordinates that no position rotates; of keys no constant unless scores are seen absolutely."""
        spec, reading = self.spec, around.readings[self.place]
        size = spec.rotations[0] if spec.latent is None else spec.unrotated
        tall = self.key_columns(reading, spec.key_bias, spec.shows_scores)
        wide = self.share * self.query_columns(reading)
        group = GeneralLinear(size)
        text, count = group.symbol(spec.groups), spec.groups * group.fiber(tall, wide)
        yield RedundantPart(part="query_key", count=count, group=text, lemma="Lemmas 1, 2")
        constants = reading.source.has_constant(spec.key_bias) and reading.own.has_constant(spec.query_bias)
        if spec.latent is None and size >= max(1, min(tall, wide)) and constants and spec.trades_with_sinks:
            # The product of the two constants is then free and adds to the sink of the head.
            text = f"R^{spec.heads} from scores into the denominator"
            yield RedundantPart(part="query_key", count=spec.heads, group=text, lemma="Lemma 1")

    def freedoms(self) -> Iterator[Freedom]:
        size = self.spec.rotations[0] if self.spec.latent is None else self.spec.unrotated
        if size:
            part = "" if size == self.spec.head_dim else f" on the {size} unrotated coordinates"
            text = f"any invertible {size} × {size} matrix{part}, for {self.each_group}"
            yield Freedom(f"q, k of {self.place}", text, "all")

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """kᵀq of every head, without what softmax forgets of the constants of keys."""
        seen = [i for i, _ in PAIRS] if key_bias_is_invisible(self.spec) else [1] * len(PAIRS)
        products = probe.plain(probe.query_rows, probe.key_rows)
        return Invariants(scores=[[[sum(row) % P] * bool(i) for i, row in zip(seen, rows)] for rows in products])


@dataclass(frozen=True)
class GroupedValueOutput(RowFactor):
    """GL(v) per group: V → B V, O → O B⁻¹ (Lemma 2)."""

    topic = "vo"
    group: ClassVar[type[Group]] = GeneralLinear
    carried = RowSlot("value")
    dual = ColumnSlot("output")
    stored_as = ("GroupedValueOutput", "matrices")

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        """GL of the values; their constants are constants of the block, unless a sink takes a share."""
        spec, reading = self.spec, around.readings[self.place]
        group = GeneralLinear(spec.value_dim)
        tall = self.key_columns(reading, spec.value_bias, not spec.shares_sum_to_one)
        count = spec.groups * group.fiber(tall, self.share * reading.written)
        yield RedundantPart(part="value_output", count=count, group=group.symbol(spec.groups), lemma="Lemmas 1, 2")

    def freedoms(self) -> Iterator[Freedom]:
        size = self.spec.value_dim
        yield Freedom(f"v, o of {self.place}", f"any invertible {size} × {size} matrix, for {self.each_group}", "all")

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        """What was written along 1."""
        before, after = (self.weights(layer).output for layer in (stored, folded))
        return iter(()) if after is before else lost(self.dual.part(self.place), size_of(before), size_of(after))

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """o v of every head, and its constant where that is no constant of the output."""
        heads = [[dot(row, value[:, 1])] for row, value in zip(probe.outputs, probe.values)]
        is_generic = all(any(head) for head in heads)
        if not value_bias_is_constant(self.spec):
            heads = [[*head, constant] for head, constant in zip(heads, probe.value_constants)]
        return Invariants(heads=heads, is_generic=is_generic)


@dataclass(frozen=True, eq=False)
class GroupedHeadOrder(Part):
    """Query head i of the new layer is head heads[i] of the old one; groups likewise, and heads follow their group."""

    heads: Array
    groups: Array
    place: str = "attention"

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        return layer.with_(**{self.place: self.pick(layer.attentions[self.place])})

    def pick(self, weights: AttentionWeights) -> AttentionWeights:
        """The heads of one attention in the new order."""
        return weights.each_head(lambda own: own[self.heads], lambda own: own[self.groups])

    def inverse(self) -> GroupedHeadOrder:
        return GroupedHeadOrder(np.argsort(self.heads), np.argsort(self.groups), self.place)


@dataclass(frozen=True)
class OrderOfHeads(AttentionFactor):
    """Orders of the groups, and of the heads of each group; the canonical one has decreasing ‖O_h V_g‖."""

    topic = "heads"
    is_discrete = True

    def freedoms(self) -> Iterator[Freedom]:
        inner = "" if self.share == 1 else f", and of the {self.share} query heads of each"
        kind = "heads" if self.share == 1 else "key-value heads"
        yield Freedom(f"heads of {self.place}", f"any order of {self.spec.groups} {kind}{inner}")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        weights = self.weights(layer)
        share = weights.heads // weights.groups
        heads = sampler.block_order(weights.groups, share)
        yield GroupedHeadOrder(heads, heads[::share] // share, self.place)

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        return GroupedHeadOrder(*match_heads(self.weights(target), self.weights(source)), self.place)

    def fix_weights(self, weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
        sizes, share = _head_sizes(weights), weights.heads // weights.groups
        table = sizes.reshape(weights.groups, share)
        groups = np.argsort(-(table**2).sum(axis=1), kind="stable")
        heads = np.concatenate([g * share + np.argsort(-table[g], kind="stable") for g in groups])
        return GroupedHeadOrder(heads, groups).pick(weights)


def _head_sizes(weights: AttentionWeights) -> Array:
    """‖O_h V_g‖ of every head, by Gram matrices."""
    values = weights.value.rows
    gram = np.repeat(values @ values.transpose(0, 2, 1), weights.heads // weights.groups, axis=0)
    outer = weights.output.transpose(0, 2, 1) @ weights.output
    return np.asarray(np.sqrt(np.maximum(np.einsum("hij,hij->h", gram, outer), 0)))


@dataclass(frozen=True)
class GatedValueOutput(GroupedValueOutput):
    """(R*) of every coordinate of the values of a group: V → s V, O → O / s; gates multiply entry by entry."""

    group = RealScales
    stored_as = ("GatedValueOutput", "scales")

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        spec, reading = self.spec, around.readings[self.place]
        group = RealScales(spec.value_dim)
        tall = self.key_columns(reading, spec.value_bias, True)
        count = spec.groups * group.fiber(tall, self.share * reading.written)
        yield RedundantPart(part="value_output", count=count, group=group.symbol(spec.groups), lemma="Lemmas 1, 2")

    def freedoms(self) -> Iterator[Freedom]:
        text = f"one scale of either sign for each of {self.spec.value_dim} coordinates, for {self.each_group}"
        yield Freedom(f"v, o of {self.place}", text, "none")

    def invariants(self, probe: AttentionProbe) -> Invariants:
        """Products of what a coordinate reads and writes, and what its gate reads, coordinates in order of these."""
        gate = probe.weights.output_gate
        assert gate is not None
        gates, heads = probe.queries.read(gate, "y"), []
        is_generic = True
        for written, read, switch in zip(probe.outputs, probe.values, gates):
            rows = [[*(int(w * x % P) for x in own), *map(int, s)] for w, own, s in zip(written, read, switch)]
            is_generic &= all(row[1] for row in rows)
            heads.append([value for row in sorted(rows) for value in row])
        return Invariants(heads=heads, is_generic=is_generic)


@dataclass(frozen=True, eq=False)
class GatedValueOrder(Part):
    """Coordinate i of the values of a group is coordinate order[g, i] of the old one, with its gates and columns."""

    order: Array
    place: str = "attention"

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        return layer.with_(**{self.place: self.pick(layer.attentions[self.place])})

    def pick(self, weights: AttentionWeights) -> AttentionWeights:
        """The coordinates of one attention in the new order."""
        gate, spread = weights.output_gate, np.repeat(self.order, weights.heads // weights.groups, axis=0)
        assert gate is not None
        return weights.with_(
            value=_pick(weights.value, self.order),
            output_gate=_pick(gate, spread),
            output=np.take_along_axis(weights.output, spread[:, None], axis=2),
        )

    def inverse(self) -> GatedValueOrder:
        return GatedValueOrder(np.argsort(self.order), self.place)


def _pick(affine: Affine, order: Array) -> Affine:
    """Rows of every head in an order of its own."""
    weight = np.take_along_axis(affine.weight, order[..., None], axis=1)
    return Affine(weight, np.take_along_axis(affine.bias, order, axis=1))


@dataclass(frozen=True)
class OrderOfValues(AttentionFactor):
    """Orders of the coordinates of the values of each group; the canonical one has decreasing norms of gates."""

    topic = "vo"
    is_discrete = True

    def freedoms(self) -> Iterator[Freedom]:
        text = f"any order of the {self.spec.value_dim} coordinates, for {self.each_group}"
        yield Freedom(f"v, gate, o of {self.place}", text)

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        orders = [sampler.order(self.spec.value_dim) for _ in range(self.weights(layer).groups)]
        yield GatedValueOrder(np.stack(orders), self.place)

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        return GatedValueOrder(match_values(self.weights(target), self.weights(source)), self.place)

    def fix_weights(self, weights: AttentionWeights, gauge: Gauge) -> AttentionWeights:
        assert weights.output_gate is not None
        sizes = (weights.output_gate.rows**2).sum(axis=-1)
        table = sizes.reshape(weights.groups, -1, sizes.shape[1]).sum(axis=1)
        return GatedValueOrder(np.argsort(-table, kind="stable")).pick(weights)

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        one, other = (self.weights(layer).output_gate for layer in (target, aligned))
        assert one is not None and other is not None
        bias = by_entry(one.bias, other.bias)
        yield Errors(TensorPart(self.place, "output_gate", Along.HEAD), by_entry(one.weight, other.weight), bias)
