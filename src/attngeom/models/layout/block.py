"""A whole block as tensors: `read_layer` and `write_layer` are inverse to each other."""

from __future__ import annotations

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.models.layer import ExpertsWeights, LayerWeights, MLPWeights
from attngeom.models.layout.attention import read_attention, write_attention
from attngeom.models.layout.mlp import read_experts, read_mlp, write_experts, write_mlp
from attngeom.models.layout.tables import BlockLayout, Load, read_norm, write_norm
from attngeom.models.specification import Experts, Norm, TransformerBlock


def norm_specs(block: TransformerBlock) -> dict[str, Norm]:
    """The norms that a block has, by the keys of `LayerWeights.norms`."""
    places = {"attention": block.attention_norms, "cross": block.cross_norms, "mlp": block.mlp_norms}
    specs = {f"{part}.{place}": getattr(norms, place) for part, norms in places.items() for place in _PLACES}
    return {name: norm for name, norm in specs.items() if norm is not None}


_PLACES = ("input", "output", "stream")


def read_layer(
    block: TransformerBlock, layout: BlockLayout, index: int, width: int, load: Load, load_large: Load
) -> LayerWeights:
    """The weights of layer ``index`` in normal form; ``load_large`` serves the MLP and may keep float32."""
    prefix = layout.prefix.format(index)

    def below(name: str, shape: tuple[int, ...]) -> Array:
        return load(prefix + name, shape)

    def large(name: str, shape: tuple[int, ...]) -> Array:
        return load_large(prefix + name, shape)

    if block.attention is None or block.mlp is None:
        raise InputError(f"layer {index} without attention or MLP given; both are required to read weights")
    cross = None
    if block.cross is not None and layout.cross is not None:
        cross = read_attention(block.cross, layout.cross, width, below)
    norms = {name: read_norm(norm, layout.norms[name], width, below) for name, norm in norm_specs(block).items()}
    attention = read_attention(block.attention, layout.attention, width, below)
    mlp: MLPWeights | ExpertsWeights
    if isinstance(block.mlp, Experts):
        mlp = read_experts(block.mlp, layout.experts or layout.mlp, width, large)
    else:
        mlp = read_mlp(block.mlp, layout.mlp, width, large, "")
    return LayerWeights(attention, mlp, norms, cross)


def write_layer(block: TransformerBlock, layout: BlockLayout, index: int, layer: LayerWeights) -> dict[str, Array]:
    """The tensors of layer ``index`` by name: the inverse of `read_layer`."""
    assert block.attention is not None
    tensors = write_attention(block.attention, layout.attention, layer.attention)
    if block.cross is not None and layout.cross is not None and layer.cross is not None:
        tensors |= write_attention(block.cross, layout.cross, layer.cross)
    for name, norm in norm_specs(block).items():
        tensors |= write_norm(norm, layout.norms[name], layer.norms[name])
    if isinstance(block.mlp, Experts):
        assert isinstance(layer.mlp, ExpertsWeights)
        tensors |= write_experts(block.mlp, layout.experts or layout.mlp, layer.mlp)
    elif block.mlp is not None:
        assert isinstance(layer.mlp, MLPWeights)
        tensors |= write_mlp(block.mlp, layout.mlp, layer.mlp, "")
    prefix = layout.prefix.format(index)
    return {prefix + name: tensor for name, tensor in tensors.items()}
