"""ViT, DeiT, and the text towers of CLIP and SigLIP: LayerNorm before each sublayer, learned positions; hidden states.

Images are patches with tokens in front of them; DeiT has a token for distillation beside that of the class.
"""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import (
    HEADS,
    ModelFamily,
    Places,
    StateReader,
    block_of,
    model_of,
    plain_attention,
    plain_mlp,
    stack_of,
)
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import TransformerSpec

ATTENTION = split_attention("attention.attention.{}", "attention.output.dense", ("query", "key", "value"))
MLP_LAYOUT = MLPLayout(packing="split", up="intermediate.dense", down="output.dense")
NORMS = {"attention.input": "layernorm_before", "mlp.input": "layernorm_after"}


def _sizes(config: Config) -> tuple[int, int, int]:
    """Width, channels, side of a patch."""
    width, channels = config.integer("hidden_size"), config.integer("num_channels", default=3)
    return width, channels, config.integer("patch_size", default=16)


def _image(model_type: str, *tokens: str) -> ModelFamily:
    """Patches of images with tokens in front."""

    def describe(config: Config) -> TransformerSpec:
        width, channels, patch = _sizes(config)
        image = config.integer("image_size", default=224)
        bias = config.flag("qkv_bias", default=True)
        attention = plain_attention(config.integer("num_attention_heads"), width).bidirectional
        mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
        norm = config.layer_norm(default=1e-12)
        block = block_of(replace(attention, query_bias=bias, key_bias=bias, value_bias=bias), mlp, norm)
        stack = stack_of(
            [block] * config.layers("num_hidden_layers"),
            "encoder",
            final_norm=norm,
            positions=(image // patch) ** 2 + len(tokens),
            embeds_tokens=False,
        )
        front = width * (channels * patch * patch + 1 + len(tokens))
        return TransformerSpec(width=width, stacks=(stack,), vocabulary=0, head=None, other_parameters=front)

    def places(config: Config) -> Places:
        width, channels, patch = _sizes(config)
        base = f"{model_type}."
        projection = f"{base}embeddings.patch_embeddings.projection"
        front = tuple(f"{base}embeddings.{token}" for token in tokens)
        return Places(
            blocks={"encoder": BlockLayout(f"{base}encoder.layer.{{}}.", ATTENTION, MLP_LAYOUT, NORMS)},
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

    return ModelFamily(model_type, describe, places)


VIT = _image("vit", "cls_token")
DEIT = _image("deit", "cls_token", "distillation_token")


# Text towers


def _text(config: Config, *, both_ways: bool, activation: str, eps: float) -> TransformerSpec:
    width, norm = config.integer("hidden_size"), config.layer_norm(default=eps)
    attention = plain_attention(config.integer("num_attention_heads"), width)
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default=activation))
    block = block_of(attention.bidirectional if both_ways else attention, mlp, norm)
    layers, positions = config.layers("num_hidden_layers"), config.integer("max_position_embeddings")
    return model_of(
        config, width, stack_of([block] * layers, "encoder", final_norm=norm, positions=positions), head=None
    )  # fmt: skip


def describe_clip(config: Config) -> TransformerSpec:
    return _text(config, both_ways=False, activation="quick_gelu", eps=1e-5)


def describe_siglip(config: Config) -> TransformerSpec:
    return _text(config, both_ways=True, activation="gelu_pytorch_tanh", eps=1e-6)


TEXT_BLOCK = BlockLayout(
    "text_model.encoder.layers.{}.",
    split_attention("self_attn.{}_proj", "self_attn.out_proj"),
    MLPLayout(packing="split", up="mlp.fc1", down="mlp.fc2"),
    {"attention.input": "layer_norm1", "mlp.input": "layer_norm2"},
)
TEXT_PLACES = Places(
    blocks={"encoder": TEXT_BLOCK},
    final_norm={"encoder": "text_model.final_layer_norm"},
    tokens="text_model.embeddings.token_embedding.weight",
    positions={"encoder": "text_model.embeddings.position_embedding.weight"},
    others=("text_model.head.", "text_projection."),
    ignored=("embeddings.position_ids",),
    base="text_model.",
    readers=(StateReader("text_model.head"), StateReader("head"), StateReader("text_projection")),
)
CLIP = ModelFamily("clip_text_model", describe_clip, TEXT_PLACES)
SIGLIP = ModelFamily("siglip_text_model", describe_siglip, TEXT_PLACES)
