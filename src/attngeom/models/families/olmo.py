"""OLMo 1 to 3 and OLMoE: Llama with other norms, of outputs and of queries and keys, and with experts."""

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
    layer_types,
    llama_places,
    locate_llama,
    pre_norm_block,
    rotary,
    rotary_of_type,
    sliding_window,
)
from attngeom.models.specification import Experts, Norm, Norms, QKNorm, Rotary, TransformerBlock, TransformerSpec

# OLMo: Llama with LayerNorms that have neither gain nor bias.

EPS = 1e-5
"""Of all its norms; no key of the configuration changes it."""


def specify_olmo(config: Config) -> TransformerSpec:
    config.refuse("clip_qkv")
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    norm = Norm(kind="layer", eps=EPS, gain=False)
    return decoder(config, "olmo", pre_norm_block(attention, gated_mlp(config), norm), norm)


OLMO = ModelFamily(("olmo",), specify_olmo, locate_llama)


# OLMo-2, OLMo-3: norms of the outputs of the sublayers, not of their inputs, and over all query or key heads.

NORMS = {"attention.output": "post_attention_layernorm", "mlp.output": "post_feedforward_layernorm"}


def _block_olmo2(config: Config, rotation: Rotary | None) -> TransformerBlock:
    bias = config.flag("attention_bias", default=False)
    norm = config.rms(default=1e-5)
    attention = replace(
        grouped_attention(config, rotation, bias=bias, output_bias=bias),
        qk_norm=QKNorm(scope="all_heads", norm=norm),
    )
    return TransformerBlock(
        attention=attention,
        mlp=gated_mlp(config),
        attention_norms=Norms(output=norm),
        mlp_norms=Norms(output=norm),
    )


def specify_olmo2(config: Config) -> TransformerSpec:
    return decoder(config, "olmo2", _block_olmo2(config, rotary(config)), config.rms(default=1e-5))


def specify_olmo3(config: Config) -> TransformerSpec:
    """Three of four layers have a window; what stretches the rotation concerns the others."""
    types = layer_types(config, 4)
    turns = {name: rotary_of_type(config, name, theta=5e5) for name in ("full_attention", "sliding_attention")}
    windows = config.windows(len(types), sliding_window(config), types)
    return decoder(
        config, "olmo3", _block_olmo2(config, None), config.rms(default=1e-5), windows=windows,
        rotaries=[turns[name] for name in types],
    )  # fmt: skip


def locate_olmo2(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, norms=NORMS)


OLMO2 = ModelFamily(("olmo2",), specify_olmo2, locate_olmo2)
OLMO3 = ModelFamily(("olmo3",), specify_olmo3, locate_olmo2)


# OLMoE: norms before the sublayers and over all query or key heads, experts in every layer.


def specify_olmoe(config: Config) -> TransformerSpec:
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


def locate_olmoe(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, experts=EXPERTS)


OLMOE = ModelFamily(("olmoe",), specify_olmoe, locate_olmoe)
