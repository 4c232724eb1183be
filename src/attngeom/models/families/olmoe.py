"""OLMoE: norms before the sublayers and over all query or key heads, experts in every layer."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    EXPERTS,
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    pre_norm_block,
    rotary,
)
from attngeom.models.specification import Experts, QKNorm, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    config.refuse("clip_qkv")
    bias, norm = config.flag("attention_bias", default=False), config.rms(default=1e-5)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    experts = Experts(
        expert=gated_mlp(config),
        count=config.integer("num_experts", "num_local_experts", default=64),
        active=config.integer("num_experts_per_tok", default=8),
        router="softmax",
        normalised=config.flag("norm_topk_prob", default=False),
    )
    attention = replace(attention, qk_norm=QKNorm(scope="all_heads", norm=norm))
    return decoder(config, "olmoe", pre_norm_block(attention, experts, norm), norm)


def locate(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, experts=EXPERTS)


FAMILY = ModelFamily(("olmoe",), specify, locate)
