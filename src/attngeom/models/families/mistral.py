"""Mistral: Llama with a sliding window on every layer."""

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
    attention = grouped_attention(config, rotary(config), bias=False, output_bias=False)
    norm = config.rms(default=1e-6)
    windows = [config.optional_integer("sliding_window")] * config.layers("num_hidden_layers")
    return decoder(config, "mistral", pre_norm_block(attention, gated_mlp(config), norm), norm, windows=windows)


def locate(config: Config) -> Places:
    return llama_places()


FAMILY = ModelFamily(("mistral",), specify, locate)
