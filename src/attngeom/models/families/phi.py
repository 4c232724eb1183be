"""Phi 1 to 3."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_mlp
from attngeom.models.families.decoders import (
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    pre_norm_block,
    rotary,
)
from attngeom.models.layout import AttentionLayout, MLPLayout, split_attention
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec

# Phi-1, Phi-2: one LayerNorm for parallel attention and MLP, biases everywhere, partly rotated heads.


def specify_phi(config: Config) -> TransformerSpec:
    config.refuse("qk_layernorm", False)
    norm = config.layer_norm(default=1e-5)
    block = TransformerBlock(
        attention=grouped_attention(config, rotary(config, share=0.5), bias=True, output_bias=True),
        mlp=plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu_new")),
        attention_norms=Norms(input=norm),
        parallel=True,
        shared_norm=True,
    )
    head = LogitHead(tied=config.flag("tie_word_embeddings", default=False), bias=True)
    return decoder(config, "phi", block, norm, head=head)


def locate_phi(config: Config) -> Places:
    attention = split_attention("self_attn.{}_proj", "self_attn.dense")
    mlp = MLPLayout(packing="split", up="mlp.fc1", down="mlp.fc2")
    places = llama_places(attention, mlp, {"attention.input": "input_layernorm"})
    return replace(places, final_norm={"decoder": "model.final_layernorm"}, head_bias="lm_head.bias")


PHI = ModelFamily(("phi",), specify_phi, locate_phi)


# Phi-3: Llama with q, k, v in one tensor and gate, up in one tensor; maybe partly rotated.


def specify_phi3(config: Config) -> TransformerSpec:
    attention = grouped_attention(config, rotary(config, share=1.0), bias=False, output_bias=False)
    norm = config.rms(default=1e-5)
    windows = [config.optional_integer("sliding_window")] * config.layers("num_hidden_layers")
    return decoder(config, "phi3", pre_norm_block(attention, gated_mlp(config), norm), norm, windows=windows)


def locate_phi3(config: Config) -> Places:
    attention = AttentionLayout(packing="stacked", fused="self_attn.qkv_proj", output="self_attn.o_proj")
    return llama_places(attention, MLPLayout(packing="fused", up="mlp.gate_up_proj", down="mlp.down_proj"))


PHI3 = ModelFamily(("phi3",), specify_phi3, locate_phi3)
