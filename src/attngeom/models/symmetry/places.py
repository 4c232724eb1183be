"""Places of constants: what a file has no bias for goes to where it has one, or is not seen at all.

Rows that nobody sees have none: those of heads with at least as many coordinates as are read or written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import SINGULAR_CONDITION
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights, MLPWeights
from attngeom.models.readers import (
    Change,
    has_bias,
    key_bias_is_invisible,
    map_readers,
    readers_of,
    value_bias_is_constant,
)
from attngeom.models.specification import GroupedAttention, TransformerBlock
from attngeom.models.symmetry.factor import Part


@dataclass(frozen=True, eq=False)
class Placed(Part):
    """A part of stored layers after which every constant is put into a place that the file has."""

    part: Part

    def act(self, block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
        placed = place_biases(block, self.part.act(block, layer))
        assert placed is not None, "a part that leaves a constant without a place"
        return placed

    def inverse(self) -> Placed:
        return Placed(self.part.inverse())

    @property
    def name(self) -> str:
        return self.part.name

    def arrays(self) -> dict[str, Array]:
        return self.part.arrays()


def place_constants(block: TransformerBlock, spec: GroupedAttention, weights: AttentionWeights) -> AttentionWeights:
    """AttentionBiases of keys that have no place are not seen, those of values go into the output."""
    if key_bias_is_invisible(spec) and not spec.key_bias:
        weights = weights.with_(key=Affine.linear(weights.key.weight))
    taken = spec.output_bias or (block.parallel and has_bias(block, "mlp.input", "down"))
    if value_bias_is_constant(spec) and not spec.value_bias and taken:
        constant = weights.output_bias + value_constant(weights)
        weights = weights.with_(value=Affine.linear(weights.value.weight), output_bias=constant)
    return weights


def value_constant(weights: AttentionWeights) -> Array:
    """Σ_h O_h b_v of the biases of the values."""
    biases = np.repeat(weights.value.bias, weights.heads // weights.groups, axis=0)
    return np.asarray((weights.output @ biases[..., None]).sum(axis=0)[:, 0])


def place_biases(block: TransformerBlock, layer: LayerWeights) -> LayerWeights | None:
    """The layer with every bias in a place that the file has, its norms kept; None if some bias has none."""
    for place, own in layer.attentions.items():
        layer = layer.with_(**{place: place_constants(block, block.attentions[place], own)})
    spec = block.attention
    if spec is not None and not spec.output_bias and block.parallel and has_bias(block, "mlp.input", "down"):
        assert isinstance(layer.mlp, MLPWeights)
        attention = layer.attentions["attention"]
        mlp = layer.mlp.with_(down_bias=layer.mlp.down_bias + attention.output_bias)
        layer = layer.with_(mlp=mlp, attention=attention.with_(output_bias=np.zeros_like(attention.output_bias)))
    for name, norm in block.input_norms.items():
        weights = layer.norms[name]
        total = float((weights.bias / weights.gain).sum())
        if norm.kind == "layer" and total:
            layer = map_readers(block, layer, name, _into_rows(block, name, weights.gain, total))
    return layer if _has_places(block, layer) else None


def _into_rows(block: TransformerBlock, name: str, gain: np.ndarray, total: float) -> Change:
    def change(reader: str, affine: Affine) -> Affine:
        if has_bias(block, name, reader) or not np.any(affine.bias):
            return affine
        rows = affine.bias / total
        return Affine.linear(affine.weight + rows[..., None] / gain)

    return change


def _has_places(block: TransformerBlock, layer: LayerWeights) -> bool:
    """Whether every bias that is not zero has a place in the file."""
    good = all(
        has_bias(block, name, reader) or not np.any(affine.bias)
        for name in block.input_norms
        for reader, affine in readers_of(block, layer, name)
    )
    for place, weights in layer.attentions.items():
        good &= block.attentions[place].output_bias or not np.any(weights.output_bias)
    if isinstance(layer.mlp, MLPWeights):
        good &= has_bias(block, "mlp.input", "down") or not np.any(layer.mlp.down_bias)
    return good


def seen_rows(spec: GroupedAttention, weights: AttentionWeights) -> AttentionWeights:
    """Rows without what none of the other side meets, of heads with at least as many coordinates as are read."""
    if spec.latent is not None:
        return weights
    if spec.head_norm is None and weights.key.weight.shape[1] >= weights.key.weight.shape[2]:
        onto = _spans(weights.key.rows)
        weights = weights.with_(query=weights.query.then(np.repeat(onto, weights.heads // len(onto), axis=0)))
        weights = weights.with_(key=weights.key.then(_spans(_beside(weights.query.rows, len(onto)))))
    # Where the output has no bias, constants of values have no other place.
    if spec.output_bias and weights.value.weight.shape[1] >= weights.value.weight.shape[2]:
        onto = _spans(weights.value.rows)
        weights = weights.with_(output=weights.output @ np.repeat(onto, weights.heads // len(onto), axis=0))
        written = _spans(_beside(weights.output.transpose(0, 2, 1), len(onto)))
        weights = weights.with_(value=weights.value.then(written))
    return weights


def _beside(rows: Array, groups: int) -> Array:
    """Rows (heads, n, ·) of the heads of a group side by side."""
    parts = rows.reshape(groups, -1, *rows.shape[1:]).transpose(0, 2, 1, 3)
    return parts.reshape(groups, rows.shape[1], -1)


def _spans(rows: Array) -> Array:
    """The projections onto the spans of the columns of rows (groups, n, ·)."""
    projections = []
    for own in rows:
        u, sizes, _ = lapack.svd(own)
        kept = u[:, : len(sizes)][:, sizes * SINGULAR_CONDITION > sizes.max(initial=0.0)]
        projections.append(kept @ kept.T)
    return np.stack(projections)
