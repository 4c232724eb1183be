"""ERNIE 4.5, dense: Llama with interleaved rotation, and biases everywhere or nowhere."""

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
from attngeom.models.specification import LogitHead, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    config = config.with_default("head_dim", 128).with_default("num_key_value_heads", 2)
    bias = config.flag("use_bias", default=False)
    rotation = rotary(config, "interleaved", theta=5e5)
    attention = grouped_attention(config, rotation, bias=bias, output_bias=bias)
    norm = config.rms(default=1e-5)
    head = LogitHead(tied=config.flag("tie_word_embeddings", default=True))
    return decoder(
        config, "ernie4_5", pre_norm_block(attention, gated_mlp(config, bias=bias), norm), norm, head=head
    )  # fmt: skip


def locate(config: Config) -> Places:
    return llama_places()


FAMILY = ModelFamily(("ernie4_5",), specify, locate)
