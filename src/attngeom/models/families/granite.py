"""Granite, dense or with experts, one of them shared: Llama with constants on embedding, scores, logits, sublayers."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    locate_llama,
    pre_norm_block,
    rotary,
)
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import MLP, Experts, GroupedAttention, LogitHead, TransformerSpec

EXPERTS = MLPLayout(
    packing="stacked_experts",
    up="block_sparse_moe.input_linear",
    down="block_sparse_moe.output_linear",
    router="block_sparse_moe.router.layer",
    shared="shared_mlp.",
    shared_units=MLPLayout(packing="fused", up="input_linear", down="output_linear"),
)


def attention_of(config: Config) -> GroupedAttention:
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    return replace(attention, scale=config.positive("attention_multiplier", default=1.0))


def head_of(config: Config) -> LogitHead:
    tied = config.flag("tie_word_embeddings", default=False)
    return LogitHead(tied=tied, scale=1 / config.positive("logits_scaling", default=1.0))


def _specify(config: Config, family: str, mlp: MLP | Experts) -> TransformerSpec:
    norm = config.rms(default=1e-6)
    block = pre_norm_block(attention_of(config), mlp, norm)
    block = replace(block, residual_scale=config.positive("residual_multiplier", default=1.0))
    return decoder(
        config, family, block, norm, head=head_of(config),
        embedding_scale=config.positive("embedding_multiplier", default=1.0),
    )  # fmt: skip


def specify_granite(config: Config) -> TransformerSpec:
    return _specify(config, "granite", gated_mlp(config, bias=config.flag("mlp_bias", default=False)))


def experts_of(config: Config, shared: MLP | None = None) -> Experts:
    return Experts(
        expert=gated_mlp(config),
        shared=shared,
        count=config.integer("num_local_experts", default=8),
        active=config.integer("num_experts_per_tok", default=2),
        router="softmax",
    )


def specify_granitemoe(config: Config) -> TransformerSpec:
    return _specify(config, "granitemoe", experts_of(config))


def specify_granitemoeshared(config: Config) -> TransformerSpec:
    """Without a shared expert where its size is 0."""
    size = config.integer("shared_intermediate_size", default=0, least=0)
    shared = replace(gated_mlp(config), width=size) if size else None
    return _specify(config, "granitemoeshared", experts_of(config, shared))


def locate_granitemoe(config: Config) -> Places:
    return llama_places(experts=EXPERTS)


GRANITE = ModelFamily(("granite",), specify_granite, locate_llama)
GRANITE_MOE = ModelFamily(("granitemoe",), specify_granitemoe, locate_granitemoe)
GRANITE_MOE_SHARED = ModelFamily(("granitemoeshared",), specify_granitemoeshared, locate_granitemoe)
