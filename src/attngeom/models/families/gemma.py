"""Gemma 1 to 3: Llama with gains stored minus one, tanh-gelu gates, an embedding times the root of the width."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, block_of, head_of
from attngeom.models.families.decoders import (
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    layer_types,
    llama_places,
    rotary,
    rotary_of_type,
    sliding_window,
)
from attngeom.models.specification import LogitHead, Norm, Norms, QKNorm, Rotary, TransformerBlock, TransformerSpec

WIDE = {"head_dim": 256}


def _norm(config: Config) -> Norm:
    config.refuse("use_bidirectional_attention", False)
    return config.rms(default=1e-6, offset=1.0)


def _scale(config: Config) -> float:
    """Of the embedded tokens."""
    return float(config.integer("hidden_size") ** 0.5)


# Gemma: no norms but those of Llama.


def describe_gemma(config: Config) -> TransformerSpec:
    norm = _norm(config)
    attention = grouped_attention(config, rotary(config), bias=config.flag("attention_bias", default=False))
    # transformers takes "gelu" in old files for the tanh form, which their models were trained with.
    named = config.activation("hidden_act", default="gelu_pytorch_tanh")
    mlp = replace(gated_mlp(config), activation="gelu_tanh" if named == "gelu" else named)
    head = head_of(config, tied=True)
    return decoder(config, block_of(attention, mlp, norm), norm, head=head, embedding_scale=_scale(config))


GEMMA = ModelFamily("gemma", describe_gemma, llama_places(), WIDE)


# Gemma-2: norms before and after the sublayers, soft-capped scores and logits.

NORMS = {
    "attention.input": "input_layernorm",
    "attention.output": "post_attention_layernorm",
    "mlp.input": "pre_feedforward_layernorm",
    "mlp.output": "post_feedforward_layernorm",
}


def _block(config: Config, rotation: Rotary | None, qk_norm: QKNorm | None = None) -> TransformerBlock:
    norm = _norm(config)
    attention = replace(
        grouped_attention(config, rotation, bias=config.flag("attention_bias", default=False)),
        scale=config.positive("query_pre_attn_scalar", default=256) ** -0.5,
        softcap=config.optional_number("attn_logit_softcapping"),
        qk_norm=qk_norm,
    )
    mlp = replace(gated_mlp(config), activation=config.activation("hidden_activation", default="gelu_pytorch_tanh"))
    norms = Norms(input=norm, output=norm)
    return TransformerBlock(attention=attention, mlp=mlp, attention_norms=norms, mlp_norms=norms)


def _head(config: Config) -> LogitHead:
    return head_of(config, tied=True, softcap=config.optional_number("final_logit_softcapping"))


def describe_gemma2(config: Config) -> TransformerSpec:
    block, layers = _block(config, rotary(config)), config.layers("num_hidden_layers")
    default = ["full_attention" if i % 2 else "sliding_attention" for i in range(layers)]
    windows, scale = config.windows(sliding_window(config), default), _scale(config)
    return decoder(config, block, _norm(config), windows=windows, head=_head(config), embedding_scale=scale)


GEMMA2 = ModelFamily("gemma2", describe_gemma2, llama_places(norms=NORMS), WIDE)


# Gemma-3, its text model: Gemma-2 with QK-norms, and another rotation in layers with a window.


def describe_gemma3(config: Config) -> TransformerSpec:
    block = _block(config, None, QKNorm(scope="per_head", norm=_norm(config)))
    types = layer_types(config, config.integer("sliding_window_pattern", default=6))
    turns = {
        "full_attention": rotary_of_type(config, "full_attention", theta=1e6),
        "sliding_attention": rotary_of_type(config, "sliding_attention", theta=1e4, key="rope_local_base_freq"),
    }
    return decoder(
        config, block, _norm(config), windows=config.windows(sliding_window(config), types),
        rotaries=[turns[name] for name in types], head=_head(config), embedding_scale=_scale(config),
    )  # fmt: skip


GEMMA3 = ModelFamily("gemma3_text", describe_gemma3, llama_places(NORMED_ATTENTION, norms=NORMS), WIDE)
