"""Llama 1 to 3: RMSNorm, rotary positions, grouped heads, gated MLP."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    pre_norm_block,
    rotary,
)
from attngeom.models.specification import TransformerSpec


def specify(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    norm = config.rms(default=1e-6)
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    return decoder(config, "llama", pre_norm_block(attention, mlp, norm), norm)


def locate(config: Config) -> Places:
    return llama_places()


FAMILY = ModelFamily(("llama",), specify, locate)
