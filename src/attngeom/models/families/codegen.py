"""CodeGen: GPT-J with q, v, k fused in four partitions, as they lay on four devices."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families import gptj
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.layout.attention import PARTITIONS
from attngeom.models.specification import TransformerSpec


def specify(config: Config) -> TransformerSpec:
    heads = config.integer("n_head", "num_attention_heads")
    if heads % PARTITIONS:
        raise InputError(f"config n_head = {heads} given; CodeGen needs a multiple of {PARTITIONS}")
    return replace(gptj.specify(config.with_default("rotary_dim", 64)), family="codegen")


def locate(config: Config) -> Places:
    attention = AttentionLayout(packing="partitioned", fused="attn.qkv_proj", output="attn.out_proj")
    mlp = MLPLayout(packing="split", up="mlp.fc_in", down="mlp.fc_out")
    block = BlockLayout("transformer.h.{}.", attention, mlp, {"attention.input": "ln_1"})
    places = gptj.locate(config)
    return replace(places, blocks={"decoder": block}, ignored=(*places.ignored, ".attn.causal_mask"))


FAMILY = ModelFamily(("codegen",), specify, locate)
