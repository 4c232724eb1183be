"""Llama, and what differs from it by windows, experts, layers without rotation, norms, biases or a plain MLP."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, block_of, head_of, parallel_block, plain_mlp
from attngeom.models.families.decoders import (
    ATTENTION,
    NORMED_ATTENTION,
    PRE_NORMS,
    decoder,
    gated_mlp,
    grouped_attention,
    layer_types,
    llama_places,
    rotary,
    sliding_window,
)
from attngeom.models.families.olmo import NORMS
from attngeom.models.layout import AttentionLayout, MLPLayout, split_attention
from attngeom.models.specification import MLP, Experts, Norm, Norms, QKNorm, Rotary, TransformerBlock, TransformerSpec

# Llama 1 to 3, Seed-OSS: RMSNorm, rotary positions, grouped heads, gated MLP.


def _llama(config: Config, bias: bool, output_bias: bool) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=output_bias)
    norm = config.rms(default=1e-6)
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    return decoder(config, block_of(attention, mlp, norm), norm)


def describe_llama(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    return _llama(config, bias, bias)


def describe_seed_oss(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=True)
    return _llama(config, bias, config.flag("attention_out_bias", default=False))


LLAMA = ModelFamily("llama", describe_llama, llama_places())
SEED_OSS = ModelFamily("seed_oss", describe_seed_oss, llama_places(), {"head_dim": 128, "num_key_value_heads": 8})


# Mistral, Ministral: Llama with a sliding window on every layer, or on those that ``layer_types`` names.


def _mistral(config: Config, windows: list[int | None]) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config), bias=False)
    norm = config.rms(default=1e-6)
    return decoder(config, block_of(attention, gated_mlp(config), norm), norm, windows=windows)


def describe_mistral(config: Config) -> TransformerSpec:
    return _mistral(config, [sliding_window(config)] * config.layers("num_hidden_layers"))


def describe_ministral(config: Config) -> TransformerSpec:
    layers = config.layers("num_hidden_layers")
    return _mistral(config, config.windows(sliding_window(config), ["sliding_attention"] * layers))


MISTRAL = ModelFamily("mistral", describe_mistral, llama_places())
MINISTRAL = ModelFamily("ministral", describe_ministral, llama_places())


# Mixtral: Mistral with experts in place of the MLP.

EXPERTS = MLPLayout(
    "experts", "w3", "w2", "w1", router="block_sparse_moe.gate", expert="block_sparse_moe.experts.{}."
)  # fmt: skip


def describe_mixtral(config: Config) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config, theta=1e6), bias=False)
    experts = Experts(
        expert=gated_mlp(config),
        count=config.integer("num_local_experts", "num_experts", default=8),
        active=config.integer("num_experts_per_tok", default=2),
        router="softmax",
    )
    norm = config.rms(default=1e-5)
    return decoder(config, block_of(attention, experts, norm), norm, windows=_windows(config))


def _windows(config: Config) -> list[int | None]:
    """One window for all layers, if the configuration names it."""
    return [config.optional_integer("sliding_window")] * config.layers("num_hidden_layers")


MIXTRAL = ModelFamily("mixtral", describe_mixtral, llama_places(experts=EXPERTS), {"num_key_value_heads": 8})


# Phi-3.5-MoE: Mixtral with LayerNorms, biases of attention, and a router that draws one expert after the other.


def describe_phimoe(config: Config) -> TransformerSpec:
    config.refuse("num_experts_per_tok", 2)
    attention = grouped_attention(config, rotary(config, theta=1e6), bias=config.flag("attention_bias", default=False))
    experts = Experts(
        expert=gated_mlp(config), count=config.integer("num_local_experts", default=16), active=2,
        router="sparsemixer", normalised=False, nearness=2 * config.number("router_jitter_noise", default=0.01),
    )  # fmt: skip
    norm = Norm(kind="layer", eps=config.number("rms_norm_eps", default=1e-5), bias=True)
    head = head_of(config, tied=False, bias=config.flag("lm_head_bias", default=False))
    return decoder(config, block_of(attention, experts, norm), norm, windows=_windows(config), head=head)


PHIMOE = ModelFamily(
    "phimoe", describe_phimoe, llama_places(experts=EXPERTS, head_bias="lm_head.bias"), {"num_key_value_heads": 8}
)


# gpt-oss: biases on all projections, attention sinks, clamped experts in packed tensors.

PACKED = MLPLayout("packed_experts", "mlp.experts.gate_up_proj", "mlp.experts.down_proj", router="mlp.router")


def describe_gpt_oss(config: Config) -> TransformerSpec:
    config.refuse("swiglu_alpha", 1.702)
    config.refuse("hidden_act", "silu")
    bias = config.flag("attention_bias", default=True)
    attention = replace(grouped_attention(config, rotary(config, theta=150000.0), bias=bias), sinks=True)
    norm = config.rms(default=1e-5)
    limit = config.number("swiglu_limit", default=7.0)
    width = config.integer("intermediate_size")
    experts = Experts(
        expert=MLP(width=width, activation="swiglu_oai", gated=True, up_bias=True, down_bias=True, limit=limit),
        count=config.integer("num_local_experts"),
        active=config.integer("num_experts_per_tok", "experts_per_token"),
        router="softmax",
        router_bias=True,
    )
    layers = config.layers("num_hidden_layers")
    default = ["full_attention" if i % 2 else "sliding_attention" for i in range(layers)]
    windows = config.windows(config.integer("sliding_window", default=128), default)
    return decoder(config, block_of(attention, experts, norm), norm, windows=windows)


SINKS = replace(ATTENTION, extras={"sinks": "self_attn.sinks"})
GPT_OSS = ModelFamily("gpt_oss", describe_gpt_oss, llama_places(SINKS, PACKED), {"head_dim": 64})


# SmolLM3: Llama in which every fourth layer does not rotate.


def _rotated_smollm3(config: Config) -> list[bool]:
    """For each layer whether it rotates: ``no_rope_layers`` has 1 for those that do."""
    layers, every = config.layers("num_hidden_layers"), config.integer("no_rope_layer_interval", default=4)
    given = config.raw("no_rope_layers")
    if given is None:
        return [(i + 1) % every != 0 for i in range(layers)]
    if not isinstance(given, list) or len(given) < layers or not all(type(x) is int and x in (0, 1) for x in given):
        raise InputError(f"config no_rope_layers = {str(given)[:40]} given; {layers} numbers 0 or 1 are required")
    return [bool(x) for x in given[:layers]]


def describe_smollm3(config: Config) -> TransformerSpec:
    bias, rotated = config.flag("attention_bias", default=False), _rotated_smollm3(config)
    rotation = rotary(config, theta=2e6)
    attention = grouped_attention(config, rotation, bias=bias)
    norm = config.rms(default=1e-6)
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    window = config.optional_integer("sliding_window") if config.flag("use_sliding_window", default=False) else None
    config.raw("sliding_window")
    default = ["full_attention" if turns else "sliding_attention" for turns in rotated]
    return decoder(
        config, block_of(attention, mlp, norm), norm, windows=config.windows(window, default),
        rotaries=[rotation if turns else None for turns in rotated], head=head_of(config, tied=True),
    )  # fmt: skip


SMOLLM3 = ModelFamily("smollm3", describe_smollm3, llama_places(), {"num_key_value_heads": 4})


# EXAONE 4: norms of outputs and of each query and key head; where layers have windows, only those rotate.


def describe_exaone4(config: Config) -> TransformerSpec:
    norm = config.rms(default=1e-5)
    rotation, norms = rotary(config), Norms(output=norm)
    attention = replace(grouped_attention(config, rotation, bias=False), qk_norm=QKNorm(scope="per_head", norm=norm))
    block = TransformerBlock(attention=attention, mlp=gated_mlp(config), attention_norms=norms, mlp_norms=norms)
    window = sliding_window(config)
    types = layer_types(config, 1 if window is None else config.integer("sliding_window_pattern", default=4))
    rotates = [window is None or name == "sliding_attention" for name in types]
    return decoder(
        config, block, norm, windows=config.windows(window, types),
        rotaries=[rotation if turns else None for turns in rotates],
    )  # fmt: skip


EXAONE4 = ModelFamily("exaone4", describe_exaone4, llama_places(NORMED_ATTENTION, norms=NORMS))


# ERNIE 4.5, dense: Llama with interleaved rotation, and biases everywhere or nowhere.


def describe_ernie(config: Config) -> TransformerSpec:
    bias = config.flag("use_bias", default=False)
    attention = grouped_attention(config, rotary(config, "interleaved", theta=5e5), bias=bias)
    norm = config.rms(default=1e-5)
    block = block_of(attention, gated_mlp(config, bias=bias), norm)
    return decoder(config, block, norm, head=head_of(config, tied=True))


ERNIE = ModelFamily("ernie4_5", describe_ernie, llama_places(), {"head_dim": 128, "num_key_value_heads": 2})


# StarCoder2: grouped heads and rotation as in Llama, LayerNorms, biases and a plain MLP as in GPT-2.


def describe_starcoder2(config: Config) -> TransformerSpec:
    bias = config.flag("use_bias", default=True)
    attention = grouped_attention(config, rotary(config), bias=bias)
    activation = config.activation("hidden_act", default="gelu_pytorch_tanh")
    mlp = plain_mlp(config.integer("intermediate_size"), activation, bias=bias)
    norm = Norm(kind="layer", eps=config.number("norm_epsilon", default=1e-5), bias=True)
    windows, head = _windows(config), head_of(config, tied=True)
    return decoder(config, block_of(attention, mlp, norm), norm, windows=windows, head=head)


STARCODER2 = ModelFamily(
    "starcoder2", describe_starcoder2, llama_places(mlp=MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj"))
)


# StableLM: Llama with LayerNorms and partly rotated heads; attention and MLP one after the other or in parallel.


def describe_stablelm(config: Config) -> TransformerSpec:
    config.refuse("qk_layernorm", False)
    bias, parallel = config.flag("use_qkv_bias", default=False), config.flag("use_parallel_residual", default=False)
    norm = config.layer_norm(default=1e-5)
    attention = grouped_attention(config, rotary(config, share=0.25), bias=bias, output_bias=False)
    return decoder(config, (parallel_block if parallel else block_of)(attention, gated_mlp(config), norm), norm)


def places_stablelm(config: Config) -> Places:
    parallel = config.flag("use_parallel_residual", default=False)
    return llama_places(norms={"attention.input": "input_layernorm"} if parallel else PRE_NORMS)


STABLELM = ModelFamily("stablelm", describe_stablelm, places_stablelm)


# Nemotron and Arcee: a plain MLP with the square of ReLU.

PLAIN = MLPLayout(packing="split", up="mlp.up_proj", down="mlp.down_proj")


def _nemotron(config: Config, rotation: Rotary | None, norm: Norm) -> TransformerSpec:
    attention = grouped_attention(config, rotation, bias=config.flag("attention_bias", default=False))
    activation, bias = config.activation("hidden_act", default="relu2"), config.flag("mlp_bias", default=False)
    mlp = plain_mlp(config.integer("intermediate_size"), activation, bias=bias)
    return decoder(config, block_of(attention, mlp, norm), norm)


def describe_nemotron(config: Config) -> TransformerSpec:
    """LayerNorms that store gain − 1, and half of the coordinates of a head rotated."""
    norm = Norm(kind="layer", eps=config.number("norm_eps", default=1e-5), bias=True, offset=1.0)
    return _nemotron(config, rotary(config, share=0.5), norm)


def describe_arcee(config: Config) -> TransformerSpec:
    return _nemotron(config, rotary(config), config.rms(default=1e-5))


NEMOTRON = ModelFamily("nemotron", describe_nemotron, llama_places(mlp=PLAIN))
ARCEE = ModelFamily("arcee", describe_arcee, llama_places(mlp=PLAIN))


# Phi-1, Phi-2: one LayerNorm for parallel attention and MLP, biases everywhere, partly rotated heads.


def describe_phi(config: Config) -> TransformerSpec:
    config.refuse("qk_layernorm", False)
    norm = config.layer_norm(default=1e-5)
    attention = grouped_attention(config, rotary(config, share=0.5), bias=True)
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu_new"))
    return decoder(config, parallel_block(attention, mlp, norm), norm, head=head_of(config, tied=False, bias=True))


PHI_PLACES = llama_places(
    split_attention("self_attn.{}_proj", "self_attn.dense"),
    MLPLayout(packing="split", up="mlp.fc1", down="mlp.fc2"),
    {"attention.input": "input_layernorm"},
    final_norm={"decoder": "model.final_layernorm"},
    head_bias="lm_head.bias",
)
PHI = ModelFamily("phi", describe_phi, PHI_PLACES)


# Phi-3: Llama with q, k, v in one tensor and gate, up in one tensor; maybe partly rotated.


def describe_phi3(config: Config) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config, share=1.0), bias=False)
    norm = config.rms(default=1e-5)
    return decoder(config, block_of(attention, gated_mlp(config), norm), norm, windows=_windows(config))


PHI3_PLACES = llama_places(
    AttentionLayout(packing="stacked", fused="self_attn.qkv_proj", output="self_attn.o_proj"),
    MLPLayout(packing="fused", up="mlp.gate_up_proj", down="mlp.down_proj"),
)
PHI3 = ModelFamily("phi3", describe_phi3, PHI3_PLACES)
