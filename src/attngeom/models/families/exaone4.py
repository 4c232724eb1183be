"""EXAONE 4: norms of outputs and of each query and key head; where layers have windows, only those rotate."""

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
)
from attngeom.models.families.olmo2 import NORMS
from attngeom.models.specification import Norms, QKNorm, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    norm = config.rms(default=1e-5)
    rotation = rotary(config)
    attention = grouped_attention(config, rotation, bias=False, output_bias=False)
    block = TransformerBlock(
        attention=replace(attention, qk_norm=QKNorm(scope="per_head", norm=norm)),
        mlp=gated_mlp(config),
        attention_norms=Norms(output=norm),
        mlp_norms=Norms(output=norm),
    )
    window = config.optional_integer("sliding_window")
    every = 1 if window is None else config.integer("sliding_window_pattern", default=4)
    types = layer_types(config, every)
    rotates = [window is None or name == "sliding_attention" for name in types]
    return decoder(
        config, "exaone4", block, norm, windows=config.windows(len(types), window, types),
        rotaries=[rotation if turns else None for turns in rotates],
    )  # fmt: skip


def locate(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, norms=NORMS)


FAMILY = ModelFamily(("exaone4",), specify, locate)
