"""ViT: image patches, a class token, learned positions, LayerNorm before each sublayer, attention both ways."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import Norms, TransformerBlock, TransformerSpec

ATTENTION = split_attention("attention.attention.{}", "attention.output.dense", ("query", "key", "value"))


def _sizes(config: Config) -> tuple[int, int, int]:
    """Width, channels, side of a patch."""
    width, channels = config.integer("hidden_size"), config.integer("num_channels", default=3)
    return width, channels, config.integer("patch_size", default=16)


def specify(config: Config) -> TransformerSpec:
    width, channels, patch = _sizes(config)
    image = config.integer("image_size", default=224)
    bias = config.flag("qkv_bias", default=True)
    attention = plain_attention(config.integer("num_attention_heads"), width).bidirectional
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
    norm = config.layer_norm(default=1e-12)
    block = TransformerBlock(
        attention=replace(attention, query_bias=bias, key_bias=bias, value_bias=bias),
        mlp=mlp,
        attention_norms=Norms(input=norm),
        mlp_norms=Norms(input=norm),
    )
    stack = stack_of(
        [block] * config.layers("num_hidden_layers"),
        "encoder",
        final_norm=norm,
        positions=(image // patch) ** 2 + 1,
        embeds_tokens=False,
    )
    return TransformerSpec(
        family="vit",
        width=width,
        stacks=(stack,),
        vocabulary=0,
        head=None,
        other_parameters=width * (channels * patch * patch + 2),
    )


def locate(config: Config) -> Places:
    mlp = MLPLayout(packing="split", up="intermediate.dense", down="output.dense")
    norms = {"attention.input": "layernorm_before", "mlp.input": "layernorm_after"}
    width, channels, patch = _sizes(config)
    projection = "vit.embeddings.patch_embeddings.projection"
    return Places(
        blocks={"encoder": BlockLayout("vit.encoder.layer.{}.", ATTENTION, mlp, norms)},
        final_norm={"encoder": "vit.layernorm"},
        positions={"encoder": "vit.embeddings.position_embeddings"},
        others=("vit.embeddings.", "vit.pooler.", "decoder."),
        added=("vit.embeddings.cls_token", f"{projection}.bias"),
        base="vit.",
        front="patches",
        front_shapes={
            "vit.embeddings.cls_token": (1, 1, width),
            f"{projection}.weight": (width, channels, patch, patch),
            f"{projection}.bias": (width,),
        },
        written={"vit.embeddings.cls_token": -1, f"{projection}.weight": 0, f"{projection}.bias": 0},
    )


FAMILY = ModelFamily(("vit",), specify, locate)
