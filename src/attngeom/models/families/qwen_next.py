"""Qwen3-Next: Gated DeltaNet in most layers, gated attention in the others, experts beside a gated shared one."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    EXPERTS,
    NORMED_ATTENTION,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    pre_norm_block,
    rotary,
)
from attngeom.models.families.hybrids import layer_types, with_mixer_places, with_mixers
from attngeom.models.families.qwen import experts_beside_a_shared_one, sparse_layers
from attngeom.models.layout import MixerLayout, Packed
from attngeom.models.specification import Norm, QKNorm, RecurrentMixer, TransformerSpec

GROUPED = (
    Packed("linear_attn.in_proj_qkvz", ("query", "key", "value", "output_gate"), grouped=True),
    Packed("linear_attn.in_proj_ba", ("strength", "step"), grouped=True),
)
DELTA = MixerLayout(
    maps=GROUPED,
    convolutions=(Packed("linear_attn.conv1d", ("query", "key", "value")),),
    numbers={"decay": "linear_attn.A_log", "step_shift": "linear_attn.dt_bias"},
    gain="linear_attn.norm",
    output="linear_attn.out_proj",
)


def delta_mixer(config: Config, eps: float) -> RecurrentMixer:
    """Gated DeltaNet: the norm of each head has gains that all share."""
    config.refuse("hidden_act", "silu", "swish")
    return RecurrentMixer(
        rule="delta", heads=config.integer("linear_num_value_heads", default=32),
        groups=config.integer("linear_num_key_heads", default=16),
        head_dim=config.integer("linear_key_head_dim", default=128),
        value_dim=config.integer("linear_value_head_dim", default=128),
        taps=config.integer("linear_conv_kernel_dim", default=4), norm=Norm(kind="rms", eps=eps), norm_over="head",
        shares_gains=True,
    )  # fmt: skip


def specify(config: Config) -> TransformerSpec:
    for key, value in (("head_dim", 256), ("num_key_value_heads", 2), ("intermediate_size", 5632)):
        config = config.with_default(key, value)
    norm, layers = config.rms(default=1e-6, offset=1.0), config.layers("num_hidden_layers")
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config, share=0.25), bias=bias, output_bias=bias)
    attention = replace(attention, qk_norm=QKNorm(scope="per_head", norm=norm), output_gate=True)
    dense = gated_mlp(config)
    experts = experts_beside_a_shared_one(config, dense, sizes=(512, 512), count=512, active=10, normalised=True)
    block = pre_norm_block(attention, dense, norm)
    spec = decoder(config, "qwen3_next", block, norm, mlps=sparse_layers(config, dense, experts))
    every = config.integer("full_attention_interval", default=4)
    default = ["linear_attention" if (layer + 1) % every else "full_attention" for layer in range(layers)]
    return with_mixers(spec, delta_mixer(config, norm.eps), layer_types(config, default, "layer_types"))


def locate(config: Config) -> Places:
    experts = replace(EXPERTS, shared="mlp.shared_expert.", shared_gate="mlp.shared_expert_gate")
    places = llama_places(NORMED_ATTENTION, experts=experts)
    return with_mixer_places(replace(places, ignored=(*places.ignored, "mtp.")), DELTA, "input_layernorm")


FAMILY = ModelFamily(("qwen3_next",), specify, locate)
