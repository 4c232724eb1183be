"""BART and encoder-decoders of its design: LayerNorms of the sums, or before the sublayers and behind each stack.

The bias of their logits is stored and not trained. The positions of Marian are sines, and no weights. Whisper encodes
audio, and has biases on all projections but keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import (
    ModelFamily,
    Places,
    block_of,
    head_of,
    model_of,
    plain_attention,
    plain_mlp,
    stack_of,
)
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import GroupedAttention, Norm, Norms, Stack, TransformerBlock, TransformerSpec

NORM = Norm(kind="layer", eps=1e-5, bias=True)
MLP_LAYOUT = MLPLayout(packing="split", up="fc1", down="fc2")
NORMS = {"attention": "self_attn_layer_norm", "cross": "encoder_attn_layer_norm", "mlp": "final_layer_norm"}
STACKS = ("encoder", "decoder")


def _block(config: Config, name: str, attention: GroupedAttention, activation: str, after: bool) -> TransformerBlock:
    """A layer of the encoder, or one of the decoder, which attends to the encoder as well."""
    own = attention if name == "decoder" else attention.bidirectional
    mlp = plain_mlp(
        config.integer(f"{name}_ffn_dim"), config.activation("activation_function", default=activation)
    )  # fmt: skip
    block = block_of(own, mlp, NORM, after=after)
    if name == "encoder":
        return block
    return replace(block, cross=attention.bidirectional, cross_norms=Norms(stream=NORM) if after else Norms(input=NORM))


def _attention(config: Config, name: str) -> GroupedAttention:
    return plain_attention(config.integer(f"{name}_attention_heads"), config.integer("d_model"))


def _layouts(place: str) -> dict[str, BlockLayout]:
    """The names of the layers of both stacks; ``place``: where sublayers are normalised."""
    own, cross = (split_attention(f"{name}.{{}}_proj", f"{name}.out_proj") for name in ("self_attn", "encoder_attn"))
    norms = {f"{sublayer}.{place}": name for sublayer, name in NORMS.items()}
    return {
        "encoder": BlockLayout("model.encoder.layers.{}.", own, MLP_LAYOUT, norms),
        "decoder": BlockLayout("model.decoder.layers.{}.", own, MLP_LAYOUT, norms, cross),
    }


@dataclass(frozen=True)
class _Variant:
    """``offset`` rows of the positions are never read; ``embeds_normed``: the embedded tokens are normalised.

    ``post``: norms are those of the sums; ``sines``: positions are fixed.
    """

    model_type: str
    offset: int = 0
    embeds_normed: bool = False
    post: bool = False
    sines: bool = False

    def stack(self, config: Config, name: str) -> Stack:
        block = _block(config, name, _attention(config, name), "gelu", self.post)
        return stack_of(
            [block] * config.layers(f"{name}_layers"),
            "decoder" if name == "decoder" else "encoder",
            final_norm=None if self.post else NORM,
            positions=0 if self.sines else config.integer("max_position_embeddings") + self.offset,
            sines=config.integer("max_position_embeddings") if self.sines else 0,
            unread_positions=self.offset,
            embedding_norm=NORM if self.embeds_normed else None,
        )

    def describe(self, config: Config) -> TransformerSpec:
        config.refuse("is_encoder_decoder", True)
        config.refuse("share_encoder_decoder_embeddings", True)
        width = config.integer("d_model")
        head = head_of(config, tied=True, bias=True, trains_bias=False)
        scale = width**0.5 if config.flag("scale_embedding", default=False) else 1.0
        return model_of(
            config, width, *(self.stack(config, name) for name in STACKS), head=head, embedding_scale=scale
        )  # fmt: skip

    @property
    def family(self) -> ModelFamily:
        positions = {name: f"model.{name}.embed_positions.weight" for name in STACKS}
        places = Places(
            blocks=_layouts("stream" if self.post else "input"),
            final_norm={} if self.post else {name: f"model.{name}.layer_norm" for name in STACKS},
            tokens="model.shared.weight",
            head="lm_head.weight",
            head_bias="final_logits_bias",
            positions=positions,
            position_offset=self.offset,
            embedding_norm="model.{}.layernorm_embedding",
            ignored=tuple(positions.values()) if self.sines else (),
            base="model.",
            copies={f"model.{name}.embed_tokens.weight": "model.shared.weight" for name in STACKS},
        )
        return ModelFamily(self.model_type, self.describe, places)


MBART = _Variant("mbart", offset=2, embeds_normed=True).family
PEGASUS = _Variant("pegasus").family
BLENDERBOT = _Variant("blenderbot").family
BART = _Variant("bart", offset=2, embeds_normed=True, post=True).family
MARIAN = _Variant("marian", post=True, sines=True).family


# Whisper


def _audio_stack(config: Config, name: str, positions: int) -> Stack:
    block = _block(config, name, replace(_attention(config, name), key_bias=False), "gelu", False)
    return stack_of(
        [block] * config.layers(f"{name}_layers"),
        "decoder" if name == "decoder" else "encoder",
        final_norm=NORM,
        positions=positions,
        embeds_tokens=name == "decoder",
    )


def describe_whisper(config: Config) -> TransformerSpec:
    config.refuse("is_encoder_decoder", True)
    # The scale of the embedding is in the configuration, and no model of transformers applies it.
    config.raw("scale_embedding")
    width = config.integer("d_model")
    encoder = _audio_stack(config, "encoder", config.integer("max_source_positions", default=1500))
    decoder = _audio_stack(config, "decoder", config.integer("max_target_positions", default=448))
    front = width * (3 * config.integer("num_mel_bins", default=80) + 3 * width + 2)
    return model_of(config, width, encoder, decoder, head=head_of(config, tied=True), other_parameters=front)


def places_whisper(config: Config) -> Places:
    layouts = _layouts("input")
    width, bins = config.integer("d_model"), config.integer("num_mel_bins", default=80)
    first, second = ("model.encoder.conv1", "model.encoder.conv2")
    plain = {name: own for name, own in layouts["encoder"].norms.items() if name != "cross.input"}
    return Places(
        blocks={**layouts, "encoder": replace(layouts["encoder"], norms=plain)},
        final_norm={name: f"model.{name}.layer_norm" for name in STACKS},
        tokens="model.decoder.embed_tokens.weight",
        head="proj_out.weight",
        positions={name: f"model.{name}.embed_positions.weight" for name in STACKS},
        others=(f"{first}.", f"{second}."),
        base="model.",
        front="audio",
        front_shapes={
            f"{first}.weight": (width, bins, 3),
            f"{first}.bias": (width,),
            f"{second}.weight": (width, width, 3),
            f"{second}.bias": (width,),
        },
        written={f"{second}.weight": 0, f"{second}.bias": 0},
    )


WHISPER = ModelFamily("whisper", describe_whisper, places_whisper)
