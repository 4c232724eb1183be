"""Where the weights of a layer lie in a checkpoint: names and packings, read and written by the same tables.

A `BlockLayout` names the tensors of one block; `read_layer` turns them into `LayerWeights` and `write_layer` turns them
back, so a family is a table of names and not code. Rows of projections are outputs unless ``transposed`` (Conv1D).
"""

from __future__ import annotations

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.layer import AttentionWeights, ExpertsWeights, LayerWeights, MLPWeights
from attngeom.models.layout.attention import read_attention, write_attention
from attngeom.models.layout.mixers import read_mixer, write_mixer
from attngeom.models.layout.mlp import read_experts, read_mlp, write_experts, write_mlp
from attngeom.models.layout.multipliers import multiplied
from attngeom.models.layout.tables import (
    AttentionLayout,
    BlockLayout,
    Load,
    MixerLayout,
    MLPLayout,
    Packed,
    read_norm,
    split_attention,
    write_norm,
)
from attngeom.models.readers import with_writer, writer_of
from attngeom.models.specification import MLP, PLACES, Experts, GroupedAttention, Norm, TransformerBlock

__all__ = [
    "AttentionLayout",
    "BlockLayout",
    "Load",
    "MLPLayout",
    "MixerLayout",
    "Packed",
    "norm_specs",
    "read_layer",
    "read_norm",
    "split_attention",
    "write_layer",
    "write_norm",
]


def norm_specs(block: TransformerBlock) -> dict[str, Norm]:
    """The norms that a block has, by the keys of `LayerWeights.norms`."""
    specs = {f"{part}.{end}": getattr(norms, end) for part, norms in zip(PLACES, block.norms) for end in _ENDS}
    return {name: norm for name, norm in specs.items() if norm is not None}


_ENDS = ("input", "output", "stream")


def read_layer(
    block: TransformerBlock, layout: BlockLayout, index: int, width: int, load: Load, load_large: Load
) -> LayerWeights:
    """The weights of layer ``index`` in normal form; ``load_large`` serves the MLP and may keep float32."""
    prefix = layout.prefix.format(index)

    def below(name: str, shape: tuple[int, ...]) -> Array:
        return load(prefix + name, shape)

    def large(name: str, shape: tuple[int, ...]) -> Array:
        return load_large(prefix + name, shape)

    def attend(spec: GroupedAttention | None, own: AttentionLayout | None) -> AttentionWeights | None:
        return None if spec is None or own is None else read_attention(spec, own, width, below)

    # Examples are drawn tensor by tensor in the order of reading: it stays as it is.
    cross = attend(block.cross, layout.cross)
    norms = {name: read_norm(norm, layout.norms[name], width, below) for name, norm in norm_specs(block).items()}
    attention, mixer = attend(block.attention, layout.attention), None
    if block.mixer is not None and layout.mixer is not None:
        mixer = read_mixer(block.mixer, layout.mixer, width, below)
    mlp: MLPWeights | ExpertsWeights | None = None
    units = layout.experts or layout.mlp
    if isinstance(block.mlp, Experts) and units is not None:
        mlp = read_experts(block.mlp, units, width, large)
    elif isinstance(block.mlp, MLP) and layout.mlp is not None:
        mlp = read_mlp(block.mlp, layout.mlp, width, large, "")
    layer = LayerWeights(attention, mlp, norms, cross, mixer)
    if layout.multipliers:
        layer = multiplied(layer, layout.multipliers)
    for place, name in layout.scales.items() if block.scales_outputs else ():
        writer = writer_of(layer, place)
        layer = with_writer(layer, place, writer.scaled(below(name, (width,)).astype(writer.weight.dtype)))
    return layer


def write_layer(
    block: TransformerBlock, layout: BlockLayout, index: int, layer: LayerWeights, scales: Load | None = None
) -> dict[str, Array]:
    """The tensors of layer ``index`` by name: the inverse of `read_layer`.

    Outputs are scaled by ones, or by what ``scales`` loads, which is taken from the maps that write.
    """
    tensors: dict[str, Array] = {}
    prefix = layout.prefix.format(index)
    if layout.multipliers:
        layer = multiplied(layer, {part: (1 / a, 1 / b) for part, (a, b) in layout.multipliers.items()})
    for place, name in layout.scales.items() if block.scales_outputs else ():
        loaded = np.ones(layer.width) if scales is None else scales(prefix + name, (layer.width,))
        tensors[name] = np.where(loaded == 0, 1.0, loaded)
        layer = with_writer(layer, place, writer_of(layer, place).scaled(1 / tensors[name]))
    if block.mixer is not None and layout.mixer is not None and layer.mixer is not None:
        tensors |= write_mixer(block.mixer, layout.mixer, layer.mixer)
    names = {"attention": layout.attention, "cross": layout.cross}
    for place, weights in layer.attentions.items():
        own = names[place]
        assert own is not None
        tensors |= write_attention(block.attentions[place], own, weights)
    for name, norm in norm_specs(block).items():
        tensors |= write_norm(norm, layout.norms[name], layer.norms[name])
    units = layout.experts or layout.mlp
    if isinstance(block.mlp, Experts):
        assert isinstance(layer.mlp, ExpertsWeights) and units is not None
        tensors |= write_experts(block.mlp, units, layer.mlp)
    elif block.mlp is not None:
        assert isinstance(layer.mlp, MLPWeights) and layout.mlp is not None
        tensors |= write_mlp(block.mlp, layout.mlp, layer.mlp, "")
    return {prefix + name: tensor for name, tensor in tensors.items()}
