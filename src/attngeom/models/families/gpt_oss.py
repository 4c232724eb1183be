"""gpt-oss: biases on all projections, attention sinks, clamped experts in packed tensors."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import ATTENTION, decoder, grouped_attention, llama_places, rotary
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import MLP, Experts, Norms, TransformerBlock, TransformerSpec

EXPERTS = MLPLayout(
    packing="packed_experts", up="mlp.experts.gate_up_proj", down="mlp.experts.down_proj", router="mlp.router"
)


def specify(config: Config) -> TransformerSpec:
    config.refuse("swiglu_alpha", 1.702)
    config.refuse("hidden_act", "silu")
    config = config.with_default("head_dim", 64)
    bias = config.flag("attention_bias", default=True)
    attention = grouped_attention(config, rotary(config, theta=150000.0), bias=bias, output_bias=bias)
    norm = config.rms(default=1e-5)
    expert = MLP(
        width=config.integer("intermediate_size"),
        activation="swiglu_oai",
        gated=True,
        up_bias=True,
        down_bias=True,
        limit=config.number("swiglu_limit", default=7.0),
    )
    experts = Experts(
        expert=expert,
        count=config.integer("num_local_experts"),
        active=config.integer("num_experts_per_tok", "experts_per_token"),
        router="softmax",
        router_bias=True,
    )
    block = TransformerBlock(
        attention=replace(attention, sinks=True),
        mlp=experts,
        attention_norms=Norms(input=norm),
        mlp_norms=Norms(input=norm),
    )
    layers = config.layers("num_hidden_layers")
    default = ["full_attention" if i % 2 else "sliding_attention" for i in range(layers)]
    windows = config.windows(layers, config.integer("sliding_window", default=128), default)
    return decoder(config, "gpt_oss", block, norm, windows=windows)


def locate(config: Config) -> Places:
    return llama_places(replace(ATTENTION, extras={"sinks": "self_attn.sinks"}), EXPERTS)


FAMILY = ModelFamily(("gpt_oss",), specify, locate)
