"""Decoders of which some layers have a recurrent mixer in place of attention; Bamba and Granite 4."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    ATTENTION,
    PRE_NORMS,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    pre_norm_block,
    rotary,
)
from attngeom.models.families.granite import EXPERTS, attention_of, experts_of, head_of
from attngeom.models.families.mamba import check_steps, ssd_layout
from attngeom.models.layout import MixerLayout, MLPLayout
from attngeom.models.specification import MLP, Experts, Norm, Norms, RecurrentMixer, TransformerBlock, TransformerSpec

NAMES = {"mamba": "linear_attention", "attention": "full_attention"}
"""What older configurations call the types of layers."""


def with_mixers(spec: TransformerSpec, mixer: RecurrentMixer, types: list[str]) -> TransformerSpec:
    """A decoder whose layers of type linear_attention have the mixer in place of attention."""
    kinds: list[TransformerBlock] = []
    for block, kind in zip(spec.stack.blocks, types, strict=True):
        mixed = replace(block, attention=None, attention_norms=Norms(), mixer=mixer, mixer_norms=block.attention_norms)
        kinds.append(mixed if kind == "linear_attention" else block)
    used = tuple(dict.fromkeys(kinds))
    stack = replace(spec.stack, kinds=used, order=tuple(used.index(block) for block in kinds))
    return replace(spec, stacks=(stack,))


def layer_types(config: Config, default: list[str], *keys: str) -> list[str]:
    """The type of every layer."""
    given = config.raw(*keys)
    types = default if given is None else given
    good = isinstance(types, list) and len(types) == len(default)
    types = [NAMES.get(kind, kind) if isinstance(kind, str) else "" for kind in types] if good else []
    if not types or set(types) - set(NAMES.values()):
        raise InputError(f"config {keys[0]} given; {len(default)} of linear_attention or full_attention are required")
    return types


def with_mixer_places(places: Places, mixer: MixerLayout, norm: str) -> Places:
    own = places.blocks["decoder"]
    layout = replace(own, mixer=mixer, norms={**own.norms, "mixer.input": norm})
    return replace(places, blocks={"decoder": layout})


# Bamba and Granite 4: the mixer of Mamba-2 beside attention


def _ssd(config: Config, norm: Norm) -> RecurrentMixer:
    width, heads = config.integer("hidden_size"), config.integer("mamba_n_heads", default=128)
    inner = config.integer("mamba_expand", default=2) * width
    given = config.raw("mamba_d_head")
    size = inner // heads if given in (None, "auto") else config.integer("mamba_d_head")
    if heads * size != inner:
        raise InputError(f"{heads} heads of {size} given; mamba_expand × hidden_size = {inner} is required")
    check_steps(config)
    bias = config.flag("mamba_proj_bias", default=False)
    return RecurrentMixer(
        rule="ssd", heads=heads, groups=config.integer("mamba_n_groups", default=1),
        head_dim=config.integer("mamba_d_state", default=256), value_dim=size,
        taps=config.integer("mamba_d_conv", default=4), norm=norm, norm_over="group", gates_first=True,
        bias=bias, conv_bias=config.flag("mamba_conv_bias", default=True), output_bias=bias,
    )  # fmt: skip


def specify_bamba(config: Config) -> TransformerSpec:
    """Half of the coordinates of a head are rotated, whatever the configuration says."""
    norm, layers = config.rms(default=1e-5), config.layers("num_hidden_layers")
    config = config.with_default("num_key_value_heads", 8)
    given = config.raw("attn_layer_indices") or []
    if not isinstance(given, list) or not all(type(layer) is int for layer in given):
        raise InputError(f"config attn_layer_indices = {str(given)[:40]} given; a list of layers is required")
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config, share=0.5), bias=bias, output_bias=bias)
    block = pre_norm_block(attention, gated_mlp(config, bias=config.flag("mlp_bias", default=False)), norm)
    types = ["full_attention" if layer in given else "linear_attention" for layer in range(layers)]
    return with_mixers(decoder(config, "bamba", block, norm), _ssd(config, norm), types)


def locate_bamba(config: Config) -> Places:
    norms = {**PRE_NORMS, "mlp.input": "pre_ff_layernorm"}
    mlp = MLPLayout("split", "feed_forward.up_proj", "feed_forward.down_proj", "feed_forward.gate_proj")
    places = replace(llama_places(ATTENTION, mlp, norms), final_norm={"decoder": "model.final_layernorm"})
    return with_mixer_places(places, ssd_layout("mamba"), "input_layernorm")


def specify_granite_hybrid(config: Config) -> TransformerSpec:
    """Granite 4: experts beside a shared MLP, or that alone; rotary positions or none."""
    norm, layers = config.rms(default=1e-6), config.layers("num_hidden_layers")
    config.refuse("position_embedding_type", "rope", "nope")
    shared = replace(gated_mlp(config), width=config.integer("shared_intermediate_size", default=1024))
    count = config.integer("num_local_experts", default=8, least=0)
    mlp: MLP | Experts = experts_of(config, shared) if count else shared
    attention = attention_of(config)
    if config.raw("position_embedding_type") != "rope":
        attention = replace(attention, rotary=None)
    block = pre_norm_block(attention, mlp, norm)
    block = replace(block, residual_scale=config.positive("residual_multiplier", default=1.0))
    spec = decoder(
        config, "granitemoehybrid", block, norm, head=head_of(config),
        embedding_scale=config.positive("embedding_multiplier", default=1.0),
    )  # fmt: skip
    types = layer_types(config, ["linear_attention"] * layers, "layer_types", "layers_block_type")
    return with_mixers(spec, _ssd(config, norm), types)


def locate_granite_hybrid(config: Config) -> Places:
    mlp = MLPLayout("fused", "shared_mlp.input_linear", "shared_mlp.output_linear")
    places = llama_places(mlp=mlp, experts=EXPERTS)
    return with_mixer_places(places, ssd_layout("mamba"), "input_layernorm")


BAMBA = ModelFamily(("bamba",), specify_bamba, locate_bamba)
GRANITE_HYBRID = ModelFamily(("granitemoehybrid",), specify_granite_hybrid, locate_granite_hybrid)
