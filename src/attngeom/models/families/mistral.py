"""Mistral, Ministral: Llama with a sliding window on every layer, or on those that ``layer_types`` names."""

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


def _specify(config: Config, family: str, windows: list[int | None]) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config), bias=False, output_bias=False)
    norm = config.rms(default=1e-6)
    return decoder(config, family, pre_norm_block(attention, gated_mlp(config), norm), norm, windows=windows)


def specify_mistral(config: Config) -> TransformerSpec:
    windows = [config.optional_integer("sliding_window")] * config.layers("num_hidden_layers")
    return _specify(config, "mistral", windows)


def specify_ministral(config: Config) -> TransformerSpec:
    windows = config.windows(config.layers("num_hidden_layers"), config.optional_integer("sliding_window"))
    return _specify(config, "ministral", windows)


def locate(config: Config) -> Places:
    return llama_places()


MISTRAL = ModelFamily(("mistral",), specify_mistral, locate)
MINISTRAL = ModelFamily(("ministral",), specify_ministral, locate)
