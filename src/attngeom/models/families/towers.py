"""ViT, DeiT, DINOv2, BEiT, the towers of CLIP and SigLIP: LayerNorm before each sublayer; hidden states.

Images are patches with tokens in front of them; DeiT has a token for distillation beside that of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from attngeom.errors import InputError
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
from attngeom.models.positions import WindowTable
from attngeom.models.specification import MLP, LogitHead, TransformerBlock, TransformerSpec

ATTENTION = split_attention("attention.attention.{}", "attention.output.dense", ("query", "key", "value"))
MLP_LAYOUT = MLPLayout(packing="split", up="intermediate.dense", down="output.dense")
NORMS = {"attention.input": "layernorm_before", "mlp.input": "layernorm_after"}


def _image(
    model_type: str,
    describe: Callable[[Config, int], TransformerBlock],
    layout: Callable[[Config], BlockLayout],
    base: str,
    *,
    tokens: tuple[str, ...] = (),
    token_shape: tuple[int, ...] = (1, 1),
    patches: str = "patch_embedding",
    patch: int = 16,
    bias: bool = True,
    positions: str = "position_embedding.weight",
    final_norm: str = "",
    embedding_norm: str = "",
    others: tuple[str, ...] = (),
    readers: tuple[StateReader, ...] = (),
    pooling: str = "",
) -> ModelFamily:
    """Patches of images with tokens in front; ``patch`` is the side of a patch where the configuration has none."""
    front = tuple(f"{base}embeddings.{token}" for token in tokens)

    def shapes(config: Config) -> dict[str, tuple[int, ...]]:
        width, side = config.integer("hidden_size"), config.integer("patch_size", default=patch)
        weight = {f"{base}embeddings.{patches}.weight": (width, config.integer("num_channels", default=3), side, side)}
        own = dict.fromkeys(front, (*token_shape, width)) | weight
        return {**own, f"{base}embeddings.{patches}.bias": (width,)} if bias else own

    def specify(config: Config) -> TransformerSpec:
        width, side = config.integer("hidden_size"), config.integer("patch_size", default=patch)
        block = describe(config, width)
        norm = block.attention_norms.input
        stack = stack_of(
            [block] * config.layers("num_hidden_layers"),
            "encoder",
            final_norm=norm if final_norm else None,
            embedding_norm=norm if embedding_norm else None,
            positions=((config.integer("image_size", default=224) // side) ** 2 + len(tokens)) * bool(positions),
            embeds_tokens=False,
        )
        count = sum(map(prod, shapes(config).values()))
        return TransformerSpec(width=width, stacks=(stack,), vocabulary=0, head=None, other_parameters=count)

    def places(config: Config) -> Places:
        front_shapes = shapes(config)
        return Places(
            blocks={"encoder": layout(config)},
            final_norm={"encoder": base + final_norm} if final_norm else {},
            positions={"encoder": f"{base}embeddings.{positions}"} if positions else {},
            embedding_norm=base + embedding_norm,
            others=(f"{base}embeddings.", *others),
            added=front,
            patches=f"{base}embeddings.{patches}",
            base=base,
            front="patches",
            front_shapes=front_shapes,
            written={name: -1 if name in front else 0 for name in front_shapes},
            readers=readers,
            pooling=pooling,
        )

    return ModelFamily(model_type, specify, places)


def _block(config: Config, width: int, eps: float, mlp: MLP, **more: Any) -> TransformerBlock:
    bias = config.flag("qkv_bias", default=True)
    attention = plain_attention(config.integer("num_attention_heads"), width).bidirectional
    own = replace(attention, query_bias=bias, key_bias=bias, value_bias=bias)
    return block_of(own, mlp, config.layer_norm(default=eps), **more)


def _plain(eps: float, activation: str) -> Callable[[Config, int], TransformerBlock]:
    """LayerNorms, biases everywhere, an MLP without gates."""

    def describe(config: Config, width: int) -> TransformerBlock:
        name = config.activation("hidden_act", default=activation)
        return _block(config, width, eps, plain_mlp(config.integer("intermediate_size"), name))

    return describe


def _vit(model_type: str, *tokens: str) -> ModelFamily:
    base = f"{model_type}."
    return _image(
        model_type, _plain(1e-12, "gelu"),
        lambda config: BlockLayout(f"{base}encoder.layer.{{}}.", ATTENTION, MLP_LAYOUT, NORMS), base,
        tokens=tokens, patches="patch_embeddings.projection", positions="position_embeddings", final_norm="layernorm",
        others=(f"{base}pooler.", "decoder."),
        readers=(*HEADS, StateReader("cls_classifier"), StateReader("distillation_classifier")),
    )  # fmt: skip


VIT = _vit("vit", "cls_token")
DEIT = _vit("deit", "cls_token", "distillation_token")


# DINOv2: what sublayers write is scaled coordinate by coordinate; the giant has gated units.


def _dinov2_block(config: Config, width: int) -> TransformerBlock:
    hidden = int(width * config.number("mlp_ratio", default=4))
    if config.flag("use_swiglu_ffn", default=False):
        units = MLP(width=-(-int(hidden * 2 / 3) // 8) * 8, activation="silu", gated=True, up_bias=True, down_bias=True)
    else:
        units = plain_mlp(hidden, config.activation("hidden_act", default="gelu"))
    return _block(config, width, 1e-6, units, scales_outputs=True)


def _dinov2_layout(config: Config) -> BlockLayout:
    plain = MLPLayout(packing="split", up="mlp.fc1", down="mlp.fc2")
    gated = MLPLayout(packing="fused", up="mlp.weights_in", down="mlp.weights_out")
    return BlockLayout(
        "dinov2.encoder.layer.{}.", ATTENTION, gated if config.flag("use_swiglu_ffn", default=False) else plain,
        {"attention.input": "norm1", "mlp.input": "norm2"},
        scales={"attention": "layer_scale1.lambda1", "mlp": "layer_scale2.lambda1"},
    )  # fmt: skip


DINOV2 = _image(
    "dinov2", _dinov2_block, _dinov2_layout, "dinov2.",
    tokens=("cls_token",), patches="patch_embeddings.projection", patch=14, positions="position_embeddings",
    final_norm="layernorm", others=("classifier.",),
)  # fmt: skip


# BEiT: scaled outputs, keys without bias, and positions in a table of every layer, in one for all tokens, or nowhere.


def _has_scales(config: Config) -> bool:
    return config.number("layer_scale_init_value", default=0.1) > 0


def _beit_block(config: Config, width: int) -> TransformerBlock:
    config.refuse("use_shared_relative_position_bias", False)
    units = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
    block = _block(config, width, 1e-12, units, scales_outputs=_has_scales(config))
    side = config.integer("image_size", default=224) // config.integer("patch_size", default=16)
    given = config.flag("use_relative_position_bias", default=False)
    assert block.attention is not None
    attention = replace(block.attention, key_bias=False, relative=WindowTable.of(side) if given else None)
    return replace(block, attention=attention)


def _beit_layout(config: Config) -> BlockLayout:
    table = "attention.attention.relative_position_bias.relative_position_bias_table"
    return BlockLayout(
        "beit.encoder.layer.{}.", replace(ATTENTION, extras={"relative": table}), MLP_LAYOUT, NORMS,
        scales={"attention": "lambda_1", "mlp": "lambda_2"},
    )  # fmt: skip


def _beit(config: Config) -> ModelFamily:
    pooled = config.flag("use_mean_pooling", default=True)
    if not pooled and "BeitForMaskedImageModeling" in str(config.raw("architectures")):
        raise InputError(
            "BeitForMaskedImageModeling with use_mean_pooling false given; transformers reads its two last norms in "
            "place of one another, save its BeitModel"
        )
    return _image(
        "beit", _beit_block, _beit_layout, "beit.",
        tokens=("cls_token",), patches="patch_embeddings.projection",
        positions="position_embeddings" if config.flag("use_absolute_position_embeddings", default=False) else "",
        final_norm="" if pooled else "layernorm",
        others=("beit.pooler.", "classifier.", "layernorm.", "lm_head."),
    )  # fmt: skip


BEIT = ModelFamily("beit", lambda config: _beit(config).specify(config), lambda config: _beit(config).locate(config))


# The towers of CLIP and SigLIP: tokens of images, and of texts.

MAPS = (
    split_attention("self_attn.{}_proj", "self_attn.out_proj"),
    MLPLayout(packing="split", up="mlp.fc1", down="mlp.fc2"),
    {"attention.input": "layer_norm1", "mlp.input": "layer_norm2"},
)


def _image_layout(config: Config) -> BlockLayout:
    return BlockLayout("vision_model.encoder.layers.{}.", *MAPS)


CLIP_VISION = _image(
    "clip_vision_model", _plain(1e-5, "quick_gelu"), _image_layout, "vision_model.",
    tokens=("class_embedding",), token_shape=(), patch=32, bias=False, embedding_norm="pre_layrnorm",
    others=("vision_model.post_layernorm.", "visual_projection."),
)  # fmt: skip
SIGLIP_VISION = _image(
    "siglip_vision_model", _plain(1e-6, "gelu_pytorch_tanh"), _image_layout, "vision_model.",
    final_norm="post_layernorm", pooling="vision_model.head.",
)  # fmt: skip


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


TEXT_PLACES = Places(
    blocks={"encoder": BlockLayout("text_model.encoder.layers.{}.", *MAPS)},
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


# Both towers in one file, and what compares them: matrices behind the last norms (CLIP), or heads of other kinds.


def _projected(tower: ModelFamily) -> ModelFamily:
    """A tower of images with the matrix that reads its final hidden states."""

    def describe(config: Config) -> TransformerSpec:
        head = LogitHead(tied=False, outputs=config.integer("projection_dim", default=512))
        return replace(tower.describe(config), head=head)

    def places(config: Config) -> Places:
        return replace(tower.locate(config), head="visual_projection.weight")

    return ModelFamily(tower.model_type, describe, places)


PAIRS: Mapping[str, Mapping[str, ModelFamily]] = {
    "clip": {
        "image": _projected(
            _image(
                "clip_vision_model", _plain(1e-5, "quick_gelu"), _image_layout, "vision_model.",
                tokens=("class_embedding",), token_shape=(), patch=32, bias=False,
                final_norm="post_layernorm", embedding_norm="pre_layrnorm",
            )
        ),
        "text": CLIP,
    },
    "siglip": {"image": SIGLIP_VISION, "text": SIGLIP},
}  # fmt: skip
"""The families of the towers of model types that have two, by what they read."""
