"""GPT-NeoX, Pythia: q, k, v fused head by head, partly rotated heads, attention and MLP in parallel."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, biases, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    bias = config.flag("attention_bias", default=True)
    attention = plain_attention(heads, width, causal=True)
    attention = replace(
        attention,
        rotary=config.rotary(attention.head_dim, "half", share=0.25),
        **biases(bias),
    )
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
    norm = config.layer_norm(default=1e-5)
    block = TransformerBlock(
        attention=attention,
        mlp=mlp,
        attention_norms=Norms(input=norm),
        mlp_norms=Norms(input=norm),
        parallel=config.flag("use_parallel_residual", default=True),
    )
    return TransformerSpec(
        family="gpt_neox",
        width=width,
        stacks=(stack_of([block] * config.layers("num_hidden_layers"), "decoder", final_norm=norm),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=False)),
    )


def locate(config: Config) -> Places:
    attention = AttentionLayout(packing="grouped", fused="attention.query_key_value", output="attention.dense")
    mlp = MLPLayout(packing="split", up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h")
    norms = {"attention.input": "input_layernorm", "mlp.input": "post_attention_layernorm"}
    return Places(
        blocks={"decoder": BlockLayout("gpt_neox.layers.{}.", attention, mlp, norms)},
        final_norm={"decoder": "gpt_neox.final_layer_norm"},
        tokens="gpt_neox.embed_in.weight",
        head="embed_out.weight",
        ignored=(".attention.bias", ".attention.masked_bias", ".rotary_emb."),
        base="gpt_neox.",
    )


FAMILY = ModelFamily(("gpt_neox",), specify, locate)
