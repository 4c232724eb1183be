"""MPT: ALiBi slopes instead of positions, LayerNorms without bias, q, k, v in one tensor."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, biases, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.specification import GroupedAttention, LogitHead, Norms, TransformerBlock, TransformerSpec


def _attention(config: Config) -> GroupedAttention:
    nested = config.raw("attn_config") or {}
    if not isinstance(nested, dict):
        raise InputError("config attn_config given; an object is required")
    inner = Config(nested)
    # transformers adds slopes that fall to 2⁻⁸, and reads neither the type of attention nor its norms.
    for key, allowed in (
        ("alibi", True),
        ("alibi_bias_max", 8),
        ("clip_qkv", None),
        ("qk_ln", False),
        ("prefix_lm", False),
    ):
        inner.refuse(key, allowed)
    inner.refuse("attn_type", "multihead_attention")
    attention = plain_attention(
        config.integer("n_heads", "num_attention_heads"), config.integer("d_model", "hidden_size"),
        scale=inner.optional_number("softmax_scale"),
    )  # fmt: skip
    return replace(attention, alibi=True, **biases(False))


def specify(config: Config) -> TransformerSpec:
    config.refuse("no_bias", True)
    config.refuse("logit_scale")
    config.raw("learned_pos_emb", "norm_type", "max_seq_len", "expansion_ratio")
    width = config.integer("d_model", "hidden_size")
    norm = config.layer_norm(default=1e-5, bias=False)
    block = TransformerBlock(
        attention=_attention(config),
        mlp=plain_mlp(4 * width, "gelu", bias=False),
        attention_norms=Norms(input=norm),
        mlp_norms=Norms(input=norm),
    )
    return TransformerSpec(
        family="mpt",
        width=width,
        stacks=(stack_of([block] * config.layers("n_layers", "num_hidden_layers"), "decoder", final_norm=norm),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )


def locate(config: Config) -> Places:
    attention = AttentionLayout(packing="stacked", fused="attn.Wqkv", output="attn.out_proj")
    mlp = MLPLayout(packing="split", up="ffn.up_proj", down="ffn.down_proj")
    norms = {"attention.input": "norm_1", "mlp.input": "norm_2"}
    return Places(
        blocks={"decoder": BlockLayout("transformer.blocks.{}.", attention, mlp, norms)},
        final_norm={"decoder": "transformer.norm_f"},
        tokens="transformer.wte.weight",
        head="lm_head.weight",
        base="transformer.",
    )


FAMILY = ModelFamily(("mpt",), specify, locate)
