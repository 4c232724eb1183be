"""Phi-3: Llama with q, k, v in one tensor and gate, up in one tensor; maybe partly rotated."""

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
from attngeom.models.layout import AttentionLayout, MLPLayout
from attngeom.models.specification import TransformerSpec


def specify(config: Config) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config, share=1.0), bias=False, output_bias=False)
    norm = config.rms(default=1e-5)
    windows = [config.optional_integer("sliding_window")] * config.layers("num_hidden_layers")
    return decoder(config, "phi3", pre_norm_block(attention, gated_mlp(config), norm), norm, windows=windows)


def locate(config: Config) -> Places:
    attention = AttentionLayout(packing="stacked", fused="self_attn.qkv_proj", output="self_attn.o_proj")
    return llama_places(attention, MLPLayout(packing="fused", up="mlp.gate_up_proj", down="mlp.down_proj"))


FAMILY = ModelFamily(("phi3",), specify, locate)
