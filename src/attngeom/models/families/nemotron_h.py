"""Nemotron-H: every layer is one sublayer, a mixer of Mamba-2, attention without positions, an MLP or experts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, head_of, model_of, plain_mlp, stack_of
from attngeom.models.families.decoders import grouped_attention
from attngeom.models.families.deepseek import corrected_experts
from attngeom.models.families.recurrent import ssd_layout
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import Norm, Norms, RecurrentMixer, TransformerBlock, TransformerSpec

NAMES = {
    **dict.fromkeys(("M", "mamba", "linear_attention"), "linear_attention"),
    **dict.fromkeys(("*", "attention", "full_attention"), "full_attention"),
    **dict.fromkeys(("-", "mlp"), "mlp"),
    **dict.fromkeys(("E", "moe"), "moe"),
}
"""What configurations call the types of layers: in a pattern of letters, in older lists, in newer ones."""
KEYS = {
    "n_groups": "mamba_n_groups",
    "conv_kernel": "mamba_d_conv",
    "use_conv_bias": "mamba_conv_bias",
    "time_step_min": "mamba_dt_min",
}
"""Keys that have another name in some files."""
DEFAULTS = {
    "head_dim": 128, "num_key_value_heads": 8, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 7688,
}  # fmt: skip


def _types(config: Config) -> list[str]:
    """The type of every layer."""
    given: Any = config.raw("layers_block_type", "hybrid_override_pattern")
    given = list(given) if isinstance(given, str | list) else ["M", "E", "*", "-"] if given is None else []
    types = [NAMES.get(kind, "") if isinstance(kind, str) else "" for kind in given]
    if not types or "" in types:
        raise InputError(f"config layers_block_type given; a list of {', '.join(dict.fromkeys(NAMES.values()))} needed")
    return types


def _mixer(config: Config, norm: Norm) -> RecurrentMixer:
    config.refuse("mamba_hidden_act", "silu", "swish")
    bias = config.flag("use_bias", default=False)
    return RecurrentMixer(
        rule="ssd", heads=config.integer("mamba_num_heads", default=128), groups=config.integer("n_groups", default=8),
        head_dim=config.integer("ssm_state_size", default=128), value_dim=config.integer("mamba_head_dim", default=64),
        taps=config.integer("conv_kernel", default=4), norm=norm, norm_over="group", gates_first=True,
        bias=bias, conv_bias=config.flag("use_conv_bias", default=True), output_bias=bias,
        least_step=config.number("time_step_min", default=0.001),
    )  # fmt: skip


def describe(config: Config) -> TransformerSpec:
    types = _types(config)
    config.refuse("moe_latent_size")
    if "moe" in types:
        # Shared experts would have biases, the others none.
        config.refuse("mlp_bias", False)
    config = config.with_defaults({key: config.raw(other) for key, other in KEYS.items()})
    norm = Norm(kind="rms", eps=config.number("layer_norm_epsilon", default=1e-5))
    activation, bias = config.activation("mlp_hidden_act", default="relu2"), config.flag("mlp_bias", default=False)
    dense = plain_mlp(config.integer("intermediate_size", default=21504), activation, bias=bias)
    attention, own = grouped_attention(config, None, bias=False), Norms(input=norm)
    kinds = {
        "linear_attention": TransformerBlock(attention=None, mlp=None, mixer=_mixer(config, norm), mixer_norms=own),
        "full_attention": TransformerBlock(attention=attention, mlp=None, attention_norms=own),
        "mlp": TransformerBlock(attention=None, mlp=dense, mlp_norms=own),
    }
    if "moe" in types:
        routed, width = corrected_experts(config), config.integer("moe_shared_expert_intermediate_size", default=7688)
        unit, shared = (plain_mlp(m, activation, bias=False) for m in (routed.expert.width, width))
        experts = replace(routed, expert=unit, shared=shared)
        kinds["moe"] = TransformerBlock(attention=None, mlp=experts, mlp_norms=own)
    stack = stack_of([kinds[kind] for kind in types], final_norm=norm)
    return model_of(config, config.integer("hidden_size"), stack, head=head_of(config, tied=False))


EXPERTS = MLPLayout(
    packing="experts", up="up_proj", down="down_proj", router="mixer.gate", expert="mixer.experts.{}.",
    correction="mixer.gate.e_score_correction_bias", shared="mixer.shared_experts.",
)  # fmt: skip
PLACES = Places(
    blocks={
        "decoder": BlockLayout(
            "backbone.layers.{}.",
            split_attention("mixer.{}_proj", "mixer.o_proj"),
            MLPLayout(packing="split", up="mixer.up_proj", down="mixer.down_proj"),
            dict.fromkeys(("mixer.input", "attention.input", "mlp.input"), "norm"),
            experts=EXPERTS,
            mixer=ssd_layout("mixer"),
        )
    },
    final_norm={"decoder": "backbone.norm_f"},
    tokens="backbone.embeddings.weight",
    head="lm_head.weight",
    ignored=("mtp.",),
    base="backbone.",
)
NEMOTRON_H = ModelFamily("nemotron_h", describe, PLACES, DEFAULTS)
