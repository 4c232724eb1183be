"""Granite: Llama with constants that multiply embedding, scores, logits and what the sublayers write."""

from __future__ import annotations

from dataclasses import replace

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
from attngeom.models.specification import GroupedAttention, LogitHead, TransformerSpec


def attention_of(config: Config) -> GroupedAttention:
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    return replace(attention, scale=config.positive("attention_multiplier", default=1.0))


def head_of(config: Config) -> LogitHead:
    tied = config.flag("tie_word_embeddings", default=False)
    return LogitHead(tied=tied, scale=1 / config.positive("logits_scaling", default=1.0))


def specify(config: Config) -> TransformerSpec:
    norm = config.rms(default=1e-6)
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    block = pre_norm_block(attention_of(config), mlp, norm)
    block = replace(block, residual_scale=config.positive("residual_multiplier", default=1.0))
    return decoder(
        config, "granite", block, norm, head=head_of(config),
        embedding_scale=config.positive("embedding_multiplier", default=1.0),
    )  # fmt: skip


def locate(config: Config) -> Places:
    return llama_places()


FAMILY = ModelFamily(("granite",), specify, locate)
