"""Falcon: one group of keys and values (7b) or several (40b, new architecture), attention and MLP in parallel or not.

With ALiBi (falcon-rw) slopes are added to the scores before both are scaled.
"""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, biases, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec


def _groups(config: Config, heads: int) -> int:
    if config.flag("new_decoder_architecture", default=False):
        return config.integer("num_kv_heads", default=heads)
    config.raw("num_kv_heads")
    return 1 if config.flag("multi_query", default=True) else heads


def _has_two_norms(config: Config) -> bool:
    new = config.flag("new_decoder_architecture", default=False)
    return config.integer("num_ln_in_parallel_attn", default=2 if new else 1) == 2 and new


def specify(config: Config) -> TransformerSpec:
    alibi = config.flag("alibi", default=False)
    config.refuse("apply_residual_connection_post_layernorm", False)
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads", "n_head")
    bias = config.flag("bias", default=False)
    attention = plain_attention(heads, width)
    attention = replace(
        attention,
        groups=_groups(config, heads),
        rotary=None if alibi else config.rotary(attention.head_dim, "half"),
        alibi="scaled" if alibi else False,
        **biases(bias),
    )
    mlp = plain_mlp(
        config.integer("ffn_hidden_size", default=4 * width), config.activation("activation", default="gelu"), bias=bias
    )
    norm = config.layer_norm(default=1e-5)
    parallel = config.flag("parallel_attn", default=True) or config.flag("new_decoder_architecture", default=False)
    shared = parallel and not _has_two_norms(config)
    block = TransformerBlock(
        attention=attention,
        mlp=mlp,
        attention_norms=Norms(input=norm),
        mlp_norms=Norms() if shared else Norms(input=norm),
        parallel=parallel,
        shared_norm=shared,
    )
    return TransformerSpec(
        family="falcon",
        width=width,
        stacks=(stack_of([block] * config.layers("num_hidden_layers", "n_layer"), "decoder", final_norm=norm),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )


def locate(config: Config) -> Places:
    attention = AttentionLayout(
        packing="grouped", fused="self_attention.query_key_value", output="self_attention.dense"
    )
    mlp = MLPLayout(packing="split", up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h")
    norms = {"attention.input": "input_layernorm", "mlp.input": "post_attention_layernorm"}
    if _has_two_norms(config):
        norms = {"attention.input": "ln_attn", "mlp.input": "ln_mlp"}
    return Places(
        blocks={"decoder": BlockLayout("transformer.h.{}.", attention, mlp, norms)},
        final_norm={"decoder": "transformer.ln_f"},
        tokens="transformer.word_embeddings.weight",
        head="lm_head.weight",
        ignored=(".rotary_emb.",),
        base="transformer.",
    )


FAMILY = ModelFamily(("falcon",), specify, locate)
