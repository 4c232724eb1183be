"""Falcon-H1: a mixer of Mamba-2 and attention beside each other in every layer, and constants on most of their maps."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config, as_number
from attngeom.models.families.contract import ModelFamily, Places, head_of
from attngeom.models.families.decoders import ATTENTION, decoder, gated_mlp, grouped_attention, llama_places, rotary
from attngeom.models.families.recurrent import least_step, ssd_layout
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import Norms, RecurrentMixer, TransformerBlock, TransformerSpec
from attngeom.models.tensor_errors import TensorPart

ZONES = ("output_gate", "value", "key", "query", "step")
"""The parts of the map of a mixer, in the order of their constants."""


def _mixer(config: Config) -> RecurrentMixer:
    width, heads = config.integer("hidden_size"), config.integer("mamba_n_heads", default=128)
    inner = config.integer("mamba_d_ssm", default=config.integer("mamba_expand", default=2) * width)
    given = config.raw("mamba_d_head")
    size = inner // heads if given in (None, "auto") else config.integer("mamba_d_head")
    if heads * size != inner:
        raise InputError(f"{heads} heads of {size} given; mamba_d_ssm = {inner} is required")
    return RecurrentMixer(
        rule="ssd", heads=heads, groups=config.integer("mamba_n_groups", default=1),
        head_dim=config.integer("mamba_d_state", default=256), value_dim=size,
        taps=config.integer("mamba_d_conv", default=4), norm_over="group",
        norm=config.rms(default=1e-5) if config.flag("mamba_rms_norm", default=False) else None,
        gates_first=not config.flag("mamba_norm_before_gate", default=True),
        bias=config.flag("mamba_proj_bias", default=False), conv_bias=config.flag("mamba_conv_bias", default=True),
        output_bias=config.flag("projectors_bias", default=False), least_step=least_step(config),
    )  # fmt: skip


def describe_falcon_h1(config: Config) -> TransformerSpec:
    bias, norm = config.flag("attention_bias", default=False), config.rms(default=1e-5)
    mixer = _mixer(config)
    if mixer.output_bias and bias:
        raise InputError("config attention_bias and projectors_bias given; of both constants the sum is seen, drop one")
    attention = grouped_attention(config, rotary(config, theta=1e5), bias=bias)
    block = TransformerBlock(
        attention=attention, mlp=gated_mlp(config, bias=config.flag("mlp_bias", default=False)), mixer=mixer,
        attention_norms=Norms(input=norm), mlp_norms=Norms(input=norm), beside=True,
    )  # fmt: skip
    head = head_of(config, tied=False, scale=_constant(config, "lm_head_multiplier"))
    return decoder(config, block, norm, head=head, embedding_scale=_constant(config, "embedding_multiplier"))


def _constant(config: Config, key: str) -> float:
    """A constant that multiplies; zero would hide what it multiplies."""
    return _seen(config.number(key, default=1.0), key)


def _constants(config: Config, key: str, count: int) -> list[float]:
    given = config.raw(key)
    if given is None:
        return [1.0] * count
    if not isinstance(given, list) or len(given) != count:
        raise InputError(f"config {key} = {str(given)[:40]} given; a list of {count} numbers is required")
    return [_seen(as_number(number, key), key) for number in given]


def _seen(number: float, key: str) -> float:
    if number == 0:
        raise InputError(f"config {key} with 0 given; another number is required")
    return number


def multipliers(config: Config) -> dict[TensorPart, tuple[float, float]]:
    """What values of maps are multiplied by: weights also by what multiplies their inputs, biases not."""
    keys = ("attention_in_multiplier", "attention_out_multiplier", "key_multiplier")
    read, written, key = (_constant(config, name) for name in keys)
    mixed, out = (_constant(config, f"ssm_{name}_multiplier") for name in ("in", "out"))
    gate, down = _constants(config, "mlp_multipliers", 2)
    factors = {("attention", "query"): (read, 1.0), ("attention", "key"): (read * key, key)}
    factors |= {("attention", "value"): (read, 1.0), ("attention", "output"): (written, written)}
    factors |= {("mixer", zone): (mixed * x, x) for zone, x in zip(ZONES, _constants(config, "ssm_multipliers", 5))}
    factors |= {("mixer", "output"): (out, out), ("mlp", "gate"): (gate, gate), ("mlp", "down"): (down, down)}
    return {TensorPart(*name): pair for name, pair in factors.items() if pair != (1.0, 1.0)}


def places_falcon_h1(config: Config) -> Places:
    places = llama_places(
        ATTENTION, MLPLayout("split", "feed_forward.up_proj", "feed_forward.down_proj", "feed_forward.gate_proj"),
        {"attention.input": "input_layernorm", "mlp.input": "pre_ff_layernorm"},
        final_norm={"decoder": "model.final_layernorm"},
    )  # fmt: skip
    mixer = ssd_layout("mamba")
    if not config.flag("mamba_rms_norm", default=False):
        mixer = replace(mixer, gain="")
    layout = replace(places.blocks["decoder"], mixer=mixer, multipliers=multipliers(config))
    return replace(places, blocks={"decoder": layout})


FALCON_H1 = ModelFamily("falcon_h1", describe_falcon_h1, places_falcon_h1, {"num_key_value_heads": 8})
