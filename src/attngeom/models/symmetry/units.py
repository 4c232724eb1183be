"""Factors of MLPs: order and scale of hidden units, order of experts, what a router does not show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Gauge, Sampler
from attngeom.groups.pivots import first_largest, pivot_signs
from attngeom.models.affine import Affine, pick_columns
from attngeom.models.layer import ExpertsWeights, LayerWeights, MLPWeights
from attngeom.models.matching import GOLDEN, assign_points, match_units
from attngeom.models.specification import MLP, Experts, TransformerBlock
from attngeom.models.surroundings import Surroundings
from attngeom.models.symmetry.factor import Factor, Freedom, Part, RedundantPart, Replay
from attngeom.models.tensor_errors import (
    Along,
    Errors,
    Loss,
    Noise,
    TensorPart,
    by_entry,
    gathered,
    lost,
    size_of,
    whole,
)

CORRECTION = TensorPart("mlp", "correction")
"""What is added to the scores of experts where they are chosen."""


@dataclass(frozen=True, eq=False)
class Units(Part):
    """Hidden unit i of the new map is unit order[i] of the old one, up times scale, down divided by it (Lemma 6).

    Without a gate the bias and weight of up are scaled together and down is divided by the power of the scale that a
    homogeneous activation has (ReLU, its square); ``gates`` are positive scales of gates of such units. ``place`` is a
    name of `LayerWeights.hidden`.
    """

    order: Array
    scales: Array
    place: str = "mlp"
    gates: Array | None = None

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        mlp, spec = layer.hidden[self.place], block.hidden[self.place]
        up, down = mlp.up.pick(self.order), pick_columns(mlp.down, self.order)
        gate = None if mlp.gate is None else mlp.gate.pick(self.order)
        if np.any(self.scales != 1):
            up = up.scaled(self.scales.astype(up.weight.dtype))
        if gate is not None and self.gates is not None:
            gate = gate.scaled(self.gates.astype(up.weight.dtype))
        columns = self.columns(spec)
        if np.any(columns != 1):
            down = down / columns.astype(up.weight.dtype)
        return layer.with_hidden(self.place, mlp.with_(gate=gate, up=up, down=down))

    def inverse(self) -> Units:
        back = np.argsort(self.order)
        return Units(back, 1 / self.scales[back], self.place, None if self.gates is None else 1 / self.gates[back])

    def columns(self, spec: MLP) -> Array:
        """What the columns of down are divided by."""
        return spec.column_scales(self.scales, 1.0 if self.gates is None else self.gates)


@dataclass(frozen=True)
class HiddenUnits(Factor):
    """Orders of hidden units, and (R*) of each where its activation allows it: up → s up, down → down / s (Lemma 6)."""

    topic = "units"
    is_deferred = True

    @property
    def spec(self) -> MLP:
        return self.block.hidden[self.place]

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        spec, experts = self.spec, self.block.mlp
        count = spec.width * unit_scales(spec, around.readings["mlp"].own.has_constant(spec.up_bias))
        text = f"(R*)^{count} scales of units"
        if isinstance(experts, Experts) and self.place != "shared":
            text = f"[{text}]^{experts.count}"
        yield RedundantPart(part="hidden_units", count=count, group=text, lemma="Lemma 6")

    def freedoms(self) -> Iterator[Freedom]:
        signs = "" if self.spec.gated else " positive"
        scale = f", and one{signs} scale each between up and down" if self.spec.has_unit_scale else ""
        if self.spec.degree > 1 and not self.spec.gated:
            scale += f", there to the power {self.spec.degree}"
        if self.spec.degree and self.spec.gated:
            scale += ", and one positive scale each between gate and down"
        whose = {"mlp": "the MLP", "shared": "the shared expert"}.get(self.place, "each expert")
        yield Freedom(f"hidden units of {whose}", f"any order of {self.spec.width:,} units{scale}", "none")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        order, spec = sampler.order(layer.hidden[self.place].units), self.spec
        scales, gates = np.ones(spec.width), None
        if spec.has_unit_scale:
            scales = sampler.scales(spec.width) * (sampler.signs(spec.width) if spec.gated else 1.0)
        if spec.gated and spec.degree:
            gates = sampler.scales(spec.width)
        yield Units(order, scales, self.place, gates)

    def match(self, target: LayerWeights, source: LayerWeights) -> Units:
        goal, mlp, spec = target.hidden[self.place], source.hidden[self.place], self.spec
        order = match_units(spec, goal, mlp)
        if not spec.has_unit_scale:
            return Units(order, np.ones(mlp.units), self.place)
        gates = None
        if spec.degree and goal.gate is not None and mlp.gate is not None:
            gates = _scales_between(goal.gate, mlp.gate, order, positive=True)
        scales = _scales_between(goal.up, mlp.up, order, positive=not spec.gated)
        return Units(order, scales, self.place, gates)

    def fix(self, layer: LayerWeights, gauge: Gauge) -> LayerWeights:
        """Scales of the units fixed and units sorted by the size of the row that no scale changes."""
        mlp = layer.hidden[self.place]
        if self.spec.degree and mlp.gate is not None:
            # Gates of length one, the scale goes into down.
            lengths = np.sqrt(np.einsum("ij,ij->i", mlp.gate.weight, mlp.gate.weight) + mlp.gate.bias**2)
            ones = np.ones(mlp.units, lengths.dtype)
            turn = Units(np.arange(mlp.units), ones, self.place, 1 / np.where(lengths > 0, lengths, 1.0))
            layer = turn.act(self.block, layer)
            mlp = layer.hidden[self.place]
        scales = self._scales(mlp, gauge)
        sizes = _sorting_sizes(mlp.gate if mlp.gate is not None else mlp.up)
        if mlp.gate is None:
            sizes = sizes * scales**2
        order = np.argsort(-sizes, kind="stable")
        up, down = mlp.up.pick(order), pick_columns(mlp.down, order)
        if self.spec.has_unit_scale:
            # Both arrays are fresh: scale them in place.
            up.weight[...] *= scales[order, None]
            if gauge == "echelon":
                places = first_largest(np.abs(up.weight))[:, None]
                pivots = np.take_along_axis(up.weight, places, axis=1)
                np.put_along_axis(up.weight, places, np.where(pivots != 0, np.sign(pivots), 0), axis=1)
                up.weight[...] += 0.0
            down /= self.spec.column_scales(scales[order])
            up = Affine(up.weight, up.bias * scales[order])
        gate = None if mlp.gate is None else mlp.gate.pick(order)
        return layer.with_hidden(self.place, mlp.with_(gate=gate, up=up, down=down))

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        """What was written along 1."""
        before, after = (layer.hidden[self.place].down for layer in (stored, folded))
        return iter(()) if after is before else lost(TensorPart(self.place, "down"), size_of(before), size_of(after))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        """Every unit, the units of the aligned layer taken in order and scaled as they are read."""
        assert isinstance(move, Units)
        a, b = target.hidden[self.place], aligned.hidden[self.place]
        gates = np.ones(len(move.order)) if move.gates is None else move.gates
        for name, one, other, scales in (("gate", a.gate, b.gate, gates), ("up", a.up, b.up, move.scales)):
            if one is not None and other is not None:
                bias = by_entry(one.bias[:, None], (other.bias[move.order] * scales)[:, None])
                yield Errors(TensorPart(self.place, name, Along.UNIT), gathered(one, other, move.order, scales), bias)
        down = gathered(Affine.linear(a.down.T), Affine.linear(b.down.T), move.order, 1 / move.columns(self.spec))
        yield Errors(TensorPart(self.place, "down", Along.UNIT), down)
        yield Errors(TensorPart(self.place, "down_bias"), whole(a.down_bias, b.down_bias))

    def _scales(self, mlp: MLPWeights, gauge: Gauge) -> Array:
        """Factors of up that fix the scale of every unit, where the unit has one."""
        dtype = mlp.up.weight.dtype
        if not self.spec.has_unit_scale:
            return np.ones(mlp.units, dtype)
        left = np.sqrt(np.einsum("ij,ij->i", mlp.up.weight, mlp.up.weight) + mlp.up.bias**2)
        right = np.sqrt(np.einsum("ij,ij->j", mlp.down, mlp.down))
        alive = (left > 0) & (right > 0)
        ratios = np.where(alive, right, 1.0) / np.where(alive, left, 1.0)
        power = 1 if self.spec.gated else max(1, self.spec.degree)
        scales = np.sqrt(ratios) if power == 1 else ratios ** (1 / (1 + power))
        if gauge == "echelon":
            largest = np.abs(mlp.up.weight).max(axis=1)
            scales = 1 / np.where(largest > 0, largest, 1.0)
        if self.spec.gated:
            scales = scales * pivot_signs(mlp.up.weight)
        return scales.astype(dtype)


def unit_scales(mlp: MLP, constant: bool) -> int:
    """Scales per hidden unit: (up, down) of gated units, (in, out) of homogeneous ones; a clamp fixes all of them.

    ``constant``: rows of the MLP add a constant (an own bias, or that of a LayerNorm).
    """
    if mlp.limit is not None:
        return 0
    if mlp.activation == "swiglu_oai":
        # up + 1 is what is multiplied: its scale needs a constant that absorbs the 1.
        return int(constant)
    return int(mlp.gated) + int(mlp.degree > 0)


def _scales_between(goal: Affine, rows: Affine, order: Array, *, positive: bool) -> Array:
    """Per row of the goal the number that brings the row beside it nearest; 1 where none of the sign does."""
    bias = rows.bias[order].astype(np.float64)
    inner, size = bias * goal.bias, bias**2
    columns = rows.by_columns
    for part in rows.parts(columns=columns):
        piece, place = rows.piece(part, order, columns=columns), slice(None) if columns else part
        inner[place] += np.einsum("ij,ij->i", piece, goal.piece(part, columns=columns), dtype=np.float64)
        size[place] += np.einsum("ij,ij->i", piece, piece, dtype=np.float64)
    good = (size > 0) & ((inner > 0) | ((inner != 0) & (not positive)))
    return np.where(good, inner / np.where(size > 0, size, 1.0), 1.0)


def _sorting_sizes(reader: Affine) -> Array:
    """Σ c_j w_ij² + b_i² per row: weights c_j between 1 and 2 tell rows of few digits apart whose norms are equal."""
    weights = 1 + np.arange(reader.shape[1]) * GOLDEN % 1
    sizes = reader.bias.astype(np.float64) ** 2
    for part in reader.parts():
        sizes[part] += reader.weight[part] ** 2 @ weights
    return sizes


@dataclass(frozen=True, eq=False)
class ExpertOrder(Part):
    """Expert i of the new layer is expert order[i] of the old one; a softmax router moves by a common affine map."""

    order: Array
    weight: Array
    bias: float

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        assert isinstance(layer.mlp, ExpertsWeights)
        mlp, router = layer.mlp, layer.mlp.router.pick(self.order)
        return layer.with_(
            mlp=mlp.with_(
                router=Affine(router.weight + self.weight, router.bias + self.bias),
                correction=None if mlp.correction is None else mlp.correction[self.order],
                experts=tuple(mlp.experts[i] for i in self.order),
            )
        )

    def inverse(self) -> ExpertOrder:
        return ExpertOrder(np.argsort(self.order), -self.weight, -self.bias)


@dataclass(frozen=True)
class _ExpertsFactor(Factor):
    @property
    def spec(self) -> Experts:
        assert isinstance(self.block.mlp, Experts)
        return self.block.mlp

    def experts(self, layer: LayerWeights) -> ExpertsWeights:
        assert isinstance(layer.mlp, ExpertsWeights)
        return layer.mlp


@dataclass(frozen=True)
class OrderOfExperts(_ExpertsFactor):
    """Orders of the experts, inside their groups; the canonical one has decreasing norms of router rows."""

    topic = "units"
    is_discrete = True

    def freedoms(self) -> Iterator[Freedom]:
        spec = self.spec
        inside = "" if spec.expert_groups == 1 else f" inside their {spec.expert_groups} groups, and of the groups"
        yield Freedom("experts", f"any order of {spec.count} experts{inside}")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        spec = self.spec
        order = sampler.block_order(spec.expert_groups, spec.count // spec.expert_groups)
        yield ExpertOrder(order, np.zeros(self.experts(layer).router.shape[1]), 0.0)

    def match(self, target: LayerWeights, source: LayerWeights) -> Part:
        """Experts by the rows of their router."""
        spec, routers = self.spec, [self.experts(layer).router for layer in (target, source)]
        order = assign_points(*(router.rows for router in routers))
        size = spec.count // spec.expert_groups
        blocks = [order[start : start + size] // size for start in range(0, spec.count, size)]
        if spec.expert_groups > 1 and any(len(set(block)) > 1 for block in blocks):
            order = np.arange(spec.count)
        return ExpertOrder(order, np.zeros(routers[0].shape[1]), 0.0)

    def fix(self, layer: LayerWeights, gauge: Gauge) -> LayerWeights:
        router = self.experts(layer).router
        table = ((router.weight**2).sum(axis=1) + router.bias**2).reshape(self.spec.expert_groups, -1)
        size = table.shape[1]
        groups = np.argsort(-table.max(axis=1), kind="stable")
        order = np.concatenate([g * size + np.argsort(-table[g], kind="stable") for g in groups])
        return ExpertOrder(order, np.zeros(router.shape[1]), 0.0).act(self.block, layer)

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        one, other = self.experts(target), self.experts(aligned)
        for name, a, b in (("router", one.router, other.router), ("shared_gate", one.shared_gate, other.shared_gate)):
            if a is not None and b is not None:
                bias = by_entry(a.bias[:, None], b.bias[:, None])
                yield Errors(TensorPart("mlp", name), by_entry(a.weight, b.weight), bias)


@dataclass(frozen=True)
class RouterShift(_ExpertsFactor):
    """R^(d + 1): one affine map added to all rows of a softmax router."""

    topic = "norms"

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        count = around.readings["mlp"].own.columns(self.spec.router_bias)
        text = f"R^{count} added to all rows of the router"
        yield RedundantPart(part="hidden_units", count=count, group=text, lemma="softmax")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        weight = sampler.shift(size=self.experts(layer).router.shape[1])
        yield ExpertOrder(np.arange(self.spec.count), weight, float(sampler.shift()) if self.spec.router_bias else 0.0)

    def folding(self, layer: LayerWeights) -> Part:
        """The mean of all rows taken away."""
        router = self.experts(layer).router
        return ExpertOrder(np.arange(self.spec.count), -router.weight.mean(axis=0), -float(router.bias.mean()))


@dataclass(frozen=True)
class CorrectionShift(_ExpertsFactor):
    """What the choice of experts does not see of the correction: a common number, differences inside of groups, all."""

    def fold(self, layer: LayerWeights) -> LayerWeights:
        mlp, spec = self.experts(layer), self.spec
        correction = mlp.correction
        if correction is None:
            return layer
        if spec.correction_seen == "groups":
            means = correction.reshape(spec.expert_groups, -1).mean(axis=1)
            correction = np.repeat(means, spec.count // spec.expert_groups)
        seen = np.zeros_like(correction) if spec.correction_seen == "nothing" else correction - correction.mean()
        return layer.with_(mlp=mlp.with_(correction=seen))

    def unfold(self, replay: Replay) -> None:
        wanted, have, mlp = (self.experts(layer) for layer in (replay.stored, replay.pattern, replay.layer))
        if wanted.correction is not None and have.correction is not None and mlp.correction is not None:
            moved = mlp.correction + (wanted.correction - have.correction)
            replay.layer = replay.layer.with_(mlp=mlp.with_(correction=moved))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        one, other = (self.experts(layer).correction for layer in (target, aligned))
        if one is not None and other is not None:
            yield Errors(CORRECTION, whole(one, other))
