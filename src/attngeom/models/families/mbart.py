"""BART and encoder-decoders of its design: LayerNorms of the sums, or before the sublayers and behind each stack.

The bias of their logits is stored and not trained. The positions of Marian are sines, and no weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import LogitHead, Norm, Norms, Stack, TransformerBlock, TransformerSpec

NORM = Norm(kind="layer", eps=1e-5, bias=True)
MLP_LAYOUT = MLPLayout(packing="split", up="fc1", down="fc2")
NORMS = {"attention": "self_attn_layer_norm", "cross": "encoder_attn_layer_norm", "mlp": "final_layer_norm"}


@dataclass(frozen=True)
class _Variant:
    """``offset`` rows of the positions are never read; ``embeds_normed``: the embedded tokens are normalised.

    ``post``: norms are those of the sums; ``sines``: positions are fixed.
    """

    model_type: str
    activation: str
    scaled: bool
    offset: int = 0
    embeds_normed: bool = False
    post: bool = False
    sines: bool = False

    @property
    def place(self) -> str:
        """Where a sublayer is normalised."""
        return "stream" if self.post else "input"

    @property
    def norms(self) -> Norms:
        return Norms(**{self.place: NORM})

    def stack(self, config: Config, name: str) -> Stack:
        decoder, width = name == "decoder", config.integer("d_model")
        attention = plain_attention(config.integer(f"{name}_attention_heads"), width)
        activation = config.activation("activation_function", default=self.activation)
        block = TransformerBlock(
            attention=attention if decoder else attention.bidirectional,
            mlp=plain_mlp(config.integer(f"{name}_ffn_dim"), activation),
            attention_norms=self.norms,
            mlp_norms=self.norms,
            cross=attention.bidirectional if decoder else None,
            cross_norms=self.norms if decoder else Norms(),
        )
        return stack_of(
            [block] * config.layers(f"{name}_layers"),
            "decoder" if decoder else "encoder",
            final_norm=None if self.post else NORM,
            positions=0 if self.sines else config.integer("max_position_embeddings") + self.offset,
            sines=config.integer("max_position_embeddings") if self.sines else 0,
            unread_positions=self.offset,
            embedding_norm=NORM if self.embeds_normed else None,
        )

    def specify(self, config: Config) -> TransformerSpec:
        config.refuse("is_encoder_decoder", True)
        config.refuse("share_encoder_decoder_embeddings", True)
        width = config.integer("d_model")
        tied = config.flag("tie_word_embeddings", default=True)
        return TransformerSpec(
            family=self.model_type,
            width=width,
            stacks=(self.stack(config, "encoder"), self.stack(config, "decoder")),
            vocabulary=config.integer("vocab_size"),
            head=LogitHead(tied=tied, bias=True, trains_bias=False),
            embedding_scale=width**0.5 if config.flag("scale_embedding", default=self.scaled) else 1.0,
        )

    def locate(self, config: Config) -> Places:
        stacks = ("encoder", "decoder")
        own, cross = (
            split_attention(f"{name}.{{}}_proj", f"{name}.out_proj") for name in ("self_attn", "encoder_attn")
        )
        norms = {f"{place}.{self.place}": name for place, name in NORMS.items()}
        return Places(
            blocks={
                "encoder": BlockLayout("model.encoder.layers.{}.", own, MLP_LAYOUT, norms),
                "decoder": BlockLayout("model.decoder.layers.{}.", own, MLP_LAYOUT, norms, cross),
            },
            final_norm={} if self.post else {name: f"model.{name}.layer_norm" for name in stacks},
            tokens="model.shared.weight",
            head="lm_head.weight",
            head_bias="final_logits_bias",
            positions={name: f"model.{name}.embed_positions.weight" for name in stacks},
            position_offset=self.offset,
            embedding_norm="model.{}.layernorm_embedding",
            ignored=tuple(f"model.{name}.embed_positions.weight" for name in stacks) if self.sines else (),
            base="model.",
            copies={f"model.{name}.embed_tokens.weight": "model.shared.weight" for name in stacks},
        )

    @property
    def family(self) -> ModelFamily:
        return ModelFamily((self.model_type,), self.specify, self.locate)


MBART = _Variant("mbart", "gelu", scaled=False, offset=2, embeds_normed=True).family
PEGASUS = _Variant("pegasus", "gelu", scaled=False).family
BLENDERBOT = _Variant("blenderbot", "gelu", scaled=False).family
BART = _Variant("bart", "gelu", scaled=False, offset=2, embeds_normed=True, post=True).family
MARIAN = _Variant("marian", "gelu", scaled=False, post=True, sines=True).family
