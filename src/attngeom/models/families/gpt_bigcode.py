"""GPTBigCode, StarCoder: GPT-2 whose heads share one key and one value, with plain projections."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families import gpt2
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.specification import TransformerSpec


def specify(config: Config) -> TransformerSpec:
    shared = config.flag("multi_query", default=True)
    spec = gpt2.specify(config.with_default("activation_function", "gelu_pytorch_tanh"))
    if shared:
        kinds = tuple(
            replace(block, attention=replace(block.attention, groups=1))
            for block in spec.stack.kinds
            if block.attention is not None
        )
        spec = replace(spec, stacks=(replace(spec.stack, kinds=kinds),))
    return replace(spec, family="gpt_bigcode")


def locate(config: Config) -> Places:
    shared = config.flag("multi_query", default=True)
    attention = AttentionLayout(
        packing="stacked" if shared else "grouped", fused="attn.c_attn", output="attn.c_proj"
    )  # fmt: skip
    mlp = MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj")
    norms = {"attention.input": "ln_1", "mlp.input": "ln_2"}
    places = gpt2.locate(config)
    return replace(places, blocks={"decoder": BlockLayout("transformer.h.{}.", attention, mlp, norms)})


FAMILY = ModelFamily(("gpt_bigcode",), specify, locate)
