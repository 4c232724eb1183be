"""Llama 1 to 3, Seed-OSS: RMSNorm, rotary positions, grouped heads, gated MLP."""

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


def _specify(config: Config, family: str, bias: bool, output_bias: bool) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=output_bias)
    norm = config.rms(default=1e-6)
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    return decoder(config, family, pre_norm_block(attention, mlp, norm), norm)


def specify_llama(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    return _specify(config, "llama", bias, bias)


def specify_seed_oss(config: Config) -> TransformerSpec:
    config = config.with_default("head_dim", 128).with_default("num_key_value_heads", 8)
    bias, output_bias = config.flag("attention_bias", default=True), config.flag("attention_out_bias", default=False)
    return _specify(config, "seed_oss", bias, output_bias)


def locate(config: Config) -> Places:
    return llama_places()


LLAMA = ModelFamily(("llama",), specify_llama, locate)
SEED_OSS = ModelFamily(("seed_oss",), specify_seed_oss, locate)
