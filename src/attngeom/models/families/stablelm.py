"""StableLM: Llama with LayerNorms and partly rotated heads; attention and MLP one after the other or in parallel."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.decoders import PRE_NORMS, decoder, gated_mlp, grouped_attention, llama_places, rotary
from attngeom.models.specification import Norms, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    config.refuse("qk_layernorm", False)
    bias, parallel = config.flag("use_qkv_bias", default=False), config.flag("use_parallel_residual", default=False)
    norm = config.layer_norm(default=1e-5)
    block = TransformerBlock(
        attention=grouped_attention(config, rotary(config, share=0.25), bias=bias, output_bias=False),
        mlp=gated_mlp(config),
        attention_norms=Norms(input=norm),
        mlp_norms=Norms() if parallel else Norms(input=norm),
        parallel=parallel,
        shared_norm=parallel,
    )
    return decoder(config, "stablelm", block, norm)


def locate(config: Config) -> Places:
    parallel = config.flag("use_parallel_residual", default=False)
    return llama_places(norms={"attention.input": "input_layernorm"} if parallel else PRE_NORMS)


FAMILY = ModelFamily(("stablelm",), specify, locate)
