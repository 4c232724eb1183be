"""Qwen2, Qwen3 and their mixtures: Llama with biases on q, k, v, or a norm of each query and key head; with experts."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, block_of
from attngeom.models.families.decoders import (
    EXPERTS,
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    rotary,
    sliding_window,
)
from attngeom.models.specification import MLP, Experts, GroupedAttention, QKNorm, TransformerSpec


def _windows(config: Config) -> list[int | None]:
    layers = config.layers("num_hidden_layers")
    is_used = config.flag("use_sliding_window", default=False)
    # Configurations of Qwen2-MoE have a window of 0 where none is used.
    window = sliding_window(config) if is_used else None
    config.raw("layer_types", "max_window_layers", "sliding_window")
    if window is None:
        return [None] * layers
    first = config.integer("max_window_layers", default=28, least=0)
    default = ["sliding_attention" if i >= first else "full_attention" for i in range(layers)]
    return config.windows(window, default)


def _dense(config: Config, attention: GroupedAttention) -> TransformerSpec:
    norm = config.rms(default=1e-6)
    return decoder(config, block_of(attention, gated_mlp(config), norm), norm, windows=_windows(config))


def describe_qwen2(config: Config) -> TransformerSpec:
    return _dense(config, grouped_attention(config, rotary(config), bias=True, output_bias=False))


def _normed_attention(config: Config) -> GroupedAttention:
    attention = grouped_attention(config, rotary(config), bias=config.flag("attention_bias", default=False))
    return replace(attention, qk_norm=QKNorm(scope="per_head", norm=config.rms(default=1e-6)))


def describe_qwen3(config: Config) -> TransformerSpec:
    return _dense(config, _normed_attention(config))


def sparse_layers(config: Config, dense: MLP, experts: Experts) -> list[MLP | Experts]:
    """Experts in every layer that ``decoder_sparse_step`` names and ``mlp_only_layers`` does not."""
    layers = config.layers("num_hidden_layers")
    step, only = config.integer("decoder_sparse_step", default=1), config.raw("mlp_only_layers") or []
    if not isinstance(only, list) or not all(type(layer) is int and 0 <= layer < layers for layer in only):
        raise InputError(
            f"config mlp_only_layers = {str(only)[:40]} given; a list of layers below {layers} is required"
        )
    return [dense if layer in only or (layer + 1) % step else experts for layer in range(layers)]


def describe_qwen3_moe(config: Config) -> TransformerSpec:
    dense = gated_mlp(config)
    experts = Experts(
        expert=replace(dense, width=config.integer("moe_intermediate_size", default=768)),
        count=config.integer("num_experts", "num_local_experts", default=128),
        active=config.integer("num_experts_per_tok", default=8),
        router="softmax",
        normalised=config.flag("norm_topk_prob", default=False),
    )
    window = sliding_window(config) if config.flag("use_sliding_window", default=False) else None
    config.raw("sliding_window", "max_window_layers")
    norm = config.rms(default=1e-6)
    block = block_of(_normed_attention(config), dense, norm)
    mlps = sparse_layers(config, dense, experts)
    return decoder(config, block, norm, windows=[window] * len(mlps), mlps=mlps)


def experts_beside_a_shared_one(
    config: Config, dense: MLP, *, sizes: tuple[int, int], count: int, active: int, normalised: bool
) -> Experts:
    """Routed experts, and a shared one that is multiplied by a sigmoid of its own; the numbers are those by default."""
    return Experts(
        expert=replace(dense, width=config.integer("moe_intermediate_size", default=sizes[0])),
        count=config.integer("num_experts", default=count),
        active=config.integer("num_experts_per_tok", default=active),
        router="softmax",
        shared=replace(dense, width=config.integer("shared_expert_intermediate_size", default=sizes[1])),
        shared_gate=True,
        normalised=config.flag("norm_topk_prob", default=normalised),
    )


def describe_qwen2_moe(config: Config) -> TransformerSpec:
    dense = gated_mlp(config)
    experts = experts_beside_a_shared_one(config, dense, sizes=(1408, 5632), count=60, active=4, normalised=False)
    norm = config.rms(default=1e-6)
    bias = config.flag("qkv_bias", default=True)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=False)
    block, mlps = block_of(attention, dense, norm), sparse_layers(config, dense, experts)
    return decoder(config, block, norm, windows=_windows(config), mlps=mlps)


GATED_SHARED = replace(EXPERTS, shared="mlp.shared_expert.", shared_gate="mlp.shared_expert_gate")
"""Experts beside a shared one with a gate of its own."""
QWEN2 = ModelFamily("qwen2", describe_qwen2, llama_places())
QWEN2_MOE = ModelFamily("qwen2_moe", describe_qwen2_moe, llama_places(experts=GATED_SHARED))
QWEN3 = ModelFamily("qwen3", describe_qwen3, llama_places(NORMED_ATTENTION), {"head_dim": 128})
QWEN3_MOE = ModelFamily(
    "qwen3_moe", describe_qwen3_moe, llama_places(NORMED_ATTENTION, experts=EXPERTS), {"num_key_value_heads": 4}
)
