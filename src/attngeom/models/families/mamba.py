"""Mamba-2: blocks of one recurrent mixer each (SSD), and what other families share with it."""

from __future__ import annotations

import math

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, stack_of
from attngeom.models.layout import BlockLayout, MixerLayout, Packed
from attngeom.models.specification import LogitHead, Norm, Norms, RecurrentMixer, TransformerBlock, TransformerSpec


def ssd_layout(module: str) -> MixerLayout:
    """The tensors of an SSD mixer below a module: gate, values, keys (B), queries (C) and time steps in one map."""
    return MixerLayout(
        maps=(Packed(f"{module}.in_proj", ("output_gate", "value", "key", "query", "step")),),
        convolutions=(Packed(f"{module}.conv1d", ("value", "key", "query")),),
        numbers={"decay": f"{module}.A_log", "step_shift": f"{module}.dt_bias", "skip": f"{module}.D"},
        gain=f"{module}.norm",
        output=f"{module}.out_proj",
    )


def check_steps(config: Config) -> None:
    """Refuse clamped time steps, and activations other than SiLU."""
    config.refuse("hidden_act", "silu", "swish")
    limit = config.raw("time_step_limit")
    # Newer files write the float in an object, as JSON has no infinity.
    if limit not in (None, [0, math.inf], [0, "Infinity"], [0, {"__float__": "Infinity"}]):
        raise InputError(f"config time_step_limit = {str(limit)[:40]} given; [0, Infinity] is required")


def specify_mamba2(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_heads", default=128)
    check_steps(config)
    norm = Norm(kind="rms", eps=config.number("layer_norm_epsilon", default=1e-5))
    bias = config.flag("use_bias", default=False)
    mixer = RecurrentMixer(
        rule="ssd", heads=heads, groups=config.integer("n_groups", default=8),
        head_dim=config.integer("state_size", default=128), value_dim=config.integer("head_dim", default=64),
        taps=config.integer("conv_kernel", default=4), norm=norm, norm_over="group", gates_first=True,
        bias=bias, conv_bias=config.flag("use_conv_bias", default=True), output_bias=bias,
    )  # fmt: skip
    inner = config.number("expand", default=2) * width
    if int(inner) != heads * mixer.value_dim:
        raise InputError(f"{heads} heads of {mixer.value_dim} given; expand × hidden_size = {inner:g} is required")
    block = TransformerBlock(attention=None, mlp=None, mixer=mixer, mixer_norms=Norms(input=norm))
    return TransformerSpec(
        family="mamba2",
        width=width,
        stacks=(stack_of([block] * config.layers("num_hidden_layers"), "decoder", final_norm=norm),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=False)),
    )


def locate_mamba2(config: Config) -> Places:
    layout = BlockLayout("backbone.layers.{}.", None, None, {"mixer.input": "norm"}, mixer=ssd_layout("mixer"))
    return Places(
        blocks={"decoder": layout},
        final_norm={"decoder": "backbone.norm_f"},
        tokens="backbone.embeddings.weight",
        head="lm_head.weight",
        base="backbone.",
    )


MAMBA2 = ModelFamily(("mamba2",), specify_mamba2, locate_mamba2)
