"""Factors of norms at inputs: gains and biases that readers take up, mean directions that they do not show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.groups import Gauge, Sampler
from attngeom.models.affine import Affine
from attngeom.models.layer import LayerWeights, MLPWeights, NormWeights
from attngeom.models.readers import (
    BESIDE,
    Change,
    has_bias,
    key_bias_is_invisible,
    map_readers,
    readers_of,
    reading_place,
    value_bias_is_constant,
)
from attngeom.models.specification import MLP, Experts, GroupedAttention, Norm, RecurrentMixer
from attngeom.models.surroundings import PlacedSublayer, Surroundings
from attngeom.models.symmetry.factor import Factor, Freedom, Part, RedundantPart, Replay
from attngeom.models.symmetry.moves import MeanShift, NormMove
from attngeom.models.symmetry.places import Placed
from attngeom.models.tensor_errors import Errors, Loss, Noise, TensorPart, lost, norm_errors, norms_of, summed_sizes

LEAST_SHARE = 0.1
"""What must be left of Σ bias / gain, by which constants are divided that rows without a bias read from the norm."""


@dataclass(frozen=True)
class InputNorm(Factor):
    """(R*)^d × R^d of gain and bias against the readers, and R of every row along 1/gain behind a LayerNorm."""

    topic = "norms"

    @property
    def norm(self) -> Norm:
        return self.block.input_norms[self.place]

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        count, text = self.norm.parameters(around.width), f"(R*)^{around.width} gains, biases"
        yield RedundantPart(part="norm", count=count, group=text, lemma="Lemma 4")

    def freedoms(self) -> Iterator[Freedom]:
        if self.norm.gain:
            what = "gains and biases" if self.norm.bias else "gains"
            yield Freedom(f"norm {self.place}", f"{what} may be moved into the maps that read the norm")

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        norm, width = self.norm, len(layer.norms[self.place].bias)
        readers = readers_of(self.block, layer, self.place)
        own = all(has_bias(self.block, self.place, reader) for reader, _ in readers)
        shift = sampler.shift(size=width) if norm.bias else np.zeros(width)
        scales = sampler.scales(width) * sampler.signs(width) if norm.gain else np.ones(width)
        if not own:
            # Constants of rows without a bias are read from the norm along 1/gain, divided by Σ bias / gain.
            before = _total(layer.norms[self.place])
            shift = shift * min(1.0, abs(before) / np.sqrt(width))
            after = before + float((shift / (layer.norms[self.place].gain * scales)).sum()) if before else 0.0
            shift = shift if abs(after) > LEAST_SHARE * abs(before) else np.zeros(width)
        yield Placed(NormMove(self.place, scales, shift))
        if norm.kind != "layer":
            return
        for number, (reader, affine) in enumerate(readers):
            if affine.bias.size and (self._takes_means(reader) or not norm.bias):
                rows = sampler.shift(size=affine.bias.shape)
                if np.iscomplexobj(affine.bias):
                    rows = rows + 1j * sampler.shift(size=affine.bias.shape)
                yield Placed(MeanShift(self.place, number, rows))

    def fix(self, layer: LayerWeights, gauge: Gauge) -> LayerWeights:
        """Readers of a LayerNorm, whose output has mean zero, with an exact zero in place of the last entry of a row.

        Where a reader has no place for its bias, the direction of the mean carries it and stays as it is.
        """
        readers = readers_of(self.block, layer, self.place)
        homes = all(has_bias(self.block, self.place, reader) for reader, _ in readers)
        if gauge != "echelon" or self.norm.kind != "layer" or not homes:
            return layer

        def lower(reader: str, affine: Affine) -> Affine:
            return Affine(affine.weight - affine.weight[..., -1:], affine.bias)

        return map_readers(self.block, layer, self.place, lower)

    def fold(self, layer: LayerWeights) -> LayerWeights:
        weights = layer.norms[self.place]
        layer = map_readers(self.block, layer, self.place, reader_change(self.norm, weights))
        ones = weights.changed(np.ones_like(weights.gain), np.zeros_like(weights.bias))
        return layer.with_(norms={**layer.norms, self.place: ones})

    def unfold(self, replay: Replay) -> None:
        weights = replay.stored.norms[self.place]
        replay.take(NormMove(self.place, weights.gain, weights.bias))
        if self.norm.kind != "layer":
            return
        for number, (reader, affine) in enumerate(readers_of(self.block, replay.stored, self.place)):
            rows = (affine.weight * weights.gain).mean(axis=-1)
            if rows.size and (self._takes_means(reader) or not np.any(weights.bias)):
                replay.take(MeanShift(self.place, number, rows))

    def lost(self, stored: LayerWeights, folded: LayerWeights) -> Loss:
        """Means of rows, constants that are sums, and gains that are stored as differences to 1."""
        weights, layers = stored.norms[self.place], (stored, folded)
        units = (TensorPart(name, kind) for name, own in stored.hidden.items() for kind in _unit_readers(own))
        for (reader, before), (_, after) in zip(*(readers_of(self.block, layer, self.place) for layer in layers)):
            part = TensorPart(reading_place(self.place, reader), reader.removeprefix(BESIDE).removeprefix("rotated_"))
            part = next(units) if reader in ("gate", "up") else part
            constant = np.any(weights.bias) or np.any(before.bias)
            if self.norm.kind == "layer" or weights.offset:
                summed_gains = np.maximum(np.abs(weights.gain), np.abs(weights.stored))
                yield from lost(part, float(np.sqrt(before.column_squares @ summed_gains**2)), after.size)
            if constant:
                summed = summed_sizes(before, weights.bias)
                # Biases are measured in units of their mean size: the head or unit with the largest sum bounds all.
                largest = float(norms_of(summed).max(initial=0.0)) * float(np.sqrt(len(summed)))
                yield from lost(part.bias, largest, float(np.linalg.norm(after.bias)))

    def errors(self, target: LayerWeights, aligned: LayerWeights, move: Part | None, noise: Noise) -> Iterator[Errors]:
        one, other = target.norms[self.place], aligned.norms[self.place]
        return norm_errors(self.place, (one.gain, other.gain), (one.bias, other.bias))

    def _takes_means(self, reader: str) -> bool:
        """Whether the constant that comes with a mean direction of the reader has a place, or is not seen."""
        own = has_bias(self.block, self.place, reader)
        spec = self.block.attentions.get(self.place.removesuffix(".input"), self.block.attention)
        if own or spec is None:
            return own
        if reader == "key":
            return key_bias_is_invisible(spec)
        taken = spec.output_bias or (self.block.parallel and has_bias(self.block, "mlp.input", "down"))
        return reader == "value" and value_bias_is_constant(spec) and taken


def _unit_readers(units: MLPWeights) -> tuple[str, ...]:
    """The maps of hidden units that read a norm, in the order of `readers_of`."""
    return ("up",) if units.gate is None else ("gate", "up")


@dataclass(frozen=True)
class OutputScales(Factor):
    """(R*)^d of the scales of what a sublayer writes against the rows of the map that writes: one stands for both.

    Reading multiplies them in, so that there is nothing to move.
    """

    topic = "norms"

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        text = f"(R*)^{around.width} scales of outputs"
        yield RedundantPart(part="norm", count=around.width, group=text, lemma="Lemma 4")

    def freedoms(self) -> Iterator[Freedom]:
        yield Freedom(f"scales of {self.place}", "may be moved into the map that writes")


@dataclass(frozen=True)
class MeanDirections(Factor):
    """R of every row that reads a LayerNorm, along 1/gain, and of every column that only LayerNorms read, along 1.

    The moves are those of the norms: constants go with them.
    """

    def orbits(self, around: Surroundings) -> Iterator[RedundantPart]:
        reading = around.readings[self.place]
        part, unseen = reading.sublayer.map, around.width - reading.written
        if isinstance(part, GroupedAttention):
            counts = _attention_means(part, reading, unseen)
        elif isinstance(part, RecurrentMixer):
            counts = _mixer_means(part, reading, unseen)
        elif isinstance(part, MLP):
            counts = _unit_means(part, reading, unseen)
        else:
            counts = _expert_means(part, reading, unseen)
        for text, count in counts.items():
            yield RedundantPart(part="norm", count=count, group=text, lemma="Lemma 4")


def _attention_means(own: GroupedAttention, reading: PlacedSublayer, unseen: int) -> dict[str, int]:
    """Rows of q, k, v and columns of o; those of latents are not counted."""
    if own.latent is not None:
        return {}
    queries, source, groups, plain = reading.own, reading.source, own.groups, own.rotations[0]
    rows = queries.rows(own.heads * own.head_dim, own.query_bias, True)
    rows += source.rows(groups * (own.head_dim - plain), own.key_bias, True)
    rows += source.rows(groups * plain, own.key_bias, own.shows_key_constants)
    rows += source.rows(groups * own.value_dim, own.value_bias, not own.shares_sum_to_one)
    columns = own.heads * own.value_dim * unseen
    return {"mean direction of the rows of q, k, v": rows, "columns of the output matrix along 1": columns}


def _mixer_means(own: RecurrentMixer, reading: PlacedSublayer, unseen: int) -> dict[str, int]:
    rows, columns = reading.own.rows(own.rows, own.bias, True), own.heads * own.value_dim * unseen
    return {"mean direction of the rows of the mixer": rows, "columns of the output matrix along 1": columns}


def _unit_means(mlp: MLP, reading: PlacedSublayer, unseen: int) -> dict[str, int]:
    rows = reading.own.rows((2 if mlp.gated else 1) * mlp.width, mlp.up_bias, True)
    columns = mlp.width * unseen
    return {"mean direction of the rows of the MLP": rows, "columns of the down matrix along 1": columns}


def _expert_means(experts: Experts, reading: PlacedSublayer, unseen: int) -> dict[str, int]:
    """Those of the experts, of the shared one, of the router; one vector of the biases is a constant of the block."""
    number = experts.count
    each = _unit_means(experts.expert, reading, unseen)
    counts = {f"[{text}]^{number}": number * count for text, count in each.items()}
    counts |= {} if experts.shared is None else _unit_means(experts.shared, reading, unseen)
    biases = experts.expert.down_bias * (number - experts.sums_to_constant) * unseen
    routers = reading.own.rows(number, experts.router_bias, True)
    routers += reading.own.rows(1, False, True) if experts.shared_gate else 0
    return {**counts, "biases of the experts along 1": biases, "router rows": routers}


def _total(weights: NormWeights) -> float:
    """Σ bias / gain: what a reader along 1/gain makes of the bias; 0 for gains that are zero."""
    return float((weights.bias / weights.gain).sum()) if np.all(weights.gain != 0) else 0.0


def reader_change(norm: Norm, weights: NormWeights) -> Change:
    """A reader of u = gain ∘ n + bias as a reader of n, centred after a LayerNorm."""

    def change(name: str, reader: Affine) -> Affine:
        dtype = reader.weight.real.dtype
        return reader.after_norm(weights.gain.astype(dtype), weights.bias.astype(dtype), centred=norm.kind == "layer")

    return change
