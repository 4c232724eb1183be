"""ViT and DeiT: image patches, tokens in front of them, learned positions, LayerNorm before each sublayer.

DeiT has a token for distillation beside that of the class.
"""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import (
    HEADS,
    ModelFamily,
    Places,
    StateReader,
    plain_attention,
    plain_mlp,
    stack_of,
)
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import Norms, TransformerBlock, TransformerSpec

ATTENTION = split_attention("attention.attention.{}", "attention.output.dense", ("query", "key", "value"))


def _sizes(config: Config) -> tuple[int, int, int]:
    """Width, channels, side of a patch."""
    width, channels = config.integer("hidden_size"), config.integer("num_channels", default=3)
    return width, channels, config.integer("patch_size", default=16)


TOKENS = {"vit": ("cls_token",), "deit": ("cls_token", "distillation_token")}
"""The tokens in front of the patches."""


def _row(model_type: str) -> ModelFamily:
    tokens = TOKENS[model_type]

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
            positions=(image // patch) ** 2 + len(tokens),
            embeds_tokens=False,
        )
        return TransformerSpec(
            family=model_type,
            width=width,
            stacks=(stack,),
            vocabulary=0,
            head=None,
            other_parameters=width * (channels * patch * patch + 1 + len(tokens)),
        )

    def locate(config: Config) -> Places:
        mlp = MLPLayout(packing="split", up="intermediate.dense", down="output.dense")
        norms = {"attention.input": "layernorm_before", "mlp.input": "layernorm_after"}
        width, channels, patch = _sizes(config)
        base = f"{model_type}."
        projection = f"{base}embeddings.patch_embeddings.projection"
        front = tuple(f"{base}embeddings.{token}" for token in tokens)
        return Places(
            blocks={"encoder": BlockLayout(f"{base}encoder.layer.{{}}.", ATTENTION, mlp, norms)},
            final_norm={"encoder": f"{base}layernorm"},
            positions={"encoder": f"{base}embeddings.position_embeddings"},
            others=(f"{base}embeddings.", f"{base}pooler.", "decoder."),
            added=(*front, f"{projection}.bias"),
            base=base,
            front="patches",
            front_shapes={
                **dict.fromkeys(front, (1, 1, width)),
                f"{projection}.weight": (width, channels, patch, patch),
                f"{projection}.bias": (width,),
            },
            written={**dict.fromkeys(front, -1), f"{projection}.weight": 0, f"{projection}.bias": 0},
            readers=(*HEADS, StateReader("cls_classifier"), StateReader("distillation_classifier")),
        )

    return ModelFamily((model_type,), specify, locate)


VIT = _row("vit")
DEIT = _row("deit")
