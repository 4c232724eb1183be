"""Factors of attention whose output is gated entry by entry: scales and orders of the coordinates of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Gauge, RealScales, Sampler
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights
from attngeom.models.matching import match_values
from attngeom.models.probes import AttentionProbe, Invariants
from attngeom.models.residues import P
from attngeom.models.specification import TransformerBlock
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.attention import GroupedValueOutput
from attngeom.models.symmetry.factor import AttentionFactor, Freedom, Part, RedundantPart
from attngeom.models.tensor_errors import Along, Errors, Noise, TensorPart, by_entry


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
