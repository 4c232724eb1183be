"""Llama, and what differs from it by windows, experts, layers without rotation, norms or biases."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_mlp
from attngeom.models.families.decoders import (
    ATTENTION,
    NORMED_ATTENTION,
    PRE_NORMS,
    decoder,
    gated_mlp,
    grouped_attention,
    layer_types,
    llama_places,
    locate_llama,
    pre_norm_block,
    rotary,
    sliding_window,
)
from attngeom.models.families.olmo import NORMS
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import Experts, LogitHead, Norm, Norms, QKNorm, TransformerBlock, TransformerSpec

# Llama 1 to 3, Seed-OSS: RMSNorm, rotary positions, grouped heads, gated MLP.


def _specify_llama(config: Config, family: str, bias: bool, output_bias: bool) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=output_bias)
    norm = config.rms(default=1e-6)
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    return decoder(config, family, pre_norm_block(attention, mlp, norm), norm)


def specify_llama(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    return _specify_llama(config, "llama", bias, bias)


def specify_seed_oss(config: Config) -> TransformerSpec:
    config = config.with_default("head_dim", 128).with_default("num_key_value_heads", 8)
    bias, output_bias = config.flag("attention_bias", default=True), config.flag("attention_out_bias", default=False)
    return _specify_llama(config, "seed_oss", bias, output_bias)


LLAMA = ModelFamily(("llama",), specify_llama, locate_llama)
SEED_OSS = ModelFamily(("seed_oss",), specify_seed_oss, locate_llama)


# Mistral, Ministral: Llama with a sliding window on every layer, or on those that ``layer_types`` names.


def _specify_mistral(config: Config, family: str, windows: list[int | None]) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config), bias=False, output_bias=False)
    norm = config.rms(default=1e-6)
    return decoder(config, family, pre_norm_block(attention, gated_mlp(config), norm), norm, windows=windows)


def specify_mistral(config: Config) -> TransformerSpec:
    windows = [sliding_window(config)] * config.layers("num_hidden_layers")
    return _specify_mistral(config, "mistral", windows)


def specify_ministral(config: Config) -> TransformerSpec:
    windows = config.windows(config.layers("num_hidden_layers"), sliding_window(config))
    return _specify_mistral(config, "ministral", windows)


MISTRAL = ModelFamily(("mistral",), specify_mistral, locate_llama)
MINISTRAL = ModelFamily(("ministral",), specify_ministral, locate_llama)


# Mixtral: Mistral with experts in place of the MLP.

EXPERTS = MLPLayout(
    packing="experts",
    gate="w1",
    up="w3",
    down="w2",
    router="block_sparse_moe.gate",
    expert="block_sparse_moe.experts.{}.",
)


def specify_mixtral(config: Config) -> TransformerSpec:
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


def locate_mixtral(config: Config) -> Places:
    return llama_places(experts=EXPERTS)


MIXTRAL = ModelFamily(("mixtral",), specify_mixtral, locate_mixtral)


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


def specify_smollm3(config: Config) -> TransformerSpec:
    config = config.with_default("num_key_value_heads", 4)
    bias, rotated = config.flag("attention_bias", default=False), _rotated_smollm3(config)
    rotation = rotary(config, theta=2e6)
    attention = grouped_attention(config, rotation, bias=bias, output_bias=bias)
    norm = config.rms(default=1e-6)
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    window = config.optional_integer("sliding_window") if config.flag("use_sliding_window", default=False) else None
    config.raw("sliding_window")
    default = ["full_attention" if turns else "sliding_attention" for turns in rotated]
    return decoder(
        config, "smollm3", pre_norm_block(attention, mlp, norm), norm,
        windows=config.windows(len(rotated), window, default),
        rotaries=[rotation if turns else None for turns in rotated],
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )  # fmt: skip


SMOLLM3 = ModelFamily(("smollm3",), specify_smollm3, locate_llama)


# EXAONE 4: norms of outputs and of each query and key head; where layers have windows, only those rotate.


def specify_exaone4(config: Config) -> TransformerSpec:
    norm = config.rms(default=1e-5)
    rotation = rotary(config)
    attention = grouped_attention(config, rotation, bias=False, output_bias=False)
    block = TransformerBlock(
        attention=replace(attention, qk_norm=QKNorm(scope="per_head", norm=norm)),
        mlp=gated_mlp(config),
        attention_norms=Norms(output=norm),
        mlp_norms=Norms(output=norm),
    )
    window = sliding_window(config)
    every = 1 if window is None else config.integer("sliding_window_pattern", default=4)
    types = layer_types(config, every)
    rotates = [window is None or name == "sliding_attention" for name in types]
    return decoder(
        config, "exaone4", block, norm, windows=config.windows(len(types), window, types),
        rotaries=[rotation if turns else None for turns in rotates],
    )  # fmt: skip


def locate_exaone4(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, norms=NORMS)


EXAONE4 = ModelFamily(("exaone4",), specify_exaone4, locate_exaone4)


# ERNIE 4.5, dense: Llama with interleaved rotation, and biases everywhere or nowhere.


def specify_ernie(config: Config) -> TransformerSpec:
    config = config.with_default("head_dim", 128).with_default("num_key_value_heads", 2)
    bias = config.flag("use_bias", default=False)
    rotation = rotary(config, "interleaved", theta=5e5)
    attention = grouped_attention(config, rotation, bias=bias, output_bias=bias)
    norm = config.rms(default=1e-5)
    head = LogitHead(tied=config.flag("tie_word_embeddings", default=True))
    return decoder(
        config, "ernie4_5", pre_norm_block(attention, gated_mlp(config, bias=bias), norm), norm, head=head
    )  # fmt: skip


ERNIE = ModelFamily(("ernie4_5",), specify_ernie, locate_llama)


# StarCoder2: grouped heads and rotation as in Llama, LayerNorms, biases and a plain MLP as in GPT-2.


def specify_starcoder2(config: Config) -> TransformerSpec:
    bias = config.flag("use_bias", default=True)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    activation = config.activation("hidden_act", default="gelu_pytorch_tanh")
    mlp = plain_mlp(config.integer("intermediate_size"), activation, bias=bias)
    norm = Norm(kind="layer", eps=config.number("norm_epsilon", default=1e-5), bias=True)
    windows = [config.optional_integer("sliding_window")] * config.layers("num_hidden_layers")
    head = LogitHead(tied=config.flag("tie_word_embeddings", default=True))
    return decoder(config, "starcoder2", pre_norm_block(attention, mlp, norm), norm, windows=windows, head=head)


def locate_starcoder2(config: Config) -> Places:
    return llama_places(ATTENTION, MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj"))


STARCODER2 = ModelFamily(("starcoder2",), specify_starcoder2, locate_starcoder2)


# StableLM: Llama with LayerNorms and partly rotated heads; attention and MLP one after the other or in parallel.


def specify_stablelm(config: Config) -> TransformerSpec:
    config.refuse("qk_layernorm", False)
    bias, parallel = config.flag("use_qkv_bias", default=False), config.flag("use_parallel_residual", default=False)
    norm = config.layer_norm(default=1e-5)
    block = TransformerBlock(
        attention=grouped_attention(config, rotary(config, share=0.25), bias=bias, output_bias=False),
        mlp=gated_mlp(config),
        attention_norms=Norms(input=norm),
        mlp_norms=Norms() if parallel else Norms(input=norm),
        parallel=parallel,
        shared_norm=parallel,
    )
    return decoder(config, "stablelm", block, norm)


def locate_stablelm(config: Config) -> Places:
    parallel = config.flag("use_parallel_residual", default=False)
    return llama_places(norms={"attention.input": "input_layernorm"} if parallel else PRE_NORMS)


STABLELM = ModelFamily(("stablelm",), specify_stablelm, locate_stablelm)
