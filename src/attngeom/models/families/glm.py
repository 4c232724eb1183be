"""GLM, GLM-4 and their mixtures of experts."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    ATTENTION,
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
DEFAULTS = {"head_dim": 128, "num_key_value_heads": 2}


def _glm(config: Config, *, norms_outputs: bool) -> TransformerSpec:
    bias = config.flag("attention_bias", default=True)
    norm = config.rms(default=1.5625e-7)
    norms = Norms(input=norm, output=norm if norms_outputs else None)
    attention = grouped_attention(config, rotary(config, "interleaved", share=0.5), bias=bias, output_bias=False)
    block = TransformerBlock(attention=attention, mlp=gated_mlp(config), attention_norms=norms, mlp_norms=norms)
    return decoder(config, block, norm)


def describe_glm(config: Config) -> TransformerSpec:
    return _glm(config, norms_outputs=False)


def describe_glm4(config: Config) -> TransformerSpec:
    return _glm(config, norms_outputs=True)


GLM = ModelFamily("glm", describe_glm, llama_places(mlp=FUSED), DEFAULTS)
GLM4 = ModelFamily("glm4", describe_glm4, llama_places(mlp=FUSED, norms={**PRE_NORMS, **OUTPUTS}), DEFAULTS)


# GLM-4.5 and dots.llm1: grouped heads with QK-norms, and the experts of DeepSeek-V3.

UNGROUPED = {"n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0}


def describe_glm4_moe(config: Config) -> TransformerSpec:
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, rotary(config, share=0.5), bias=bias, output_bias=False)
    if config.flag("use_qk_norm", default=False):
        attention = replace(attention, qk_norm=QKNorm(scope="per_head", norm=config.rms(default=1e-5)))
    first = config.integer("first_k_dense_replace", default=1, least=0)
    return dense_then_experts(config, attention, corrected_experts(config), first, eps=1e-5)


def describe_dots1(config: Config) -> TransformerSpec:
    config.refuse_null("n_group", "topk_group", "n_routed_experts", "num_experts_per_tok", "n_shared_experts")
    config = config.with_defaults({**UNGROUPED, "norm_topk_prob": False})
    attention = grouped_attention(config, rotary(config), bias=config.flag("attention_bias", default=False))
    attention = replace(attention, qk_norm=QKNorm(scope="per_head", norm=config.rms(default=1e-6)))
    layers, window = config.layers("num_hidden_layers"), config.optional_integer("sliding_window")
    last = config.integer("max_window_layers", default=62, least=0)
    default = ["sliding_attention" if window is not None and i >= last else "full_attention" for i in range(layers)]
    first = config.integer("first_k_dense_replace", default=0, least=0)
    windows = config.windows(window, default)
    return dense_then_experts(config, attention, corrected_experts(config), first, windows)


def places_glm4_moe(config: Config) -> Places:
    normed = config.flag("use_qk_norm", default=False)
    return llama_places(NORMED_ATTENTION if normed else ATTENTION, experts=EXPERTS)


GLM4_MOE = ModelFamily(
    "glm4_moe", describe_glm4_moe, places_glm4_moe,
    {"num_key_value_heads": 8, "n_routed_experts": 128, **UNGROUPED, "moe_intermediate_size": 1408},
)  # fmt: skip
DOTS1 = ModelFamily("dots1", describe_dots1, llama_places(NORMED_ATTENTION, experts=EXPERTS))
