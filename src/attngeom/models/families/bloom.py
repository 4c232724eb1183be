"""BLOOM: ALiBi slopes instead of positions, q, k, v fused head by head, a norm of the embedded tokens."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    config.refuse("apply_residual_connection_post_layernorm", False)
    width, heads = config.integer("hidden_size", "n_embed"), config.integer("n_head", "num_attention_heads")
    mlp = plain_mlp(4 * width, "gelu_tanh")
    norm = config.layer_norm(default=1e-5)
    block = TransformerBlock(
        attention=replace(plain_attention(heads, width), alibi=True),
        mlp=mlp,
        attention_norms=Norms(input=norm),
        mlp_norms=Norms(input=norm),
    )
    return TransformerSpec(
        family="bloom",
        width=width,
        stacks=(
            stack_of(
                [block] * config.layers("n_layer", "num_hidden_layers"),
                "decoder",
                final_norm=norm,
                embedding_norm=norm,
            ),
        ),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )


def locate(config: Config) -> Places:
    attention = AttentionLayout(
        packing="grouped", fused="self_attention.query_key_value", output="self_attention.dense"
    )
    mlp = MLPLayout(packing="split", up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h")
    norms = {"attention.input": "input_layernorm", "mlp.input": "post_attention_layernorm"}
    return Places(
        blocks={"decoder": BlockLayout("transformer.h.{}.", attention, mlp, norms)},
        final_norm={"decoder": "transformer.ln_f"},
        tokens="transformer.word_embeddings.weight",
        head="lm_head.weight",
        embedding_norm="transformer.word_embeddings_layernorm",
        base="transformer.",
    )


FAMILY = ModelFamily(("bloom",), specify, locate)
