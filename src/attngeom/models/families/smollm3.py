"""SmolLM3: Llama in which every fourth layer does not rotate."""

from __future__ import annotations

from attngeom.errors import InputError
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


def _rotated(config: Config) -> list[bool]:
    """For each layer whether it rotates: ``no_rope_layers`` has 1 for those that do."""
    layers, every = config.layers("num_hidden_layers"), config.integer("no_rope_layer_interval", default=4)
    given = config.raw("no_rope_layers")
    if given is None:
        return [(i + 1) % every != 0 for i in range(layers)]
    if not isinstance(given, list) or len(given) < layers or not all(type(x) is int and x in (0, 1) for x in given):
        raise InputError(f"config no_rope_layers = {str(given)[:40]} given; {layers} numbers 0 or 1 are required")
    return [bool(x) for x in given[:layers]]


def specify(config: Config) -> TransformerSpec:
    config = config.with_default("num_key_value_heads", 4)
    bias, rotated = config.flag("attention_bias", default=False), _rotated(config)
    rotation = rotary(config, theta=2e6)
    attention = grouped_attention(config, rotation, bias=bias, output_bias=bias)
    norm = config.rms(default=1e-6)
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    window = config.optional_integer("sliding_window") if config.flag("use_sliding_window", default=False) else None
    config.raw("sliding_window")
    default = ["full_attention" if turns else "sliding_attention" for turns in rotated]
    return decoder(
        config, "smollm3", pre_norm_block(attention, mlp, norm), norm,
        windows=config.windows(len(rotated), window, default),
        rotaries=[rotation if turns else None for turns in rotated],
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )  # fmt: skip


def locate(config: Config) -> Places:
    return llama_places()


FAMILY = ModelFamily(("smollm3",), specify, locate)
