"""Phi-1, Phi-2: one LayerNorm for parallel attention and MLP, biases everywhere, partly rotated heads."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_mlp
from attngeom.models.families.decoders import decoder, grouped_attention, llama_places, rotary
from attngeom.models.layout import MLPLayout, split_attention
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
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


def locate(config: Config) -> Places:
    attention = split_attention("self_attn.{}_proj", "self_attn.dense")
    mlp = MLPLayout(packing="split", up="mlp.fc1", down="mlp.fc2")
    places = llama_places(attention, mlp, {"attention.input": "input_layernorm"})
    return replace(places, final_norm={"decoder": "model.final_layernorm"}, head_bias="lm_head.bias")


FAMILY = ModelFamily(("phi",), specify, locate)
