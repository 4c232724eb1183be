"""Cohere Command R: interleaved rotary positions, one LayerNorm without bias for parallel attention and MLP."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, head_dim
from attngeom.models.families.decoders import (
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
)
from attngeom.models.specification import LogitHead, Norms, QKNorm, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    a = head_dim(config, config.integer("hidden_size"), config.integer("num_attention_heads"))
    rotary = config.rotary(a, "interleaved", theta=500000.0)
    norm = config.layer_norm(default=1e-5, bias=False)
    attention = grouped_attention(config, rotary, bias=bias, output_bias=bias)
    if config.flag("use_qk_norm", default=False):
        attention = replace(attention, qk_norm=QKNorm(scope="each_head", norm=norm))
    block = TransformerBlock(
        attention=attention, mlp=gated_mlp(config), attention_norms=Norms(input=norm), parallel=True, shared_norm=True
    )
    head = LogitHead(
        tied=config.flag("tie_word_embeddings", default=True), scale=config.number("logit_scale", default=0.0625)
    )
    return decoder(config, "cohere", block, norm, head=head)


def locate(config: Config) -> Places:
    norms = {"attention.input": "input_layernorm"}
    if config.flag("use_qk_norm", default=False):
        return llama_places(norms=norms, attention=NORMED_ATTENTION)
    return llama_places(norms=norms)


FAMILY = ModelFamily(("cohere",), specify, locate)
