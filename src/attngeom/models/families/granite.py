"""Granite, dense or with experts, one of them shared: Llama with constants on embedding, scores, logits, sublayers."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, block_of, head_of
from attngeom.models.families.decoders import decoder, gated_mlp, grouped_attention, llama_places, rotary
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import MLP, Experts, TransformerSpec

EXPERTS = MLPLayout(
    packing="stacked_experts",
    up="block_sparse_moe.input_linear",
    down="block_sparse_moe.output_linear",
    router="block_sparse_moe.router.layer",
    shared="shared_mlp.",
    shared_units=MLPLayout(packing="fused", up="input_linear", down="output_linear"),
)


def granite(config: Config, mlp: MLP | Experts, *, rotates: bool = True) -> TransformerSpec:
    """A Granite with its constants; without positions unless it ``rotates``."""
    norm, rotation = config.rms(default=1e-6), rotary(config)
    bias, scale = config.flag("attention_bias", default=False), config.positive("attention_multiplier", default=1.0)
    attention = replace(grouped_attention(config, rotation if rotates else None, bias=bias), scale=scale)
    residual_scale = config.positive("residual_multiplier", default=1.0)
    block = block_of(attention, mlp, norm, residual_scale=residual_scale)
    head = head_of(config, tied=False, scale=1 / config.positive("logits_scaling", default=1.0))
    embedding_scale = config.positive("embedding_multiplier", default=1.0)
    return decoder(config, block, norm, head=head, embedding_scale=embedding_scale)


def describe_granite(config: Config) -> TransformerSpec:
    return granite(config, gated_mlp(config, bias=config.flag("mlp_bias", default=False)))


def experts_of(config: Config, shared: MLP | None = None) -> Experts:
    return Experts(
        expert=gated_mlp(config),
        shared=shared,
        count=config.integer("num_local_experts", default=8),
        active=config.integer("num_experts_per_tok", default=2),
        router="softmax",
    )


def describe_granitemoe(config: Config) -> TransformerSpec:
    return granite(config, experts_of(config))


def describe_granitemoeshared(config: Config) -> TransformerSpec:
    """Without a shared expert where its size is 0."""
    size = config.integer("shared_intermediate_size", default=0, least=0)
    return granite(config, experts_of(config, replace(gated_mlp(config), width=size) if size else None))


GRANITE = ModelFamily("granite", describe_granite, llama_places())
GRANITE_MOE = ModelFamily("granitemoe", describe_granitemoe, llama_places(experts=EXPERTS))
GRANITE_MOE_SHARED = ModelFamily("granitemoeshared", describe_granitemoeshared, llama_places(experts=EXPERTS))
