"""Factors of norms at inputs: gains and biases that readers take up, mean directions that they do not show (L4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.groups import Gauge, Sampler
from attngeom.models.affine import Affine
from attngeom.models.layer import ExpertsWeights, LayerWeights, MLPWeights, NormWeights
from attngeom.models.readers import (
    Change,
    has_bias,
    key_bias_is_invisible,
    map_mlp,
    map_readers,
    readers_of,
    value_bias_is_constant,
)
from attngeom.models.specification import Norm, TransformerBlock
from attngeom.models.symmetry.factor import Factor, Part, Replay


@dataclass(frozen=True, eq=False)
class NormMove(Part):
    """u' = s ∘ u + shift, readers W' = W / s with bias b − W' shift; ``shift`` needs readers with biases (L4)."""

    norm: str
    scale: Array
    shift: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights = layer.norms[self.norm]

        def change(name: str, reader: Affine) -> Affine:
            weight = reader.weight / self.scale
            return Affine(weight, reader.bias - weight @ self.shift)

        moved = weights.changed(weights.gain * self.scale, weights.bias * self.scale + self.shift)
        layer = map_readers(block, layer, self.norm, change)
        return layer.with_(norms={**layer.norms, self.norm: moved})

    def inverse(self) -> NormMove:
        return NormMove(self.norm, 1 / self.scale, -self.shift / self.scale)


@dataclass(frozen=True, eq=False)
class MeanShift(Part):
    """After a LayerNorm rows of a reader may move along 1/gain: W + w (1/γ)ᵀ with bias b − w Σ β/γ (L4)."""

    norm: str
    reader: str
    rows: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights = layer.norms[self.norm]

        def change(name: str, reader: Affine) -> Affine:
            if name != self.reader:
                return reader
            total = float((weights.bias / weights.gain).sum())
            return Affine(reader.weight + self.rows[..., None] / weights.gain, reader.bias - self.rows * total)

        if self.norm == "attention.stream":
            return layer.with_(mlp=map_mlp(layer.mlp, change))
        return map_readers(block, layer, self.norm, change)

    def inverse(self) -> MeanShift:
        return MeanShift(self.norm, self.reader, -self.rows)


@dataclass(frozen=True)
class InputNorm(Factor):
    """(R*)^d × R^d of gain and bias against the readers, and R of every row along 1/gain behind a LayerNorm (L4)."""

    topic = "norms"

    @property
    def norm(self) -> Norm:
        return self.block.input_norms[self.place]

    def random(self, layer: LayerWeights, sampler: Sampler) -> Iterator[Part]:
        norm, width = self.norm, len(layer.norms[self.place].bias)
        readers = dict(readers_of(self.block, layer, self.place))
        homes = {reader: has_bias(self.block, self.place, reader) for reader in readers}
        shift = sampler.shift(size=width) if norm.bias and all(homes.values()) else np.zeros(width)
        scales = sampler.scales(width) * sampler.signs(width) if norm.gain else np.ones(width)
        yield NormMove(self.place, scales, shift)
        if norm.kind != "layer" or not isinstance(layer.mlp, MLPWeights):
            return
        for reader, affine in readers.items():
            if affine.bias.size and (homes[reader] or not norm.bias):
                rows = sampler.shift(size=affine.bias.shape)
                if np.iscomplexobj(affine.bias):
                    rows = rows + 1j * sampler.shift(size=affine.bias.shape)
                yield MeanShift(self.place, reader, rows)

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
        if self.norm.kind != "layer" or isinstance(replay.layer.mlp, ExpertsWeights):
            return
        for reader, affine in readers_of(self.block, replay.stored, self.place):
            rows = (affine.weight * weights.gain).mean(axis=-1)
            if rows.size and (self._takes_means(reader) or not np.any(weights.bias)):
                replay.take(MeanShift(self.place, reader, rows))

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


def reader_change(norm: Norm, weights: NormWeights) -> Change:
    """A reader of u = gain ∘ n + bias as a reader of n, centred after a LayerNorm."""

    def change(name: str, reader: Affine) -> Affine:
        dtype = reader.weight.real.dtype
        return reader.after_norm(weights.gain.astype(dtype), weights.bias.astype(dtype), centred=norm.kind == "layer")

    return change
