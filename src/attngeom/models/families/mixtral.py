"""Mixtral: Mistral with experts in place of the MLP."""

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
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import Experts, TransformerSpec

EXPERTS = MLPLayout(
    packing="experts",
    gate="w1",
    up="w3",
    down="w2",
    router="block_sparse_moe.gate",
    expert="block_sparse_moe.experts.{}.",
)


def specify(config: Config) -> TransformerSpec:
    config = config.with_default("num_key_value_heads", 8)
    attention = grouped_attention(config, rotary(config, theta=1e6), bias=False, output_bias=False)
    experts = Experts(
        expert=gated_mlp(config),
        count=config.integer("num_local_experts", "num_experts", default=8),
        active=config.integer("num_experts_per_tok", default=2),
        router="softmax",
    )
    norm = config.rms(default=1e-5)
    windows = [config.optional_integer("sliding_window")] * config.layers("num_hidden_layers")
    return decoder(config, "mixtral", pre_norm_block(attention, experts, norm), norm, windows=windows)


def locate(config: Config) -> Places:
    return llama_places(experts=EXPERTS)


FAMILY = ModelFamily(("mixtral",), specify, locate)
