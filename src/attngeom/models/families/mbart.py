"""mBART, Pegasus, Blenderbot: encoder and decoder with LayerNorms before the sublayers and behind each stack.

The bias of their logits is stored and not trained.
"""

from __future__ import annotations

from dataclasses import dataclass

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import LogitHead, Norm, Norms, Stack, TransformerBlock, TransformerSpec

NORM = Norm(kind="layer", eps=1e-5, bias=True)
MLP_LAYOUT = MLPLayout(packing="split", up="fc1", down="fc2")
NORMS = {"attention.input": "self_attn_layer_norm", "mlp.input": "final_layer_norm"}


@dataclass(frozen=True)
class _Variant:
    """``offset`` rows of the positions are never read; ``embeds_normed``: the embedded tokens are normalised."""

    model_type: str
    activation: str
    scaled: bool
    offset: int = 0
    embeds_normed: bool = False

    def stack(self, config: Config, name: str) -> Stack:
        decoder, width = name == "decoder", config.integer("d_model")
        attention = plain_attention(config.integer(f"{name}_attention_heads"), width)
        activation = config.activation("activation_function", default=self.activation)
        block = TransformerBlock(
            attention=attention if decoder else attention.bidirectional,
            mlp=plain_mlp(config.integer(f"{name}_ffn_dim"), activation),
            attention_norms=Norms(input=NORM),
            mlp_norms=Norms(input=NORM),
            cross=attention.bidirectional if decoder else None,
            cross_norms=Norms(input=NORM) if decoder else Norms(),
        )
        return stack_of(
            [block] * config.layers(f"{name}_layers"),
            "decoder" if decoder else "encoder",
            final_norm=NORM,
            positions=config.integer("max_position_embeddings") + self.offset,
            unread_positions=self.offset,
            embedding_norm=NORM if self.embeds_normed else None,
        )

    def specify(self, config: Config) -> TransformerSpec:
        config.refuse("is_encoder_decoder", True)
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
        crossed = {**NORMS, "cross.input": "encoder_attn_layer_norm"}
        return Places(
            blocks={
                "encoder": BlockLayout("model.encoder.layers.{}.", own, MLP_LAYOUT, NORMS),
                "decoder": BlockLayout("model.decoder.layers.{}.", own, MLP_LAYOUT, crossed, cross),
            },
            final_norm={name: f"model.{name}.layer_norm" for name in stacks},
            tokens="model.shared.weight",
            head="lm_head.weight",
            head_bias="final_logits_bias",
            positions={name: f"model.{name}.embed_positions.weight" for name in stacks},
            position_offset=self.offset,
            embedding_norm="model.{}.layernorm_embedding",
            base="model.",
            copies={f"model.{name}.embed_tokens.weight": "model.shared.weight" for name in stacks},
        )

    @property
    def family(self) -> ModelFamily:
        return ModelFamily((self.model_type,), self.specify, self.locate)


MBART = _Variant("mbart", "gelu", scaled=False, offset=2, embeds_normed=True).family
PEGASUS = _Variant("pegasus", "gelu", scaled=False).family
BLENDERBOT = _Variant("blenderbot", "gelu", scaled=False).family
