"""RecurrentGemma: recurrences of single channels (RG-LRU) and attention through a window in turn (Griffin)."""

from __future__ import annotations

import math
from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, block_of, head_of
from attngeom.models.families.decoders import decoder, gated_mlp, grouped_attention, llama_places, rotary
from attngeom.models.families.recurrent import with_mixers
from attngeom.models.layout import MixerLayout, MLPLayout, Packed, split_attention
from attngeom.models.specification import RecurrentMixer, TransformerSpec

TYPES = {"recurrent": "linear_attention", "attention": "full_attention"}
"""What configurations call the types of blocks."""


def _types(config: Config) -> list[str]:
    """The type of every layer: those of a list in turn, again and again."""
    given = config.raw("block_types", "_block_types") or ["recurrent", "recurrent", "attention"]
    if not isinstance(given, list) or not all(isinstance(kind, str) and kind in TYPES for kind in given):
        raise InputError(f"config block_types = {str(given)[:40]} given; a list of {' or '.join(TYPES)} is required")
    return [TYPES[given[i % len(given)]] for i in range(config.layers("num_hidden_layers", default=26))]


def _rounded(x: float) -> float:
    """To the eight digits of bfloat16."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(round(mantissa * 256), exponent - 8)


def describe_recurrent_gemma(config: Config) -> TransformerSpec:
    config.raw("w_init_variance_scale", "final_w_init_variance_scale")
    norm, width = config.rms(default=1e-6, offset=1.0), config.integer("hidden_size", default=2560)
    heads, types = config.integer("num_attention_heads", default=10), _types(config)
    inner = config.integer("lru_width", default=width)
    if inner % heads or width % heads:
        raise InputError(f"{heads} heads given; they must divide hidden_size = {width} and lru_width = {inner}")
    config.refuse("head_dim", width // heads)
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config, share=0.5), bias=bias, output_bias=True)
    units = config.integer("intermediate_size", default=7680)
    config = config.with_defaults({"hidden_activation": "gelu_pytorch_tanh"})
    mlp = replace(gated_mlp(config, bias=True), width=units // 2)
    if units < 2:
        raise InputError(f"config intermediate_size = {units} given; at least 2 are required")
    mixer = RecurrentMixer(
        rule="lru", heads=heads, groups=heads, head_dim=inner // heads, value_dim=inner // heads,
        taps=config.integer("conv1d_width", default=4), norm=None, norm_over="head", gate=mlp.activation,
        bias=True, conv_bias=True, output_bias=True,
    )  # fmt: skip
    window = config.optional_integer("attention_window_size", absent=2048)
    head = head_of(config, tied=True, softcap=config.positive("logits_soft_cap", default=30.0))
    block = block_of(attention, mlp, norm)
    spec = decoder(
        config, block, norm, windows=[window] * len(types), head=head, embedding_scale=_rounded(width**0.5)
    )  # fmt: skip
    return with_mixers(spec, mixer, types)


RECURRENCE = MixerLayout(
    maps=(Packed("temporal_block.linear_x", ("value",)), Packed("temporal_block.linear_y", ("output_gate",))),
    convolutions=(Packed("temporal_block.conv_1d", ("value",)),),
    numbers={},
    gain="",
    output="temporal_block.linear_out",
    inner={
        "input_gate": "temporal_block.rg_lru.input_gate",
        "recurrence_gate": "temporal_block.rg_lru.recurrent_gate",
        "damping": "temporal_block.rg_lru.recurrent_param",
    },
)
PLACES = llama_places(
    split_attention("temporal_block.{}_proj", "temporal_block.o_proj"),
    MLPLayout("split", "mlp_block.up_proj", "mlp_block.down_proj", "mlp_block.gate_proj"),
    {**dict.fromkeys(("mixer.input", "attention.input"), "temporal_pre_norm"), "mlp.input": "channel_pre_norm"},
    final_norm={"decoder": "model.final_norm"},
)
PLACES = replace(PLACES, blocks={"decoder": replace(PLACES.blocks["decoder"], mixer=RECURRENCE)})
RECURRENT_GEMMA = ModelFamily("recurrent_gemma", describe_recurrent_gemma, PLACES)
