"""Which maps of a layer read a norm, and which biases cancel: the bookkeeping that folding and symmetries share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.models.affine import Affine
from attngeom.models.layer import (
    AttentionWeights,
    ExpertsWeights,
    LayerWeights,
    MLPWeights,
    NormWeights,
    RecurrentWeights,
)
from attngeom.models.specification import MLP, PLACES, Experts, GroupedAttention, TransformerBlock

Change = Callable[[str, Affine], Affine]
"""change(reader, map): the new map of a reader named query, key, value, gate, up, router, latent …"""

Norms = Mapping[str, tuple[str, ...]]


def map_attention(weights: AttentionWeights, change: Change) -> AttentionWeights:
    """Change every map of self-attention that reads the residual stream."""
    if weights.key_latent is not None:
        changes: dict[str, object] = {
            "key_latent": replace(weights.key_latent, down=change("latent", weights.key_latent.down)),
            "rotated_key": change("rotated_key", weights.rotated_key),
        }
        if weights.query_latent is not None:
            changes["query_latent"] = replace(weights.query_latent, down=change("latent", weights.query_latent.down))
        else:
            changes["query"] = change("query", weights.query)
            changes["rotated_query"] = change("rotated_query", weights.rotated_query)
        return weights.with_(**changes)
    names = ("rotated_query", "rotated_key", "query", "key", "value", *weights.gates)
    return weights.with_(**{name: change(name, getattr(weights, name)) for name in names})


def map_cross_queries(weights: AttentionWeights, change: Change) -> AttentionWeights:
    """Change the maps of cross-attention that read the decoder's stream."""
    names = ("rotated_query", "query", *weights.gates)
    return weights.with_(**{name: change(name, getattr(weights, name)) for name in names})


def map_cross_memory(weights: AttentionWeights, change: Change) -> AttentionWeights:
    """Change the maps of cross-attention that read the encoder's states."""
    names = ("rotated_key", "key", "value")
    return weights.with_(**{name: change(name, getattr(weights, name)) for name in names})


BESIDE = "mixer_"
"""What names of readers of a mixer begin with that reads the norm of attention."""


def map_mixer(weights: RecurrentWeights, change: Change, prefix: str = "") -> RecurrentWeights:
    """Change every map of a mixer, all of which read the residual stream."""
    return weights.with_(**{name: change(prefix + name, reader) for name, reader in weights.readers.items()})


Units = MLPWeights | ExpertsWeights | None


def map_mlp(weights: Units, change: Change) -> Units:
    """Change every map of the MLP or of the experts that reads the residual stream."""
    if weights is None:
        return None
    if isinstance(weights, MLPWeights):
        return _map_units(weights, change)
    return weights.with_(
        router=change("router", weights.router),
        experts=tuple(_map_units(expert, change) for expert in weights.experts),
        shared=None if weights.shared is None else _map_units(weights.shared, change),
        shared_gate=None if weights.shared_gate is None else change("shared_gate", weights.shared_gate),
    )


def _map_units(weights: MLPWeights, change: Change) -> MLPWeights:
    gate = None if weights.gate is None else change("gate", weights.gate)
    return weights.with_(gate=gate, up=change("up", weights.up))


def post_norms(block: TransformerBlock) -> dict[str, str]:
    """The sublayers behind which the sum is normalised, each with the norm of the sum before it, the first with none.

    >>> from attngeom.models.specification import MLP, Norm, Norms, TransformerBlock
    >>> summed = Norms(stream=Norm(kind="layer", eps=1e-12, bias=True))
    >>> mlp = MLP(width=2, activation="gelu", gated=False)
    >>> post_norms(TransformerBlock(attention=None, mlp=mlp, mlp_norms=summed))
    {'mlp': ''}
    """
    places = [place for place, norms in zip(PLACES, block.norms) if norms.stream is not None]
    return {place: f"{before}.stream" if before else "" for before, place in zip(["", *places], places)}


