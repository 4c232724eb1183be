"""Gemma: Llama with gains stored minus one, tanh-gelu gates and an embedding times the root of the width."""

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
from attngeom.models.specification import LogitHead, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    config.refuse("use_bidirectional_attention", False)
    config = config.with_default("head_dim", 256)
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    norm = config.rms(default=1e-6, offset=1.0)
    # transformers takes "gelu" in old files for the tanh form, which their models were trained with.
    named = config.activation("hidden_act", default="gelu_pytorch_tanh")
    mlp = replace(gated_mlp(config), activation="gelu_tanh" if named == "gelu" else named)
    head = LogitHead(tied=config.flag("tie_word_embeddings", default=True))
    scale = config.integer("hidden_size") ** 0.5
    return decoder(
        config, "gemma", pre_norm_block(attention, mlp, norm), norm, head=head, embedding_scale=scale
    )  # fmt: skip


def locate(config: Config) -> Places:
    return llama_places()


FAMILY = ModelFamily(("gemma",), specify, locate)
