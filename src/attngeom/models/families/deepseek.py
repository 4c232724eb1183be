"""DeepSeek-V2 and V3: multi-head latent attention, dense layers first, then routed experts with a shared one."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config, as_number, yarn_scale
from attngeom.models.families import decoders
from attngeom.models.families.contract import ModelFamily, block_of
from attngeom.models.families.decoders import decoder, gated_mlp, llama_places
from attngeom.models.layout import AttentionLayout
from attngeom.models.specification import MLP, Experts, GroupedAttention, Latent, Layout, Norm, TransformerSpec

ATTENTION = AttentionLayout(
    packing="latent",
    query="self_attn.q_proj",
    query_down="self_attn.q_a_proj",
    query_norm="self_attn.q_a_layernorm",
    fused="self_attn.q_b_proj",
    key_down="self_attn.kv_a_proj_with_mqa",
    key_norm="self_attn.kv_a_layernorm",
    value="self_attn.kv_b_proj",
    output="self_attn.o_proj",
)
EXPERTS = replace(decoders.EXPERTS, correction="mlp.gate.e_score_correction_bias", shared="mlp.shared_experts.")
LATENT_NORM = Norm(kind="rms", eps=1e-6)


def _attention(config: Config, layout: Layout) -> GroupedAttention:
    heads, plain, rotated = (
        config.integer(key) for key in ("num_attention_heads", "qk_nope_head_dim", "qk_rope_head_dim")
    )
    config.refuse("head_dim", rotated)
    if config.integer("num_key_value_heads", default=heads) != heads:
        raise InputError("latent attention with fewer key than query heads given; transformers cannot run it")
    query_rank = config.optional_integer("q_lora_rank")
    bias = config.flag("attention_bias", default=False)
    scale = (plain + rotated) ** -0.5
    rope = config.raw("rope_parameters", "rope_scaling") or {}
    if isinstance(rope, dict) and (rope.get("rope_type") or rope.get("type") or "default") != "default":
        every = as_number(rope.get("mscale_all_dim") or 0, "mscale_all_dim")
        if every:
            scale *= yarn_scale(as_number(rope.get("factor", 1.0), "factor"), every) ** 2
    return GroupedAttention(
        heads=heads, groups=heads, head_dim=plain + rotated, value_dim=config.integer("v_head_dim"), scale=scale,
        rotary=config.rotary(rotated, layout), output_bias=bias,
        latent=Latent(
            query_rank=query_rank, key_rank=config.integer("kv_lora_rank"),
            query_norm=None if query_rank is None else LATENT_NORM, key_norm=LATENT_NORM,
            bias=bias,
        ),
    )  # fmt: skip


def dense_then_experts(
    config: Config, attention: GroupedAttention, experts: Experts | None, first: int,
    windows: list[int | None] | None = None, eps: float = 1e-6,
) -> TransformerSpec:  # fmt: skip
    """A decoder whose ``first`` layers have a dense MLP and whose others have experts."""
    norm = config.rms(default=eps)
    dense = gated_mlp(config)
    layers = range(config.layers("num_hidden_layers"))
    mlps = [experts if experts is not None and layer >= first else dense for layer in layers]
    return decoder(config, block_of(attention, dense, norm), norm, mlps=mlps, windows=windows)


def _expert(config: Config, count: int = 1) -> MLP:
    width = config.integer("moe_intermediate_size") * count
    return MLP(width=width, activation=config.activation("hidden_act", default="silu"), gated=True)


def describe_v2(config: Config) -> TransformerSpec:
    config.refuse("mlp_bias", False)
    config.refuse("moe_layer_freq", 1)
    config.refuse("norm_topk_prob", False)
    plain, rotated = config.integer("qk_nope_head_dim"), config.integer("qk_rope_head_dim")
    if (plain + rotated) % 2 or (config.integer("kv_lora_rank") + rotated) % 2:
        raise InputError(
            f"qk_nope_head_dim {plain}, qk_rope_head_dim {rotated} and an odd sum given; transformers cannot run it"
        )
    method = config.raw("topk_method") or "greedy"
    config.refuse("topk_method", "greedy", "group_limited_greedy")
    grouped = method == "group_limited_greedy"
    if grouped:
        config.refuse_null("n_group", "topk_group")
    count = config.optional_integer("n_routed_experts", "num_experts")
    experts = None
    if count is not None:
        experts = Experts(
            expert=_expert(config),
            count=count,
            active=config.integer("num_experts_per_tok"),
            router="softmax",
            shared=_expert(config, config.integer("n_shared_experts", default=2)),
            expert_groups=config.integer("n_group", default=1) if grouped else 1,
            active_groups=config.integer("topk_group", default=1) if grouped else 1,
            normalised=False,
            factor=config.number("routed_scaling_factor", default=1.0),
        )
    first = config.integer("first_k_dense_replace", default=0, least=0)
    return dense_then_experts(config, _attention(config, "interleaved"), experts, first)


def corrected_experts(config: Config) -> Experts:
    """Experts that are chosen by sigmoid scores with a correction, within groups, and a shared one."""
    config.refuse("scoring_func", "sigmoid")
    return Experts(
        expert=_expert(config),
        count=config.integer("n_routed_experts", "num_local_experts", default=256),
        active=config.integer("num_experts_per_tok", default=8),
        router="sigmoid",
        correction=True,
        shared=_expert(config, config.integer("n_shared_experts", default=1)),
        expert_groups=config.integer("n_group", default=8),
        active_groups=config.integer("topk_group", default=4),
        normalised=config.flag("norm_topk_prob", default=True),
        factor=config.number("routed_scaling_factor", default=2.5),
    )


def describe_v3(config: Config) -> TransformerSpec:
    config.refuse("moe_layer_freq", 1)
    config.refuse_null("n_group", "topk_group", "head_dim")
    experts = corrected_experts(config)
    layout: Layout = "interleaved" if config.flag("rope_interleave", default=True) else "half"
    first = config.integer("first_k_dense_replace", default=3, least=0)
    return dense_then_experts(config, _attention(config, layout), experts, first)


PLACES = llama_places(ATTENTION, experts=EXPERTS)
V2 = ModelFamily("deepseek_v2", describe_v2, PLACES)
V3 = ModelFamily("deepseek_v3", describe_v3, PLACES)
