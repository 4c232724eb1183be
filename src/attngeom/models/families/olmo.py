"""OLMo: Llama with LayerNorms that have neither gain nor bias."""

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
from attngeom.models.specification import Norm, TransformerSpec

EPS = 1e-5
"""Of all its norms; no key of the configuration changes it."""


def specify(config: Config) -> TransformerSpec:
    config.refuse("clip_qkv")
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    norm = Norm(kind="layer", eps=EPS, gain=False)
    return decoder(config, "olmo", pre_norm_block(attention, gated_mlp(config), norm), norm)


def locate(config: Config) -> Places:
    return llama_places()


FAMILY = ModelFamily(("olmo",), specify, locate)
