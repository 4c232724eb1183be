"""GPT-J: interleaved partial rotary positions, one LayerNorm for parallel attention and MLP, a head with a bias."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config, rotary_of
from attngeom.models.families.contract import ModelFamily, Places, biases, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    width, heads = config.integer("n_embd", "hidden_size"), config.integer("n_head", "num_attention_heads")
    attention = plain_attention(heads, width, causal=True)
    dims = config.integer("rotary_dim", default=attention.head_dim)
    attention = replace(
        attention,
        rotary=rotary_of({"rope_theta": 10000.0}, dims, "interleaved", None, config),
        **biases(False),
    )
    mlp = plain_mlp(
        config.integer("n_inner", default=4 * width), config.activation("activation_function", default="gelu_new")
    )
    norm = config.layer_norm(default=1e-5)
    block = TransformerBlock(
        attention=attention, mlp=mlp, attention_norms=Norms(input=norm), parallel=True, shared_norm=True
    )
    return TransformerSpec(
        family="gptj",
        width=width,
        stacks=(stack_of([block] * config.layers("n_layer", "num_hidden_layers"), "decoder", final_norm=norm),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=False), bias=True),
    )


def locate(config: Config) -> Places:
    attention = split_attention("attn.{}_proj", "attn.out_proj")
    mlp = MLPLayout(packing="split", up="mlp.fc_in", down="mlp.fc_out")
    return Places(
        blocks={"decoder": BlockLayout("transformer.h.{}.", attention, mlp, {"attention.input": "ln_1"})},
        final_norm={"decoder": "transformer.ln_f"},
        tokens="transformer.wte.weight",
        head="lm_head.weight",
        head_bias="lm_head.bias",
        ignored=(".attn.bias", ".attn.masked_bias", ".attn.embed_positions"),
        base="transformer.",
    )


FAMILY = ModelFamily(("gptj",), specify, locate)
