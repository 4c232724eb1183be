"""Nemotron and Arcee: grouped heads and rotation as in Llama, and a plain MLP with the square of ReLU."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_mlp
from attngeom.models.families.decoders import decoder, grouped_attention, llama_places, pre_norm_block, rotary
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import MLP, Norm, Rotary, TransformerSpec

PLAIN = MLPLayout(packing="split", up="mlp.up_proj", down="mlp.down_proj")


def _mlp(config: Config) -> MLP:
    activation = config.activation("hidden_act", default="relu2")
    return plain_mlp(config.integer("intermediate_size"), activation, bias=config.flag("mlp_bias", default=False))


def _specify(config: Config, family: str, rotation: Rotary | None, norm: Norm) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotation, bias=bias, output_bias=bias)
    return decoder(config, family, pre_norm_block(attention, _mlp(config), norm), norm)


def specify_nemotron(config: Config) -> TransformerSpec:
    """LayerNorms that store gain − 1, and half of the coordinates of a head rotated."""
    norm = Norm(kind="layer", eps=config.number("norm_eps", default=1e-5), bias=True, offset=1.0)
    return _specify(config, "nemotron", rotary(config, share=0.5), norm)


def specify_arcee(config: Config) -> TransformerSpec:
    return _specify(config, "arcee", rotary(config), config.rms(default=1e-5))


def locate(config: Config) -> Places:
    return llama_places(mlp=PLAIN)


NEMOTRON = ModelFamily(("nemotron",), specify_nemotron, locate)
ARCEE = ModelFamily(("arcee",), specify_arcee, locate)
