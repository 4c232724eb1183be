"""GLM-4 and GLM-4-0414: Llama with interleaved partial rotation and fused gates; the latter norms outputs as well."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import (
    ATTENTION,
    PRE_NORMS,
    decoder,
    gated_mlp,
    grouped_attention,
    llama_places,
    rotary,
)
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import Norms, TransformerBlock, TransformerSpec

FUSED = MLPLayout(packing="fused", up="mlp.gate_up_proj", down="mlp.down_proj")
OUTPUTS = {"attention.output": "post_self_attn_layernorm", "mlp.output": "post_mlp_layernorm"}


def _specify(config: Config, family: str, *, norms_outputs: bool) -> TransformerSpec:
    config = config.with_default("head_dim", 128).with_default("num_key_value_heads", 2)
    bias = config.flag("attention_bias", default=True)
    norm = config.rms(default=1.5625e-7)
    norms = Norms(input=norm, output=norm if norms_outputs else None)
    attention = grouped_attention(config, rotary(config, "interleaved", share=0.5), bias=bias, output_bias=False)
    block = TransformerBlock(attention=attention, mlp=gated_mlp(config), attention_norms=norms, mlp_norms=norms)
    return decoder(config, family, block, norm)


def specify_glm(config: Config) -> TransformerSpec:
    return _specify(config, "glm", norms_outputs=False)


def specify_glm4(config: Config) -> TransformerSpec:
    return _specify(config, "glm4", norms_outputs=True)


def locate_glm(config: Config) -> Places:
    return llama_places(ATTENTION, FUSED)


def locate_glm4(config: Config) -> Places:
    return llama_places(ATTENTION, FUSED, {**PRE_NORMS, **OUTPUTS})


GLM = ModelFamily(("glm",), specify_glm, locate_glm)
GLM4 = ModelFamily(("glm4",), specify_glm4, locate_glm4)
