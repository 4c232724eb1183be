"""Gemma-2: norms before and after the sublayers with gains stored minus one, soft-capped scores and logits."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import decoder, gated_mlp, grouped_attention, llama_places, rotary
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec

NORMS = {
    "attention.input": "input_layernorm",
    "attention.output": "post_attention_layernorm",
    "mlp.input": "pre_feedforward_layernorm",
    "mlp.output": "post_feedforward_layernorm",
}


def specify(config: Config) -> TransformerSpec:
    config.refuse("use_bidirectional_attention", False)
    config = config.with_default("head_dim", 256)
    bias = config.flag("attention_bias", default=False)
    norm = config.rms(default=1e-6, offset=1.0)
    attention = replace(
        grouped_attention(config, rotary(config), bias=bias, output_bias=bias),
        scale=config.positive("query_pre_attn_scalar", default=256) ** -0.5,
        softcap=config.optional_number("attn_logit_softcapping"),
    )
    mlp = replace(gated_mlp(config), activation=config.activation("hidden_activation", default="gelu_pytorch_tanh"))
    block = TransformerBlock(
        attention=attention,
        mlp=mlp,
        attention_norms=Norms(input=norm, output=norm),
        mlp_norms=Norms(input=norm, output=norm),
    )
    layers = config.layers("num_hidden_layers")
    default = ["full_attention" if i % 2 else "sliding_attention" for i in range(layers)]
    windows = config.windows(layers, config.optional_integer("sliding_window"), default)
    head = LogitHead(
        tied=config.flag("tie_word_embeddings", default=True), softcap=config.optional_number("final_logit_softcapping")
    )
    scale = config.integer("hidden_size") ** 0.5
    return decoder(config, "gemma2", block, norm, windows=windows, head=head, embedding_scale=scale)


def locate(config: Config) -> Places:
    return llama_places(norms=NORMS)


FAMILY = ModelFamily(("gemma2",), specify, locate)
