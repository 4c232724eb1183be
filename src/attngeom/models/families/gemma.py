"""Gemma 1 to 3: Llama with gains stored minus one, tanh-gelu gates, an embedding times the root of the width."""

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
    locate_llama,
    pre_norm_block,
    rotary,
    rotary_of_type,
    sliding_window,
)
from attngeom.models.specification import LogitHead, Norm, Norms, QKNorm, Rotary, TransformerBlock, TransformerSpec

# Gemma: Llama with gains stored minus one, tanh-gelu gates and an embedding times the root of the width.


def _text(config: Config) -> Config:
    config.refuse("use_bidirectional_attention", False)
    return config.with_default("head_dim", 256)


def _norm(config: Config) -> Norm:
    return config.rms(default=1e-6, offset=1.0)


def specify_gemma(config: Config) -> TransformerSpec:
    config = _text(config)
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    norm = _norm(config)
    # transformers takes "gelu" in old files for the tanh form, which their models were trained with.
    named = config.activation("hidden_act", default="gelu_pytorch_tanh")
    mlp = replace(gated_mlp(config), activation="gelu_tanh" if named == "gelu" else named)
    head = LogitHead(tied=config.flag("tie_word_embeddings", default=True))
    scale = config.integer("hidden_size") ** 0.5
    return decoder(
        config, "gemma", pre_norm_block(attention, mlp, norm), norm, head=head, embedding_scale=scale
    )  # fmt: skip


GEMMA = ModelFamily(("gemma",), specify_gemma, locate_llama)


# Gemma-2: norms before and after the sublayers with gains stored minus one, soft-capped scores and logits.

NORMS = {
    "attention.input": "input_layernorm",
    "attention.output": "post_attention_layernorm",
    "mlp.input": "pre_feedforward_layernorm",
    "mlp.output": "post_feedforward_layernorm",
}


def _block(config: Config, rotation: Rotary | None, qk_norm: QKNorm | None = None) -> TransformerBlock:
    bias, norm = config.flag("attention_bias", default=False), _norm(config)
    attention = replace(
        grouped_attention(config, rotation, bias=bias, output_bias=bias),
        scale=config.positive("query_pre_attn_scalar", default=256) ** -0.5,
        softcap=config.optional_number("attn_logit_softcapping"),
        qk_norm=qk_norm,
    )
    mlp = replace(gated_mlp(config), activation=config.activation("hidden_activation", default="gelu_pytorch_tanh"))
    norms = Norms(input=norm, output=norm)
    return TransformerBlock(attention=attention, mlp=mlp, attention_norms=norms, mlp_norms=norms)


def _head(config: Config) -> LogitHead:
    cap = config.optional_number("final_logit_softcapping")
    return LogitHead(tied=config.flag("tie_word_embeddings", default=True), softcap=cap)


def specify_gemma2(config: Config) -> TransformerSpec:
    config = _text(config)
    block, layers = _block(config, rotary(config)), config.layers("num_hidden_layers")
    default = ["full_attention" if i % 2 else "sliding_attention" for i in range(layers)]
    windows = config.windows(layers, sliding_window(config), default)
    scale = config.integer("hidden_size") ** 0.5
    return decoder(
        config, "gemma2", block, _norm(config), windows=windows, head=_head(config), embedding_scale=scale
    )  # fmt: skip


def locate_gemma2(config: Config) -> Places:
    return llama_places(norms=NORMS)


GEMMA2 = ModelFamily(("gemma2",), specify_gemma2, locate_gemma2)


# Gemma-3, its text model: Gemma-2 with QK-norms, and another rotation in layers with a window.


def specify_gemma3(config: Config) -> TransformerSpec:
    config = _text(config)
    block = _block(config, None, QKNorm(scope="per_head", norm=_norm(config)))
    types = layer_types(config, config.integer("sliding_window_pattern", default=6))
    turns = {
        "full_attention": rotary_of_type(config, "full_attention", theta=1e6),
        "sliding_attention": rotary_of_type(config, "sliding_attention", theta=1e4, key="rope_local_base_freq"),
    }
    windows = config.windows(len(types), sliding_window(config), types)
    return decoder(
        config, "gemma3_text", block, _norm(config), windows=windows, rotaries=[turns[name] for name in types],
        head=_head(config), embedding_scale=config.integer("hidden_size") ** 0.5,
    )  # fmt: skip


def locate_gemma3(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, norms=NORMS)


GEMMA3 = ModelFamily(("gemma3_text",), specify_gemma3, locate_gemma3)
