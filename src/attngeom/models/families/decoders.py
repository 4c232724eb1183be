"""What the decoders that descend from Llama share: names, grouped heads, windows, a gated MLP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attngeom.errors import InputError
from attngeom.models.configuration import Config, rotary_of
from attngeom.models.families.contract import Places, biases, head_dim, head_of, model_of, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import (
    MLP,
    Experts,
    GroupedAttention,
    Layout,
    LogitHead,
    Norm,
    Rotary,
    TransformerBlock,
    TransformerSpec,
)

ATTENTION = split_attention("self_attn.{}_proj", "self_attn.o_proj")
NORMED_ATTENTION = replace(ATTENTION, query_norm="self_attn.q_norm", key_norm="self_attn.k_norm")
GATED = MLPLayout(packing="split", gate="mlp.gate_proj", up="mlp.up_proj", down="mlp.down_proj")
EXPERTS = MLPLayout("experts", "up_proj", "down_proj", "gate_proj", router="mlp.gate", expert="mlp.experts.{}.")
IGNORED = ("model.rotary_emb.", "rotary_emb.")
PRE_NORMS = {"attention.input": "input_layernorm", "mlp.input": "post_attention_layernorm"}


def sliding_window(config: Config) -> int | None:
    """The window of the layers that have one; a config that does not name it means 4,096, null means none."""
    return config.optional_integer("sliding_window", absent=4096)


def grouped_attention(
    config: Config, rotary: Rotary | None, *, bias: bool, output_bias: bool | None = None
) -> GroupedAttention:
    """Grouped-query attention with the keys of Llama; its output has a bias if the others have, or as is said."""
    heads, width = config.integer("num_attention_heads"), config.integer("hidden_size")
    a = head_dim(config, width, heads)
    return GroupedAttention(
        heads=heads, groups=config.integer("num_key_value_heads", default=heads), head_dim=a, value_dim=a,
        scale=a**-0.5, rotary=rotary, **{**biases(bias), "output_bias": bias if output_bias is None else output_bias},
    )  # fmt: skip


def rotary(config: Config, layout: Layout = "half", **defaults: float) -> Rotary | None:
    """Rotary positions over the head."""
    heads, width = config.integer("num_attention_heads"), config.integer("hidden_size")
    return config.rotary(head_dim(config, width, heads), layout, **defaults)


def rotary_of_type(config: Config, kind: str, *, theta: float, key: str = "rope_theta") -> Rotary:
    """The rotation of layers of one type: under its name in ``rope_parameters``; older files have the base in ``key``.

    There ``rope_scaling`` concerns the layers of full attention only.
    """
    nested = config.raw("rope_parameters") or {}
    if not isinstance(nested, dict) or not all(isinstance(values, dict | None) for values in nested.values()):
        raise InputError("config rope_parameters given; one object for each type of layers is required")
    scaling = config.raw("rope_scaling") if kind == "full_attention" and not nested else None
    values = {"rope_theta": config.number(key, default=theta), **(nested.get(kind) or scaling or {})}
    a = head_dim(config, config.integer("hidden_size"), config.integer("num_attention_heads"))
    return rotary_of(values, a, "half", config.optional_integer("max_position_embeddings"), config)


def layer_types(config: Config, every: int) -> list[str]:
    """``layer_types``; by default each ``every``-th layer attends fully and the others through a window."""
    layers = range(config.layers("num_hidden_layers"))
    return config.layer_types(["sliding_attention" if (i + 1) % every else "full_attention" for i in layers])


def gated_mlp(config: Config, *, bias: bool = False) -> MLP:
    width = config.integer("intermediate_size")
    activation = config.activation("hidden_act", "hidden_activation", default="silu")
    return MLP(width=width, activation=activation, gated=True, up_bias=bias, down_bias=bias)


def decoder(
    config: Config, block: TransformerBlock, norm: Norm, *, windows: list[int | None] | None = None,
    mlps: Sequence[MLP | Experts | None] = (), rotaries: Sequence[Rotary | None] = (), head: LogitHead | None = None,
    embedding_scale: float = 1.0,
) -> TransformerSpec:  # fmt: skip
    """A stack of blocks that differ by their window, rotation or MLP, with a final norm and a head."""
    layers = config.layers("num_hidden_layers")
    assert block.attention is not None
    rotations = rotaries or [block.attention.rotary] * layers
    blocks = []
    for window, rotation, mlp in zip(windows or [None] * layers, rotations, mlps or [block.mlp] * layers, strict=True):
        attention = replace(block.attention, window=window, rotary=rotation)
        blocks.append(replace(block, attention=attention, mlp=mlp))
    stack, head = stack_of(blocks, final_norm=norm), head or head_of(config, tied=False)
    return model_of(config, config.integer("hidden_size"), stack, head=head, embedding_scale=embedding_scale)


def llama_places(
    attention: AttentionLayout = ATTENTION,
    mlp: MLPLayout = GATED,
    norms: dict[str, str] = PRE_NORMS,
    experts: MLPLayout | None = None,
    **more: Any,
) -> Places:
    """The names of Llama, some of them others."""
    names: dict[str, Any] = {"final_norm": {"decoder": "model.norm"}, "ignored": IGNORED}
    return Places(
        blocks={"decoder": BlockLayout("model.layers.{}.", attention, mlp, norms, experts=experts)},
        tokens="model.embed_tokens.weight",
        head="lm_head.weight",
        base="model.",
        **(names | more),
    )
