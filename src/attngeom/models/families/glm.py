"""GLM, GLM-4 and their mixtures of experts."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    ATTENTION,
    GATED,
    NORMED_ATTENTION,
    PRE_NORMS,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    rotary,
)
from attngeom.models.families.deepseek import EXPERTS, corrected_experts, dense_then_experts
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import Norms, QKNorm, TransformerBlock, TransformerSpec

# GLM-4 and GLM-4-0414: Llama with interleaved partial rotation and fused gates; the latter norms outputs as well.

FUSED = MLPLayout(packing="fused", up="mlp.gate_up_proj", down="mlp.down_proj")
OUTPUTS = {"attention.output": "post_self_attn_layernorm", "mlp.output": "post_mlp_layernorm"}


def _specify_glm(config: Config, family: str, *, norms_outputs: bool) -> TransformerSpec:
    config = config.with_default("head_dim", 128).with_default("num_key_value_heads", 2)
    bias = config.flag("attention_bias", default=True)
    norm = config.rms(default=1.5625e-7)
    norms = Norms(input=norm, output=norm if norms_outputs else None)
    attention = grouped_attention(config, rotary(config, "interleaved", share=0.5), bias=bias, output_bias=False)
    block = TransformerBlock(attention=attention, mlp=gated_mlp(config), attention_norms=norms, mlp_norms=norms)
    return decoder(config, family, block, norm)


def specify_glm(config: Config) -> TransformerSpec:
    return _specify_glm(config, "glm", norms_outputs=False)


def specify_glm4(config: Config) -> TransformerSpec:
    return _specify_glm(config, "glm4", norms_outputs=True)


def locate_glm(config: Config) -> Places:
    return llama_places(ATTENTION, FUSED)


def locate_glm4(config: Config) -> Places:
    return llama_places(ATTENTION, FUSED, {**PRE_NORMS, **OUTPUTS})


GLM = ModelFamily(("glm",), specify_glm, locate_glm)
GLM4 = ModelFamily(("glm4",), specify_glm4, locate_glm4)


# GLM-4.5 and dots.llm1: grouped heads with QK-norms, and the experts of DeepSeek-V3.


def specify_glm4_moe(config: Config) -> TransformerSpec:
    config = config.with_default("num_key_value_heads", 8).with_default("n_routed_experts", 128)
    for key, value in (
        ("n_group", 1),
        ("topk_group", 1),
        ("routed_scaling_factor", 1.0),
        ("moe_intermediate_size", 1408),
    ):
        config = config.with_default(key, value)
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config, share=0.5), bias=bias, output_bias=False)
    if config.flag("use_qk_norm", default=False):
        attention = replace(attention, qk_norm=QKNorm(scope="per_head", norm=config.rms(default=1e-5)))
    first = config.integer("first_k_dense_replace", default=1, least=0)
    return dense_then_experts(config, "glm4_moe", attention, corrected_experts(config), first, eps=1e-5)


def specify_dots1(config: Config) -> TransformerSpec:
    config.refuse_null("n_group", "topk_group", "n_routed_experts", "num_experts_per_tok", "n_shared_experts")
    for key, value in (("n_group", 1), ("topk_group", 1), ("routed_scaling_factor", 1.0), ("norm_topk_prob", False)):
        config = config.with_default(key, value)
    bias = config.flag("attention_bias", default=False)
    attention = replace(
        grouped_attention(config, rotary(config), bias=bias, output_bias=bias),
        qk_norm=QKNorm(scope="per_head", norm=config.rms(default=1e-6)),
    )
    layers, window = config.layers("num_hidden_layers"), config.optional_integer("sliding_window")
    last = config.integer("max_window_layers", default=62, least=0)
    default = ["sliding_attention" if window is not None and i >= last else "full_attention" for i in range(layers)]
    first = config.integer("first_k_dense_replace", default=0, least=0)
    windows = config.windows(layers, window, default)
    return dense_then_experts(config, "dots1", attention, corrected_experts(config), first, windows)


def locate_glm4_moe(config: Config) -> Places:
    normed = config.flag("use_qk_norm", default=False)
    return llama_places(NORMED_ATTENTION if normed else ATTENTION, GATED, experts=EXPERTS)


def locate_dots1(config: Config) -> Places:
    return llama_places(NORMED_ATTENTION, GATED, experts=EXPERTS)


GLM4_MOE = ModelFamily(("glm4_moe",), specify_glm4_moe, locate_glm4_moe)
DOTS1 = ModelFamily(("dots1",), specify_dots1, locate_dots1)
