"""MiniMax: lightning attention with fixed decays beside softmax attention, norms of weighted sums, experts.

What a norm makes of the stream is read and carried on: the norm that stands before a layer is that of the sum behind
the layer before it, the first one is a norm of the tokens, and the last one is that before the head. Sums αx + βy are
α(x + (β/α) y), so that α goes into eps, and β/α into the maps that write.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, head_dim, head_of, model_of, stack_of
from attngeom.models.families.decoders import gated_mlp, grouped_attention, llama_places, rotary
from attngeom.models.families.llama import EXPERTS
from attngeom.models.families.recurrent import layer_types
from attngeom.models.layout import MixerLayout, Packed
from attngeom.models.specification import Experts, Norm, Norms, RecurrentMixer, TransformerBlock, TransformerSpec
from attngeom.models.tensor_errors import TensorPart

SUMS = {"attention": "full_attn", "mixer": "linear_attn", "mlp": "mlp"}
"""What configurations call the factors of the sums behind a sublayer."""


def _factors(config: Config, place: str) -> tuple[float, float]:
    """α and β of the sum behind a sublayer."""
    alpha = config.positive(f"{SUMS[place]}_alpha_factor", default=1.0)
    beta = config.number(f"{SUMS[place]}_beta_factor", default=1.0)
    if beta == 0:
        raise InputError(f"config {SUMS[place]}_beta_factor = 0 given; another number is required")
    return alpha, beta


def _types(config: Config) -> list[str]:
    layers = range(config.layers("num_hidden_layers"))
    return layer_types(config, ["linear_attention" if i % 2 else "full_attention" for i in layers], "layer_types")


def describe_minimax(config: Config) -> TransformerSpec:
    config.refuse("hidden_act", "silu", "swish")
    config.raw("block_size")  # how many tokens are computed at once
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads", default=32)
    size, eps, types = head_dim(config, width, heads), config.rms(default=1e-5).eps, _types(config)
    behind = {place: Norms(stream=Norm(kind="rms", eps=eps / _factors(config, place)[0] ** 2)) for place in SUMS}
    experts = Experts(
        expert=gated_mlp(config), count=config.integer("num_local_experts", "num_experts", default=8),
        active=config.integer("num_experts_per_tok", default=2), router="softmax",
    )  # fmt: skip
    window = config.optional_integer("sliding_window")
    attention = replace(grouped_attention(config, rotary(config, theta=1e6), bias=False), window=window)
    full = TransformerBlock(
        attention=attention, mlp=experts, attention_norms=behind["attention"], mlp_norms=behind["mlp"]
    )  # fmt: skip
    mixer = RecurrentMixer(
        rule="lightning", heads=heads, groups=heads, head_dim=size, value_dim=size, taps=1, slowing=1.0,
        norm=Norm(kind="rms", eps=1e-6), norm_over="all", gate="sigmoid",
    )  # fmt: skip
    blocks = []
    for number, kind in enumerate(types):
        slowing = 1 - number / (len(types) - 1 + 1e-5) + 1e-5
        own = TransformerBlock(
            attention=None, mlp=experts, mixer=replace(mixer, slowing=slowing), mixer_norms=behind["mixer"],
            mlp_norms=behind["mlp"],
        )  # fmt: skip
        blocks.append(own if kind == "linear_attention" else full)
    first = Norm(kind="rms", eps=eps)
    return model_of(
        config, width, stack_of(blocks, final_norm=None, embedding_norm=first), head=head_of(config, tied=False)
    )


LIGHTNING = MixerLayout(
    maps=(
        Packed("self_attn.qkv_proj", ("query", "key", "value"), grouped=True),
        Packed("self_attn.output_gate", ("output_gate",)),
    ),
    convolutions=(),
    numbers={},
    gain="self_attn.norm",
    output="self_attn.out_proj",
)
NORMS = {
    **dict.fromkeys(("mixer.stream", "attention.stream"), "post_attention_layernorm"), "mlp.stream": "output_layernorm"
}  # fmt: skip
TABLES = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
"""Tables of decays, which files repeat."""


def places_minimax(config: Config) -> Places:
    layers, more = config.layers("num_hidden_layers"), dict[str, Any]()
    norms = [f"model.layers.{i}.input_layernorm.weight" for i in range(layers)] + ["model.norm.weight"]
    more["stored_as"] = {f"model.layers.{i}.output_layernorm.weight": norms[i + 1] for i in range(layers)}
    more["stored_as"]["model.embedding_norm.weight"] = norms[0]
    tables = tuple(f"model.layers.{i}.self_attn.{name}" for i in range(layers) for name in TABLES)
    places = llama_places(
        norms=NORMS, experts=EXPERTS, final_norm={}, embedding_norm="model.embedding_norm", others=tables, **more
    )  # fmt: skip
    outputs = {"mixer": "output", "attention": "output", "mlp": "down"}
    shares = {place: beta / alpha for place in SUMS for alpha, beta in (_factors(config, place),)}
    factors = {TensorPart(place, outputs[place]): (share, share) for place, share in shares.items() if share != 1}
    layout = replace(places.blocks["decoder"], mixer=LIGHTNING, multipliers=factors)
    return replace(places, blocks={"decoder": layout})


MINIMAX = ModelFamily("minimax", describe_minimax, places_minimax, {"num_key_value_heads": 8})
