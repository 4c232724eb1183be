"""Layers with a recurrent mixer in place of attention: all (Mamba-2), or most (Bamba, Granite 4, Qwen3-Next)."""

from __future__ import annotations

import math
from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config, as_number
from attngeom.models.families.contract import ModelFamily, Places, block_of, head_of, model_of, stack_of
from attngeom.models.families.decoders import (
    ATTENTION,
    IGNORED,
    NORMED_ATTENTION,
    PRE_NORMS,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    rotary,
)
from attngeom.models.families.granite import EXPERTS, experts_of, granite
from attngeom.models.families.olmo import NORMS, block_olmo2
from attngeom.models.families.qwen import GATED_SHARED, experts_beside_a_shared_one, sparse_layers
from attngeom.models.layout import BlockLayout, MixerLayout, MLPLayout, Packed
from attngeom.models.specification import (
    MLP,
    Experts,
    Norm,
    Norms,
    QKNorm,
    RecurrentMixer,
    TransformerBlock,
    TransformerSpec,
)

# Mamba-2: blocks of one mixer each (SSD), which other families share with it.


def ssd_layout(module: str) -> MixerLayout:
    """The tensors of an SSD mixer below a module: gate, values, keys (B), queries (C) and time steps in one map."""
    return MixerLayout(
        maps=(Packed(f"{module}.in_proj", ("output_gate", "value", "key", "query", "step")),),
        convolutions=(Packed(f"{module}.conv1d", ("value", "key", "query")),),
        numbers={"decay": f"{module}.A_log", "step_shift": f"{module}.dt_bias", "skip": f"{module}.D"},
        gain=f"{module}.norm",
        output=f"{module}.out_proj",
    )


INFINITY = {"__float__": "Infinity"}
"""How newer files write it, as JSON has no infinity."""


def least_step(config: Config) -> float:
    """The least time step; time steps with a largest one, and activations other than SiLU, are refused."""
    config.refuse("hidden_act", "silu", "swish")
    limit = config.raw("time_step_limit")
    if limit is None:
        return 0.0
    if not isinstance(limit, list) or len(limit) != 2 or limit[1] not in (math.inf, "Infinity", INFINITY):
        raise InputError(f"config time_step_limit = {str(limit)[:40]} given; [a number, Infinity] is required")
    return as_number(limit[0], "time_step_limit")


def describe_mamba2(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_heads", default=128)
    norm = Norm(kind="rms", eps=config.number("layer_norm_epsilon", default=1e-5))
    bias = config.flag("use_bias", default=False)
    mixer = RecurrentMixer(
        rule="ssd", heads=heads, groups=config.integer("n_groups", default=8),
        head_dim=config.integer("state_size", default=128), value_dim=config.integer("head_dim", default=64),
        taps=config.integer("conv_kernel", default=4), norm=norm, norm_over="group", gates_first=True,
        bias=bias, conv_bias=config.flag("use_conv_bias", default=True), output_bias=bias,
        least_step=least_step(config),
    )  # fmt: skip
    inner = config.number("expand", default=2) * width
    if int(inner) != heads * mixer.value_dim:
        raise InputError(f"{heads} heads of {mixer.value_dim} given; expand × hidden_size = {inner:g} is required")
    block = TransformerBlock(attention=None, mlp=None, mixer=mixer, mixer_norms=Norms(input=norm))
    stack = stack_of([block] * config.layers("num_hidden_layers"), final_norm=norm)
    return model_of(config, width, stack, head=head_of(config, tied=False))


MAMBA2_PLACES = Places(
    blocks={
        "decoder": BlockLayout("backbone.layers.{}.", None, None, {"mixer.input": "norm"}, mixer=ssd_layout("mixer"))
    },
    final_norm={"decoder": "backbone.norm_f"},
    tokens="backbone.embeddings.weight",
    head="lm_head.weight",
    base="backbone.",
)
MAMBA2 = ModelFamily("mamba2", describe_mamba2, MAMBA2_PLACES)


# Bamba and Granite 4: the mixer of Mamba-2 beside attention.

NAMES = {"mamba": "linear_attention", "attention": "full_attention"}
"""What older configurations call the types of layers."""


def with_mixers(spec: TransformerSpec, mixer: RecurrentMixer, types: list[str]) -> TransformerSpec:
    """A decoder whose layers of type linear_attention have the mixer in place of attention."""
    blocks: list[TransformerBlock] = []
    for block, kind in zip(spec.stack.blocks, types, strict=True):
        mixed = replace(block, attention=None, attention_norms=Norms(), mixer=mixer, mixer_norms=block.attention_norms)
        blocks.append(mixed if kind == "linear_attention" else block)
    return replace(spec, stacks=(stack_of(blocks, final_norm=spec.stack.final_norm),))


def layer_types(config: Config, default: list[str], *keys: str) -> list[str]:
    """The type of every layer."""
    given = config.raw(*keys)
    types = default if given is None else given
    good = isinstance(types, list) and len(types) == len(default)
    types = [NAMES.get(kind, kind) if isinstance(kind, str) else "" for kind in types] if good else []
    if not types or set(types) - set(NAMES.values()):
        raise InputError(f"config {keys[0]} given; {len(default)} of linear_attention or full_attention are required")
    return types


def with_mixer_places(places: Places, mixer: MixerLayout) -> Places:
    own = places.blocks["decoder"]
    layout = replace(own, mixer=mixer, norms={**own.norms, "mixer.input": "input_layernorm"})
    return replace(places, blocks={"decoder": layout})


def _ssd(config: Config, norm: Norm) -> RecurrentMixer:
    width, heads = config.integer("hidden_size"), config.integer("mamba_n_heads", default=128)
    inner = config.integer("mamba_expand", default=2) * width
    given = config.raw("mamba_d_head")
    size = inner // heads if given in (None, "auto") else config.integer("mamba_d_head")
    if heads * size != inner:
        raise InputError(f"{heads} heads of {size} given; mamba_expand × hidden_size = {inner} is required")
    bias = config.flag("mamba_proj_bias", default=False)
    return RecurrentMixer(
        rule="ssd", heads=heads, groups=config.integer("mamba_n_groups", default=1),
        head_dim=config.integer("mamba_d_state", default=256), value_dim=size,
        taps=config.integer("mamba_d_conv", default=4), norm=norm, norm_over="group", gates_first=True,
        bias=bias, conv_bias=config.flag("mamba_conv_bias", default=True), output_bias=bias,
        least_step=least_step(config),
    )  # fmt: skip


def describe_bamba(config: Config) -> TransformerSpec:
    """Half of the coordinates of a head are rotated, whatever the configuration says."""
    norm, layers = config.rms(default=1e-5), config.layers("num_hidden_layers")
    given = config.raw("attn_layer_indices") or []
    if not isinstance(given, list) or not all(type(layer) is int for layer in given):
        raise InputError(f"config attn_layer_indices = {str(given)[:40]} given; a list of layers is required")
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config, share=0.5), bias=bias)
    block = block_of(attention, gated_mlp(config, bias=config.flag("mlp_bias", default=False)), norm)
    types = ["full_attention" if layer in given else "linear_attention" for layer in range(layers)]
    return with_mixers(decoder(config, block, norm), _ssd(config, norm), types)


