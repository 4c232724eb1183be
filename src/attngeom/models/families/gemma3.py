"""Gemma-3, its text model: Gemma-2 with QK-norms, and another rotation in layers with a window."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    layer_types,
    llama_places,
    rotary_of_type,
)
from attngeom.models.families.gemma2 import NORMS
from attngeom.models.specification import LogitHead, Norms, QKNorm, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    config.refuse("use_bidirectional_attention", False)
    config = config.with_default("head_dim", 256)
    bias = config.flag("attention_bias", default=False)
    norm = config.rms(default=1e-6, offset=1.0)
    attention = replace(
        grouped_attention(config, None, bias=bias, output_bias=bias),
        scale=config.positive("query_pre_attn_scalar", default=256) ** -0.5,
        softcap=config.optional_number("attn_logit_softcapping"),
        qk_norm=QKNorm(scope="per_head", norm=norm),
    )
    mlp = replace(gated_mlp(config), activation=config.activation("hidden_activation", default="gelu_pytorch_tanh"))
    norms = Norms(input=norm, output=norm)
    block = TransformerBlock(attention=attention, mlp=mlp, attention_norms=norms, mlp_norms=norms)
    types = layer_types(config, config.integer("sliding_window_pattern", default=6))
    turns = {
        "full_attention": rotary_of_type(config, "full_attention", theta=1e6),
        "sliding_attention": rotary_of_type(config, "sliding_attention", theta=1e4, key="rope_local_base_freq"),
    }
    head = LogitHead(
        tied=config.flag("tie_word_embeddings", default=True), softcap=config.optional_number("final_logit_softcapping")
    )
    windows = config.windows(len(types), config.optional_integer("sliding_window"), types)
    return decoder(
        config, "gemma3_text", block, norm, windows=windows,
        rotaries=[turns[name] for name in types], head=head, embedding_scale=config.integer("hidden_size") ** 0.5,
    )  # fmt: skip


def locate(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, norms=NORMS)


FAMILY = ModelFamily(("gemma3_text",), specify, locate)
