"""Fold away what no reader can see: gains and biases of norms, mean directions, key and value constants.

`fold` gives a representative whose norms are plain and whose constants lie in one place (Lemma 4);
biases may then be nonzero although the file has no place for them. `express` moves them back into places the file has,
and fold(express(fold(L))) = fold(L).

`unfold_like` puts a folded layer into the gauge of another stored one: the same gains, biases and mean directions.
Folding is itself a symmetry, so its inverse is replayed factor by factor: each part is read off a layer A (folded
against stored) and applied to the folded layer B. What B then needs in places that the file lacks moves to others.
"""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.models.affine import Affine
from attngeom.models.layer import AttentionWeights, LayerWeights, MLPWeights, NormWeights
from attngeom.models.readers import has_bias, map_cross_memory, map_readers, readers_of
from attngeom.models.specification import GroupedAttention, Norm, TransformerBlock
from attngeom.models.symmetry import factors
from attngeom.models.symmetry.factor import Replay
from attngeom.models.symmetry.norms import reader_change
from attngeom.models.symmetry.places import place_biases

Memory = tuple[Norm, NormWeights]


def fold(block: TransformerBlock, layer: LayerWeights, memory: Memory | None = None) -> LayerWeights:
    """The layer with plain norms and gathered constants; ``memory`` is the encoder's final norm (cross-attention)."""
    if layer.cross is not None and memory is not None:
        layer = layer.with_(cross=map_cross_memory(layer.cross, reader_change(*memory)))
    for factor in factors(block):
        layer = factor.fold(layer)
    return layer


def express(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """The folded layer with every bias in a place that the file has; raises InputError if there is none."""
    layer = _constants_to_attention(block, layer)
    for place, weights in layer.attentions.items():
        layer = layer.with_(**{place: express_constant(block.attentions[place], weights)})
    for name, norm in block.input_norms.items():
        layer = _express_norm(block, layer, name, norm)
    return layer


def _constants_to_attention(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """The constant of a parallel MLP without a place becomes one of attention."""
    if not block.parallel or not isinstance(layer.mlp, MLPWeights) or has_bias(block, "mlp.input", "down"):
        return layer
    assert layer.attention is not None
    moved = layer.attention.with_(output_bias=layer.attention.output_bias + layer.mlp.down_bias)
    return layer.with_(attention=moved, mlp=layer.mlp.with_(down_bias=np.zeros_like(layer.mlp.down_bias)))


def express_constant(spec: GroupedAttention, weights: AttentionWeights) -> AttentionWeights:
    """A constant of the output without a place becomes value biases of least norm."""
    constant = weights.output_bias
    if spec.output_bias or not np.any(constant):
        return weights
    groups, share = weights.groups, weights.heads // weights.groups
    summed = weights.output.reshape(groups, share, *weights.output.shape[1:]).sum(axis=1)
    system = summed.transpose(1, 0, 2).reshape(len(constant), -1)
    biases = lapack.lstsq(system, constant)
    if np.abs(system @ biases - constant).max() > 1e-9 * np.abs(constant).max():
        raise InputError("a constant of the attention output given that value biases cannot express; no place for it")
    value = Affine(weights.value.weight, weights.value.bias + biases.reshape(groups, -1))
    return weights.with_(value=value, output_bias=np.zeros_like(constant))


def _express_norm(block: TransformerBlock, layer: LayerWeights, name: str, norm: Norm) -> LayerWeights:
    """Biases of readers without a place are read from a norm bias of ones: W + b 1ᵀ/d on rows with sum zero."""
    readers = readers_of(block, layer, name)
    homeless = any(np.any(affine.bias) and not has_bias(block, name, reader) for reader, affine in readers)
    if not homeless:
        return layer
    if not norm.bias or norm.kind != "layer":
        raise InputError(f"a constant read from the norm {name} given; the file has no bias to hold it")

    def move(reader: str, affine: Affine) -> Affine:
        if has_bias(block, name, reader):
            return affine
        return Affine.linear(affine.weight + affine.bias[..., None] / affine.weight.shape[-1])

    layer = map_readers(block, layer, name, move)
    weights = layer.norms[name]
    plain = weights.changed(weights.gain, np.ones_like(weights.bias))
    return layer.with_(norms={**layer.norms, name: plain})


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
    pattern, layer = (_constants_to_values(block, own) for own in (pattern, folded))
    if memory is not None and folded.cross is not None:
        pattern, layer = (_read_memory(own, stored, *memory) for own in (pattern, layer))
    replay = Replay(block, stored, pattern, layer)
    for factor in factors(block):
        factor.unfold(replay)
    placed = place_biases(block, replay.layer)
    return express(block, folded) if placed is None else placed


def _is_invertible(block: TransformerBlock, stored: LayerWeights, memory: Memory | None) -> bool:
    """Whether no gain that readers look through is zero."""
    names = [*block.input_norms, *(name for name in stored.norms if name.endswith("stream"))]
    gains = [stored.norms[name].gain for name in names]
    gains += [] if stored.mixer is None else [stored.mixer.gain]
    for own in stored.attentions.values():
        gains += [latent.gain for latent in (own.key_latent, own.query_latent) if latent]
    gains += [memory[1].gain] if memory is not None else []
    return all(bool(np.all(gain != 0)) for gain in gains)


def _constants_to_values(block: TransformerBlock, layer: LayerWeights) -> LayerWeights:
    """Constants of the output that the file has no bias for, as value biases, which norms can take up."""
    if block.attention is None or block.attention.output_bias:
        return layer
    layer = _constants_to_attention(block, layer)
    assert layer.attention is not None
    return layer.with_(attention=express_constant(block.attention, layer.attention))


def _read_memory(layer: LayerWeights, stored: LayerWeights, norm: Norm, weights: NormWeights) -> LayerWeights:
    """Keys and values of cross-attention that read the encoder's norm again, with the means of the stored ones."""

    def change(name: str, reader: Affine) -> Affine:
        centred = norm.kind == "layer"
        rows = (getattr(stored.cross, name).weight * weights.gain).mean(axis=-1, keepdims=True) if centred else 0.0
        weight = (reader.weight + rows) / weights.gain
        return Affine(weight, reader.bias - weight @ weights.bias)

    assert layer.cross is not None
    return layer.with_(cross=map_cross_memory(layer.cross, change))