BAMBA_PLACES = llama_places(
    ATTENTION,
    MLPLayout("split", "feed_forward.up_proj", "feed_forward.down_proj", "feed_forward.gate_proj"),
    {**PRE_NORMS, "mlp.input": "pre_ff_layernorm"},
    final_norm={"decoder": "model.final_layernorm"},
)
SSD = ssd_layout("mamba")
BAMBA = ModelFamily("bamba", describe_bamba, with_mixer_places(BAMBA_PLACES, SSD), {"num_key_value_heads": 8})


def describe_granite_hybrid(config: Config) -> TransformerSpec:
    """Granite 4: experts beside a shared MLP, or that alone; rotary positions or none."""
    layers = config.layers("num_hidden_layers")
    config.refuse("position_embedding_type", "rope", "nope")
    shared = replace(gated_mlp(config), width=config.integer("shared_intermediate_size", default=1024))
    count = config.integer("num_local_experts", default=8, least=0)
    mlp: MLP | Experts = experts_of(config, shared) if count else shared
    spec = granite(config, mlp, rotates=config.raw("position_embedding_type") == "rope")
    types = layer_types(config, ["linear_attention"] * layers, "layer_types", "layers_block_type")
    return with_mixers(spec, _ssd(config, config.rms(default=1e-6)), types)


GRANITE_PLACES = llama_places(
    mlp=MLPLayout("fused", "shared_mlp.input_linear", "shared_mlp.output_linear"), experts=EXPERTS
)
GRANITE_HYBRID = ModelFamily("granitemoehybrid", describe_granite_hybrid, with_mixer_places(GRANITE_PLACES, SSD))


# Qwen3-Next: Gated DeltaNet in most layers, gated attention in the others, experts beside a gated shared one.

DELTA = MixerLayout(
    maps=(
        Packed("linear_attn.in_proj_qkvz", ("query", "key", "value", "output_gate"), grouped=True),
        Packed("linear_attn.in_proj_ba", ("strength", "step"), grouped=True),
    ),
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


def describe_qwen3_5(config: Config, experts: Experts | None = None) -> TransformerSpec:
    norm, layers = config.rms(default=1e-6, offset=1.0), config.layers("num_hidden_layers")
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config, share=0.25), bias=bias)
    attention = replace(attention, qk_norm=QKNorm(scope="per_head", norm=norm), output_gate=True)
    dense = gated_mlp(config)
    mlps = () if experts is None else sparse_layers(config, dense, experts)
    spec = decoder(config, block_of(attention, dense, norm), norm, mlps=mlps)
    every = config.integer("full_attention_interval", default=4)
    default = ["linear_attention" if (layer + 1) % every else "full_attention" for layer in range(layers)]
    return with_mixers(spec, delta_mixer(config, norm.eps), layer_types(config, default, "layer_types"))


