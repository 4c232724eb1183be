"""Moves of norms and constants: gains, mean directions, biases that cancel, signs before norms on outputs (L1, L4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import LayerWeights, MLPWeights
from attngeom.models.readers import map_mlp, map_readers
from attngeom.models.specification import TransformerBlock
from attngeom.models.symmetry.factor import Part


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


@dataclass(frozen=True, eq=False)
class ConstantShift(Part):
    """Key constants that softmax forgets, value constants that the output bias takes up, outputs that only add up.

    ``key`` (G, a₀) is added to plain key biases, ``value`` (G, v) to value biases with −Σ O_h value in the output bias,
    ``output`` (d) moves from the bias of the MLP to that of attention (parallel blocks; before a LayerNorm: c·1).
    """

    key: Array
    value: Array
    output: Array
    place: str = "attention"

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        weights = layer.attentions[self.place]
        spread = np.repeat(self.value, weights.heads // weights.groups, axis=0)
        lost = np.einsum("hdv,hv->d", weights.output, spread)
        moved = weights.with_(
            key=Affine(weights.key.weight, weights.key.bias + self.key),
            value=Affine(weights.value.weight, weights.value.bias + self.value),
            output_bias=weights.output_bias - lost + self.output,
        )
        layer = layer.with_(**{self.place: moved})
        if not np.any(self.output):
            return layer
        assert isinstance(layer.mlp, MLPWeights)
        return layer.with_(mlp=layer.mlp.with_(down_bias=layer.mlp.down_bias - self.output))

    def inverse(self) -> ConstantShift:
        return ConstantShift(-self.key, -self.value, -self.output, self.place)


@dataclass(frozen=True, eq=False)
class StreamShift(Part):
    """Post-LN blocks: writers along 1 (heads, head bias, units, unit bias) and the bias of the inner norm."""

    output: Array
    down: Array
    constants: tuple[float, float]
    inner: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        assert isinstance(layer.mlp, MLPWeights)
        attention, mlp, norm = layer.attention, layer.mlp, layer.norms["attention.stream"]
        attention = attention.with_(
            output=attention.output + self.output[:, None, :], output_bias=attention.output_bias + self.constants[0]
        )
        mlp = mlp.with_(
            up=Affine(mlp.up.weight, mlp.up.bias - mlp.up.weight @ self.inner),
            down=mlp.down + self.down,
            down_bias=mlp.down_bias + self.constants[1] - self.inner,
        )
        norms = {**layer.norms, "attention.stream": norm.changed(norm.gain, norm.bias + self.inner)}
        return layer.with_(attention=attention, mlp=mlp, norms=norms)

    def inverse(self) -> StreamShift:
        return StreamShift(-self.output, -self.down, (-self.constants[0], -self.constants[1]), -self.inner)


@dataclass(frozen=True, eq=False)
class OutputSigns(Part):
    """Norms on outputs: the sign of a gain moves into the row that writes it."""

    attention: Array
    mlp: Array

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        assert isinstance(layer.mlp, MLPWeights)
        norms = dict(layer.norms)
        for name, signs in (("attention.output", self.attention), ("mlp.output", self.mlp)):
            if name in norms:
                norms[name] = norms[name].changed(norms[name].gain * signs, norms[name].bias)
        attention = layer.attention.with_(
            output=layer.attention.output * self.attention[None, :, None],
            output_bias=layer.attention.output_bias * self.attention,
        )
        mlp = layer.mlp.with_(down=layer.mlp.down * self.mlp[:, None], down_bias=layer.mlp.down_bias * self.mlp)
        return layer.with_(attention=attention, mlp=mlp, norms=norms)

    def inverse(self) -> OutputSigns:
        return self
