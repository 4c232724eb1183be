"""OLMo-2, OLMo-3: norms of the outputs of the sublayers, not of their inputs, and over all query or key heads."""

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
    rotary,
    rotary_of_type,
)
from attngeom.models.specification import Norms, QKNorm, Rotary, TransformerBlock, TransformerSpec

NORMS = {"attention.output": "post_attention_layernorm", "mlp.output": "post_feedforward_layernorm"}


def _block(config: Config, rotation: Rotary | None) -> TransformerBlock:
    bias = config.flag("attention_bias", default=False)
    norm = config.rms(default=1e-5)
    attention = replace(
        grouped_attention(config, rotation, bias=bias, output_bias=bias),
        qk_norm=QKNorm(scope="all_heads", norm=norm),
    )
    return TransformerBlock(
        attention=attention,
        mlp=gated_mlp(config),
        attention_norms=Norms(output=norm),
        mlp_norms=Norms(output=norm),
    )


def specify_olmo2(config: Config) -> TransformerSpec:
    return decoder(config, "olmo2", _block(config, rotary(config)), config.rms(default=1e-5))


def specify_olmo3(config: Config) -> TransformerSpec:
    """Three of four layers have a window; what stretches the rotation concerns the others."""
    types = layer_types(config, 4)
    turns = {name: rotary_of_type(config, name, theta=5e5) for name in ("full_attention", "sliding_attention")}
    windows = config.windows(len(types), config.optional_integer("sliding_window"), types)
    return decoder(
        config, "olmo3", _block(config, None), config.rms(default=1e-5), windows=windows,
        rotaries=[turns[name] for name in types],
    )  # fmt: skip


def locate(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, norms=NORMS)


OLMO2 = ModelFamily(("olmo2",), specify_olmo2, locate)
OLMO3 = ModelFamily(("olmo3",), specify_olmo3, locate)
