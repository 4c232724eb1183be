"""Qwen2 and Qwen3: Llama with biases on q, k, v (Qwen2), or a norm of each query and key head (Qwen3)."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    pre_norm_block,
    rotary,
)
from attngeom.models.specification import GroupedAttention, QKNorm, TransformerSpec


def _windows(config: Config) -> list[int | None]:
    layers = config.layers("num_hidden_layers")
    window = config.optional_integer("sliding_window")
    config.raw("layer_types", "max_window_layers")
    if window is None or not config.flag("use_sliding_window", default=False):
        return [None] * layers
    first = config.integer("max_window_layers", default=28, least=0)
    default = ["sliding_attention" if i >= first else "full_attention" for i in range(layers)]
    return config.windows(layers, window, default)


def _specify(config: Config, family: str, attention: GroupedAttention) -> TransformerSpec:
    norm = config.rms(default=1e-6)
    block = pre_norm_block(attention, gated_mlp(config), norm)
    return decoder(config, family, block, norm, windows=_windows(config))


def specify_qwen2(config: Config) -> TransformerSpec:
    return _specify(config, "qwen2", grouped_attention(config, rotary(config), bias=True, output_bias=False))


def specify_qwen3(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    config = config.with_default("head_dim", 128)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    qk_norm = QKNorm(scope="per_head", norm=config.rms(default=1e-6))
    return _specify(config, "qwen3", replace(attention, qk_norm=qk_norm))


def locate_qwen2(config: Config) -> Places:
    return llama_places()


def locate_qwen3(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION)


QWEN2 = ModelFamily(("qwen2",), specify_qwen2, locate_qwen2)
QWEN3 = ModelFamily(("qwen3",), specify_qwen3, locate_qwen3)
