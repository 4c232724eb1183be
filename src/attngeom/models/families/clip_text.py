"""The text towers of CLIP and SigLIP: tokens and positions, LayerNorm before each sublayer; their hidden states."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, StateReader, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import Norms, TransformerBlock, TransformerSpec


def _specify(config: Config, family: str, *, both_ways: bool, activation: str, eps: float) -> TransformerSpec:
    width, norm = config.integer("hidden_size"), config.layer_norm(default=eps)
    attention = plain_attention(config.integer("num_attention_heads"), width)
    block = TransformerBlock(
        attention=attention.bidirectional if both_ways else attention,
        mlp=plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default=activation)),
        attention_norms=Norms(input=norm),
        mlp_norms=Norms(input=norm),
    )
    layers, positions = config.layers("num_hidden_layers"), config.integer("max_position_embeddings")
    stack = stack_of([block] * layers, "encoder", final_norm=norm, positions=positions)
    return TransformerSpec(
        family=family, width=width, stacks=(stack,), vocabulary=config.integer("vocab_size"), head=None
    )


def specify_clip(config: Config) -> TransformerSpec:
    return _specify(config, "clip_text_model", both_ways=False, activation="quick_gelu", eps=1e-5)


def specify_siglip(config: Config) -> TransformerSpec:
    return _specify(config, "siglip_text_model", both_ways=True, activation="gelu_pytorch_tanh", eps=1e-6)


def locate(config: Config) -> Places:
    attention = split_attention("self_attn.{}_proj", "self_attn.out_proj")
    mlp = MLPLayout(packing="split", up="mlp.fc1", down="mlp.fc2")
    norms = {"attention.input": "layer_norm1", "mlp.input": "layer_norm2"}
    return Places(
        blocks={"encoder": BlockLayout("text_model.encoder.layers.{}.", attention, mlp, norms)},
        final_norm={"encoder": "text_model.final_layer_norm"},
        tokens="text_model.embeddings.token_embedding.weight",
        positions={"encoder": "text_model.embeddings.position_embedding.weight"},
        others=("text_model.head.", "text_projection."),
        ignored=("embeddings.position_ids",),
        base="text_model.",
        readers=(StateReader("text_model.head"), StateReader("head"), StateReader("text_projection")),
    )


CLIP = ModelFamily(("clip_text_model",), specify_clip, locate)
SIGLIP = ModelFamily(("siglip_text_model",), specify_siglip, locate)
