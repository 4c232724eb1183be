"""OLMo-2: norms of the outputs of the sublayers instead of their inputs, and a norm over all query or key heads."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    rotary,
)
from attngeom.models.specification import Norms, QKNorm, TransformerBlock, TransformerSpec

NORMS = {"attention.output": "post_attention_layernorm", "mlp.output": "post_feedforward_layernorm"}


def specify(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    norm = config.rms(default=1e-5)
    attention = replace(
        grouped_attention(config, rotary(config), bias=bias, output_bias=bias),
        qk_norm=QKNorm(scope="all_heads", norm=norm),
    )
    block = TransformerBlock(
        attention=attention,
        mlp=gated_mlp(config),
        attention_norms=Norms(output=norm),
        mlp_norms=Norms(output=norm),
    )
    return decoder(config, "olmo2", block, norm)


def locate(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, norms=NORMS)


FAMILY = ModelFamily(("olmo2",), specify, locate)