def map_readers(block: TransformerBlock, layer: LayerWeights, norm: str, change: Change) -> LayerWeights:
    """Change every map that reads a norm at the input of a sublayer, or a norm of the sum before it."""
    behind = {before: f"{place}.input" for place, before in post_norms(block).items()}
    norm = behind.get(norm, norm)
    if norm == "mixer.input":
        assert layer.mixer is not None
        return layer.with_(mixer=map_mixer(layer.mixer, change))
    if norm == "cross.input":
        assert layer.cross is not None
        return layer.with_(cross=map_cross_queries(layer.cross, change))
    if norm == "mlp.input":
        return layer.with_(mlp=map_mlp(layer.mlp, change))
    assert layer.attention is not None
    layer = layer.with_(attention=map_attention(layer.attention, change))
    if block.beside and layer.mixer is not None:
        layer = layer.with_(mixer=map_mixer(layer.mixer, change, BESIDE))
    return layer.with_(mlp=map_mlp(layer.mlp, change)) if block.shared_norm else layer


def readers_of(block: TransformerBlock, layer: LayerWeights, norm: str) -> list[tuple[str, Affine]]:
    """The maps that read a norm, with their names; experts have the same ones."""
    readers: list[tuple[str, Affine]] = []

    def note(name: str, affine: Affine) -> Affine:
        readers.append((name, affine))
        return affine

    map_readers(block, layer, norm, note)
    return readers


def writer_of(layer: LayerWeights, place: str) -> Affine:
    """The map by which attention or a dense MLP writes into the stream: all its columns, and its bias."""
    if place == "mlp":
        assert isinstance(layer.mlp, MLPWeights)
        return Affine(layer.mlp.down, layer.mlp.down_bias)
    own = layer.attentions[place]
    return Affine(own.output.transpose(1, 0, 2).reshape(own.output.shape[1], -1), own.output_bias)


def with_writer(layer: LayerWeights, place: str, writer: Affine) -> LayerWeights:
    """The layer that writes by another map: the inverse of `writer_of`."""
    if place == "mlp":
        assert isinstance(layer.mlp, MLPWeights)
        return layer.with_(mlp=layer.mlp.with_(down=writer.weight, down_bias=writer.bias))
    own = layer.attentions[place]
    heads, rows, columns = own.output.shape
    output = writer.weight.reshape(rows, heads, columns).transpose(1, 0, 2)
    return layer.with_(**{place: own.with_(output=output, output_bias=writer.bias)})


def reading_place(norm: str, reader: str) -> str:
    """The sublayer of a map that reads a norm, which a parallel block may share.

    >>> reading_place("attention.input", "up"), reading_place("cross.input", "query")
    ('mlp', 'cross')
    """
    if reader.startswith(BESIDE):
        return "mixer"
    return "mlp" if reader in ("gate", "up", "router", "shared_gate", "down") else norm.removesuffix(".input")


def has_bias(block: TransformerBlock, norm: str, reader: str) -> bool:
    """Whether the file has a place for the bias of a reader of the norm."""
    if reading_place(norm, reader) == "mlp":
        mlp = block.mlp
        if isinstance(mlp, Experts):
            unit = mlp.expert.up_bias if reader != "down" else mlp.expert.down_bias
            return {"router": mlp.router_bias, "shared_gate": False}.get(reader, unit)
        assert isinstance(mlp, MLP)
        return mlp.down_bias if reader == "down" else mlp.up_bias
    if reading_place(norm, reader) == "mixer":
        return block.mixer is not None and block.mixer.bias
    attention = block.attentions[reading_place(norm, reader)]
    if attention.latent is not None:
        return attention.latent.bias and reader in ("latent", "rotated_key")
    flags = {
        "query": attention.query_bias,
        "output_gate": attention.query_bias,
        "key": attention.key_bias,
        "value": attention.value_bias,
    }
    return flags[reader.removeprefix("rotated_")]


def key_bias_is_invisible(attention: GroupedAttention) -> bool:
    """A constant added to the plain keys adds the same to all scores of a token, which softmax forgets."""
    return not attention.shows_key_constants


def value_bias_is_constant(attention: GroupedAttention) -> bool:
    """The shares of a token sum to one, so value biases only add a constant to the output."""
    return attention.shares_sum_to_one


def switches(mlp: MLPWeights, norm: NormWeights) -> Array:
    """Per ReLU unit, whether it is on somewhere and off somewhere on the sphere of n, |n| = √d, that it reads."""
    reader = mlp.up if mlp.gate is None else mlp.gate
    rows = reader.weight * norm.gain
    constant = reader.weight @ norm.bias + reader.bias
    return np.asarray(np.abs(constant) < np.linalg.norm(rows, axis=1) * np.sqrt(rows.shape[1]))
