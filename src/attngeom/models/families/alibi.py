"""BLOOM, MPT, Falcon: slopes of ALiBi in place of positions, or rotations in most of Falcon; q, k, v in one tensor."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import (
    ModelFamily,
    Places,
    biases,
    block_of,
    head_of,
    model_of,
    parallel_block,
    plain_attention,
    plain_mlp,
    stack_of,
)
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.specification import GroupedAttention, Norms, TransformerSpec

# BLOOM: q, k, v fused head by head, a norm of the embedded tokens.

GROUPED = AttentionLayout(packing="grouped", fused="self_attention.query_key_value", output="self_attention.dense")
MLP_LAYOUT = MLPLayout(packing="split", up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h")
NORMS = {"attention.input": "input_layernorm", "mlp.input": "post_attention_layernorm"}


def describe_bloom(config: Config) -> TransformerSpec:
    config.refuse("apply_residual_connection_post_layernorm", False)
    width, heads = config.integer("hidden_size", "n_embed"), config.integer("n_head", "num_attention_heads")
    norm = config.layer_norm(default=1e-5)
    block = block_of(replace(plain_attention(heads, width), alibi=True), plain_mlp(4 * width, "gelu_tanh"), norm)
    layers = config.layers("n_layer", "num_hidden_layers")
    stack = stack_of([block] * layers, final_norm=norm, embedding_norm=norm)
    return model_of(config, width, stack, head=head_of(config, tied=True))


BLOOM_PLACES = Places(
    blocks={"decoder": BlockLayout("transformer.h.{}.", GROUPED, MLP_LAYOUT, NORMS)},
    final_norm={"decoder": "transformer.ln_f"},
    tokens="transformer.word_embeddings.weight",
    head="lm_head.weight",
    embedding_norm="transformer.word_embeddings_layernorm",
    base="transformer.",
)
BLOOM = ModelFamily("bloom", describe_bloom, BLOOM_PLACES)


# MPT: LayerNorms without bias.


def _mpt_attention(config: Config) -> GroupedAttention:
    nested = config.raw("attn_config") or {}
    if not isinstance(nested, dict):
        raise InputError("config attn_config given; an object is required")
    inner = Config(nested)
    # transformers adds slopes that fall to 2⁻⁸, and reads neither the type of attention nor its norms.
    allowed = {"alibi": True, "alibi_bias_max": 8, "clip_qkv": None, "qk_ln": False, "prefix_lm": False}
    for key, value in {**allowed, "attn_type": "multihead_attention"}.items():
        inner.refuse(key, value)
    heads, width = config.integer("n_heads", "num_attention_heads"), config.integer("d_model", "hidden_size")
    attention = plain_attention(heads, width, scale=inner.optional_number("softmax_scale"))
    return replace(attention, alibi=True, **biases(False))


def describe_mpt(config: Config) -> TransformerSpec:
    config.refuse("no_bias", True)
    config.refuse("logit_scale")
    config.raw("learned_pos_emb", "norm_type", "max_seq_len", "expansion_ratio")
    width = config.integer("d_model", "hidden_size")
    norm = config.layer_norm(default=1e-5, bias=False)
    block = block_of(_mpt_attention(config), plain_mlp(4 * width, "gelu", bias=False), norm)
    stack = stack_of([block] * config.layers("n_layers", "num_hidden_layers"), final_norm=norm)
    return model_of(config, width, stack, head=head_of(config, tied=True))


MPT_BLOCK = BlockLayout(
    "transformer.blocks.{}.",
    AttentionLayout(packing="stacked", fused="attn.Wqkv", output="attn.out_proj"),
    MLPLayout(packing="split", up="ffn.up_proj", down="ffn.down_proj"),
    {"attention.input": "norm_1", "mlp.input": "norm_2"},
)
MPT_PLACES = Places(
    blocks={"decoder": MPT_BLOCK},
    final_norm={"decoder": "transformer.norm_f"},
    tokens="transformer.wte.weight",
    head="lm_head.weight",
    base="transformer.",
)
MPT = ModelFamily("mpt", describe_mpt, MPT_PLACES)


# Falcon: one group of keys and values (7b) or several (40b, new architecture), attention and MLP in parallel or not.
# With ALiBi (falcon-rw) slopes are added to the scores before both are scaled.


def _groups(config: Config, heads: int) -> int:
    if config.flag("new_decoder_architecture", default=False):
        return config.integer("num_kv_heads", default=heads)
    config.raw("num_kv_heads")
    return 1 if config.flag("multi_query", default=True) else heads


def _has_two_norms(config: Config) -> bool:
    new = config.flag("new_decoder_architecture", default=False)
    return config.integer("num_ln_in_parallel_attn", default=2 if new else 1) == 2 and new


def describe_falcon(config: Config) -> TransformerSpec:
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
    hidden = config.integer("ffn_hidden_size", default=4 * width)
    mlp = plain_mlp(hidden, config.activation("activation", default="gelu"), bias=bias)
    norm = config.layer_norm(default=1e-5)
    parallel = config.flag("parallel_attn", default=True) or config.flag("new_decoder_architecture", default=False)
    block = parallel_block(attention, mlp, norm) if parallel else block_of(attention, mlp, norm)
    if parallel and _has_two_norms(config):
        block = replace(block, mlp_norms=Norms(input=norm), shared_norm=False)
    stack = stack_of([block] * config.layers("num_hidden_layers", "n_layer"), final_norm=norm)
    return model_of(config, width, stack, head=head_of(config, tied=True))


def places_falcon(config: Config) -> Places:
    norms = {"attention.input": "ln_attn", "mlp.input": "ln_mlp"} if _has_two_norms(config) else NORMS
    blocks = {"decoder": BlockLayout("transformer.h.{}.", GROUPED, MLP_LAYOUT, norms)}
    return replace(BLOOM_PLACES, blocks=blocks, embedding_norm="", ignored=(".rotary_emb.",))


FALCON = ModelFamily("falcon", describe_falcon, places_falcon)