def describe_qwen3_next(config: Config) -> TransformerSpec:
    dense, sizes = gated_mlp(config), (512, 512)
    experts = experts_beside_a_shared_one(config, dense, sizes=sizes, count=512, active=10, normalised=True)
    return describe_qwen3_5(config, experts)


NEXT_PLACES = llama_places(NORMED_ATTENTION, experts=GATED_SHARED, ignored=(*IGNORED, "mtp."))
QWEN3_NEXT = ModelFamily(
    "qwen3_next", describe_qwen3_next, with_mixer_places(NEXT_PLACES, DELTA),
    {"head_dim": 256, "num_key_value_heads": 2, "intermediate_size": 5632},
)  # fmt: skip
# Qwen3.5 has dense units, and its maps apart; the positions of texts are the same in all sections of its rotation.
APART = (
    Packed("linear_attn.in_proj_qkv", ("query", "key", "value")),
    Packed("linear_attn.in_proj_z", ("output_gate",)),
    Packed("linear_attn.in_proj_b", ("strength",)),
    Packed("linear_attn.in_proj_a", ("step",)),
)
TEXT_PLACES = with_mixer_places(
    llama_places(NORMED_ATTENTION, ignored=(*IGNORED, "mtp.")), replace(DELTA, maps=APART)
)  # fmt: skip
QWEN3_5 = ModelFamily(
    "qwen3_5_text", describe_qwen3_5, TEXT_PLACES, {"head_dim": 256, "num_key_value_heads": 4}
)  # fmt: skip


# OLMo hybrid: norms before its mixers, whose maps and convolutions lie apart, and behind its attention.


def describe_olmo_hybrid(config: Config) -> TransformerSpec:
    layers, heads = config.layers("num_hidden_layers"), config.integer("num_attention_heads")
    width, groups = config.integer("hidden_size"), config.integer("linear_num_key_heads", default=heads)
    size = config.integer("linear_key_head_dim", default=int(0.75 * width / groups))
    sizes = {"linear_num_key_heads": groups, "linear_num_value_heads": heads, "linear_key_head_dim": size}
    mixer = delta_mixer(config.with_defaults({**sizes, "linear_value_head_dim": 2 * size}), 1e-5)
    mixer = replace(mixer, reflects=config.flag("linear_allow_neg_eigval", default=True))
    nested = config.raw("rope_parameters")
    still = not isinstance(nested, dict) or nested.get("rope_theta") is None
    block = block_olmo2(config, None if still else rotary(config), config.rms(default=1e-6))
    types = ["full_attention" if i % 4 == 3 else "linear_attention" for i in range(layers)]
    types[-1] = types[-1] if "full_attention" in types else "full_attention"
    types = layer_types(config, types, "layer_types")
    norm = Norms(input=config.rms(default=1e-6))
    mixed = TransformerBlock(attention=None, mlp=block.mlp, mixer=mixer, mixer_norms=norm, mlp_norms=norm)
    blocks = [mixed if kind == "linear_attention" else block for kind in types]
    return model_of(config, width, stack_of(blocks, final_norm=norm.input), head=head_of(config, tied=False))


SEPARATE = MixerLayout(
    maps=tuple(
        Packed(f"linear_attn.{name}_proj", (part,))
        for name, part in zip("qkvgba", ("query", "key", "value", "output_gate", "strength", "step"))
    ),
    convolutions=tuple(
        Packed(f"linear_attn.{name}_conv1d", (part,)) for name, part in zip("qkv", ("query", "key", "value"))
    ),
    numbers=DELTA.numbers,
    gain="linear_attn.o_norm",
    output="linear_attn.o_proj",
)
HYBRID_NORMS = {**NORMS, "mixer.input": "attention_layer_norm", "mlp.input": "feedforward_layer_norm"}
# transformers 5 writes the name of one norm of mixers for one of attention, and reads both.
HYBRID_PLACES = replace(
    llama_places(NORMED_ATTENTION, norms=HYBRID_NORMS),
    otherwise={"post_attention_layernorm.weight": "feedforward_layer_norm.weight"},
)
HYBRID_PLACES = replace(
    HYBRID_PLACES, blocks={"decoder": replace(HYBRID_PLACES.blocks["decoder"], mixer=SEPARATE)}
)  # fmt: skip
OLMO_HYBRID = ModelFamily("olmo_hybrid", describe_olmo_hybrid, HYBRID_PLACES)
