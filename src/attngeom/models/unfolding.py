"""Put a folded layer into the gauge of another stored layer: the same gains, biases and mean directions.

Folding is itself a symmetry, so its inverse is replayed factor by factor: each part is read off a layer A (folded
against stored) and applied to the folded layer B. What B then needs in places that the file lacks moves to others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.models.affine import Affine
from attngeom.models.folding import express, express_constant
from attngeom.models.layer import LayerWeights, MLPWeights, NormWeights
from attngeom.models.readers import (
    has_bias,
    map_cross_memory,
)
from attngeom.models.specification import Norm, TransformerBlock
from attngeom.models.symmetry import Part, factors
from attngeom.models.symmetry.places import place_biases

Memory = tuple[Norm, NormWeights]


def unfold_like(
    block: TransformerBlock,
    folded: LayerWeights,
    stored: LayerWeights,
    pattern: LayerWeights,
    memory: Memory | None = None,
) -> LayerWeights:
    """The folded layer with the gains, means and constants of ``stored``, whose folded form is ``pattern``.

    ``memory`` is the encoder's final norm of the pattern, which its cross-attention reads through.
    """
    if not _is_invertible(block, stored, memory):
        return express(block, folded)
    replay = _Replay(block, stored, _constants_to_values(block, pattern), _constants_to_values(block, folded))
    if memory is not None and folded.cross is not None:
        replay.take_memory(memory[1], memory[0].kind == "layer")
    for factor in factors(block):
        factor.unfold(replay)
    placed = place_biases(block, replay.layer)
    return express(block, folded) if placed is None else placed


def _is_invertible(block: TransformerBlock, stored: LayerWeights, memory: Memory | None) -> bool:
    """Whether no gain that readers look through is zero."""
    names = [*block.input_norms, *(name for name in stored.norms if name.endswith("stream"))]
    gains = [stored.norms[name].gain for name in names]
    gains += [latent.gain for latent in (stored.attention.key_latent, stored.attention.query_latent) if latent]
    gains += [memory[1].gain] if memory is not None else []
    return all(bool(np.all(gain != 0)) for gain in gains)


def _constants_to_values(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """Constants of the output that the file has no bias for, as value biases, which norms can take up."""
    assert block.attention is not None
    if block.attention.output_bias:
        return layer
    if block.parallel and isinstance(layer.mlp, MLPWeights) and not has_bias(block, "mlp.input", "down"):
        moved = layer.attention.with_(output_bias=layer.attention.output_bias + layer.mlp.down_bias)
        layer = layer.with_(attention=moved, mlp=layer.mlp.with_(down_bias=np.zeros_like(layer.mlp.down_bias)))
    return layer.with_(attention=express_constant(block.attention, layer.attention))


@dataclass
class _Replay:
    """Two layers that take the same parts: the pattern on its way back to ``stored``, and the layer that follows."""

    block: TransformerBlock
    stored: LayerWeights
    pattern: LayerWeights
    layer: LayerWeights

    def take(self, part: Part) -> None:
        self.layer, self.pattern = (part.act(self.block, layer) for layer in (self.layer, self.pattern))

    def take_memory(self, norm: NormWeights, centred: bool) -> None:
        """Keys and values of cross-attention read the encoder's norm again, with the means of the stored pattern."""
        assert self.stored.cross is not None
        cross = self.stored.cross

        def change(name: str, reader: Affine) -> Affine:
            rows = (getattr(cross, name).weight * norm.gain).mean(axis=-1, keepdims=True) if centred else 0.0
            weight = (reader.weight + rows) / norm.gain
            return Affine(weight, reader.bias - weight @ norm.bias)

        for name in ("layer", "pattern"):
            own: LayerWeights = getattr(self, name)
            assert own.cross is not None
            setattr(self, name, own.with_(cross=map_cross_memory(own.cross, change)))
