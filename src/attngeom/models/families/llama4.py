"""Llama 4, its text model: layers in chunks with normed, rotated queries and keys, and layers that see all.

Those do not rotate, and the scores of late tokens grow there. Experts read what the sigmoid of their score multiplies,
beside a shared one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families import decoders
from attngeom.models.families.contract import ModelFamily, block_of, head_of, model_of, stack_of
from attngeom.models.families.decoders import GATED, gated_mlp, grouped_attention, llama_places, rotary
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import Experts, GroupedAttention, QKNorm, TransformerSpec

TYPES = ("chunked_attention", "full_attention")


def _listed(config: Config, key: str, known: tuple[Any, ...], default: list[Any]) -> list[Any]:
    """A list with an entry for each layer; an empty one is none."""
    given = config.raw(key) or default
    if not isinstance(given, list) or len(given) != len(default) or not all(x in known for x in given):
        words = " or ".join(map(str, known))
        raise InputError(f"config {key} = {str(given)[:40]} given; {len(default)} of {words} are required")
    return given


def _attentions(config: Config) -> list[GroupedAttention]:
    layers, every = config.layers("num_hidden_layers"), config.integer("no_rope_layer_interval", default=4)
    rotates = _listed(config, "no_rope_layers", (0, 1), [int((i + 1) % every != 0) for i in range(layers)])
    kinds = _listed(config, "layer_types", TYPES, [TYPES[0] if turns else TYPES[1] for turns in rotates])
    chunk = config.optional_integer("attention_chunk_size", absent=8192)
    if chunk is None and TYPES[0] in kinds:
        raise InputError("config attention_chunk_size = null with chunked_attention given; transformers cannot run it")
    plain = grouped_attention(config, None, bias=config.flag("attention_bias", default=False))
    norm = replace(config.rms(default=1e-5), gain=False)
    normed = QKNorm(scope="per_head", norm=norm) if config.flag("use_qk_norm", default=True) else None
    rotation = rotary(config, "interleaved", theta=5e5)
    if normed is not None and rotation is not None and rotation.amplitude != 1:
        raise InputError("config rope type that scales queries and keys given beside their norms; not known")
    # The norm of a whole head and its rotation commute.
    rotating = replace(plain, rotary=rotation, qk_norm=normed)
    growth = config.positive("floor_scale", default=8192.0), config.number("attn_scale", default=0.1)
    still = replace(plain, temperature=growth if config.flag("attn_temperature_tuning", default=True) else None)
    return [
        replace(rotating if turns else still, chunk=chunk if kind == TYPES[0] else None)
        for turns, kind in zip(rotates, kinds)
    ]


def describe_llama4(config: Config) -> TransformerSpec:
    layers, norm = config.layers("num_hidden_layers"), config.rms(default=1e-5)
    expert = gated_mlp(config)
    dense = replace(expert, width=config.integer("intermediate_size_mlp", default=16384))
    experts = Experts(
        expert=expert, count=config.integer("num_local_experts", default=16), shared=expert, router="sigmoid",
        active=config.integer("num_experts_per_tok", default=1), normalised=False, scales_inputs=True,
    )  # fmt: skip
    step = config.integer("interleave_moe_layer_step", default=1)
    chosen = config.raw("moe_layers")
    chosen = list(range(step - 1, layers, step)) if chosen is None else chosen
    if not isinstance(chosen, list) or not all(type(i) is int for i in chosen):
        raise InputError(f"config moe_layers = {str(chosen)[:40]} given; a list of numbers of layers is required")
    mlps = [experts if i in chosen else dense for i in range(layers)]
    blocks = [block_of(attention, mlp, norm) for attention, mlp in zip(_attentions(config), mlps)]
    stack = stack_of(blocks, final_norm=norm)
    return model_of(config, config.integer("hidden_size"), stack, head=head_of(config, tied=False))


# What scores are multiplied by is told by the maps: the norms have no gains.
ATTENTION = replace(decoders.ATTENTION, query_norm="self_attn.q_proj", key_norm="self_attn.k_proj")
DENSE = replace(GATED, gate="feed_forward.gate_proj", up="feed_forward.up_proj", down="feed_forward.down_proj")
EXPERTS = MLPLayout(
    "beside_experts", "feed_forward.experts.gate_up_proj", "feed_forward.experts.down_proj",
    router="feed_forward.router", shared="feed_forward.shared_expert.",
    shared_units=MLPLayout("split", "up_proj", "down_proj", "gate_proj"),
)  # fmt: skip
LLAMA4 = ModelFamily(
    "llama4_text", describe_llama4, llama_places(ATTENTION, DENSE, experts=EXPERTS),
    {"head_dim": 128, "num_key_value_heads": 8, "num_attention_heads": 40},
)  # fmt: skip
