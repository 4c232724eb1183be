"""Whisper: an audio encoder and a text decoder with cross-attention, LayerNorm, biases on all projections but keys."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import LogitHead, Norm, Norms, Stack, TransformerBlock, TransformerSpec

EPS = 1e-5


def _stack(config: Config, name: str, positions: int) -> Stack:
    decoder = name == "decoder"
    width = config.integer("d_model")
    attention = replace(plain_attention(config.integer(f"{name}_attention_heads"), width), key_bias=False)
    mlp = plain_mlp(config.integer(f"{name}_ffn_dim"), config.activation("activation_function", default="gelu"))
    norm = Norm(kind="layer", eps=EPS, bias=True)
    block = TransformerBlock(
        attention=attention if decoder else attention.bidirectional,
        mlp=mlp,
        attention_norms=Norms(input=norm),
        mlp_norms=Norms(input=norm),
        cross=attention.bidirectional if decoder else None,
        cross_norms=Norms(input=norm) if decoder else Norms(),
    )
    return stack_of(
        [block] * config.layers(f"{name}_layers"),
        "decoder" if decoder else "encoder",
        final_norm=norm,
        positions=positions,
        embeds_tokens=decoder,
    )


def specify(config: Config) -> TransformerSpec:
    config.refuse("is_encoder_decoder", True)
    # The scale of the embedding is in the configuration, and no model of transformers applies it.
    config.raw("scale_embedding")
    width = config.integer("d_model")
    encoder = _stack(config, "encoder", config.integer("max_source_positions", default=1500))
    decoder = _stack(config, "decoder", config.integer("max_target_positions", default=448))
    return TransformerSpec(
        family="whisper",
        width=width,
        stacks=(encoder, decoder),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
        other_parameters=width * (3 * config.integer("num_mel_bins", default=80) + 3 * width + 2),
    )


def _attention(module: str) -> AttentionLayout:
    return split_attention(f"{module}.{{}}_proj", f"{module}.out_proj")


def locate(config: Config) -> Places:
    norms = {"attention.input": "self_attn_layer_norm", "mlp.input": "final_layer_norm"}
    crossed = {**norms, "cross.input": "encoder_attn_layer_norm"}
    mlp = MLPLayout(packing="split", up="fc1", down="fc2")
    own, cross = _attention("self_attn"), _attention("encoder_attn")
    width, bins = config.integer("d_model"), config.integer("num_mel_bins", default=80)
    return Places(
        blocks={
            "encoder": BlockLayout("model.encoder.layers.{}.", own, mlp, norms),
            "decoder": BlockLayout("model.decoder.layers.{}.", own, mlp, crossed, cross),
        },
        final_norm={"encoder": "model.encoder.layer_norm", "decoder": "model.decoder.layer_norm"},
        tokens="model.decoder.embed_tokens.weight",
        head="proj_out.weight",
        positions={
            "encoder": "model.encoder.embed_positions.weight",
            "decoder": "model.decoder.embed_positions.weight",
        },
        others=("model.encoder.conv1.", "model.encoder.conv2."),
        base="model.",
        front="audio",
        front_shapes={
            "model.encoder.conv1.weight": (width, bins, 3),
            "model.encoder.conv1.bias": (width,),
            "model.encoder.conv2.weight": (width, width, 3),
            "model.encoder.conv2.bias": (width,),
        },
        written={"model.encoder.conv2.weight": 0, "model.encoder.conv2.bias": 0},
    )


FAMILY = ModelFamily(("whisper",), specify, locate)
