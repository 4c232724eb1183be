"""Cohere Command R, R7B: interleaved rotation, one LayerNorm without bias for parallel attention and MLP."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, head_of, parallel_block
from attngeom.models.families.decoders import (
    ATTENTION,
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    layer_types,
    llama_places,
    rotary,
    sliding_window,
)
from attngeom.models.specification import LogitHead, Norm, QKNorm, Rotary, TransformerBlock, TransformerSpec

NORMS = {"attention.input": "input_layernorm"}


def _block(config: Config, rotation: Rotary | None, norm: Norm) -> TransformerBlock:
    attention = grouped_attention(config, rotation, bias=config.flag("attention_bias", default=False))
    return parallel_block(attention, gated_mlp(config), norm)


def _head(config: Config) -> LogitHead:
    return head_of(config, tied=True, scale=config.number("logit_scale", default=0.0625))


def describe_cohere(config: Config) -> TransformerSpec:
    norm = config.layer_norm(default=1e-5, bias=False)
    block = _block(config, rotary(config, "interleaved", theta=5e5), norm)
    if config.flag("use_qk_norm", default=False):
        assert block.attention is not None
        block = replace(block, attention=replace(block.attention, qk_norm=QKNorm(scope="each_head", norm=norm)))
    return decoder(config, block, norm, head=_head(config))


def describe_cohere2(config: Config) -> TransformerSpec:
    """Layers with a window rotate, the others see everything and do not."""
    norm = config.layer_norm(default=1e-5, bias=False)
    config.raw("head_dim")
    window, rotation = sliding_window(config), rotary(config, "interleaved")
    types = layer_types(config, config.integer("sliding_window_pattern", default=4))
    windows = config.windows(window, types)
    return decoder(
        config, _block(config, rotation, norm), norm, windows=windows, head=_head(config),
        rotaries=[rotation if own is not None else None for own in windows],
    )  # fmt: skip


def places_cohere(config: Config) -> Places:
    normed = config.flag("use_qk_norm", default=False)
    return llama_places(NORMED_ATTENTION if normed else ATTENTION, norms=NORMS)


COHERE = ModelFamily("cohere", describe_cohere, places_cohere)
COHERE2 = ModelFamily("cohere2", describe_cohere2, llama_places(norms=NORMS))
