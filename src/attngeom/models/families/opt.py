"""OPT: ReLU, learned positions that start at row 2, LayerNorm before each sublayer (350m: after, tokens projected)."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.contract import (
    ModelFamily,
    Places,
    StateReader,
    block_of,
    head_of,
    model_of,
    plain_attention,
    plain_mlp,
    stack_of,
)
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import LogitHead, TransformerSpec

ATTENTION = split_attention("self_attn.{}_proj", "self_attn.out_proj")


def describe(config: Config) -> TransformerSpec:
    config.refuse("enable_bias", True)
    config.refuse("layer_norm_elementwise_affine", True)
    config.refuse("_remove_final_layer_norm", False)
    width = config.integer("hidden_size")
    rank = config.integer("word_embed_proj_dim", default=width)
    if rank != width:
        config.refuse("tie_word_embeddings", True)
    before = config.flag("do_layer_norm_before", default=True)
    norm = config.layer_norm(default=1e-5)
    mlp = plain_mlp(config.integer("ffn_dim"), config.activation("activation_function", default="relu"))
    attention = plain_attention(config.integer("num_attention_heads"), width)
    stack = stack_of(
        [block_of(attention, mlp, norm, after=not before)] * config.layers("num_hidden_layers"),
        final_norm=norm if before else None,
        positions=config.integer("max_position_embeddings") + 2,
        unread_positions=2,
    )
    if rank != width:
        return model_of(config, width, stack, head=LogitHead(tied=False), embedding_rank=rank)
    return model_of(config, width, stack, head=head_of(config, tied=True))


def places(config: Config) -> Places:
    place = "input" if config.flag("do_layer_norm_before", default=True) else "stream"
    norms = {f"attention.{place}": "self_attn_layer_norm", f"mlp.{place}": "final_layer_norm"}
    mlp, out = MLPLayout(packing="split", up="fc1", down="fc2"), "model.decoder.project_out"
    tokens = "model.decoder.embed_tokens.weight"
    # Behind a projection the head is the token table: modules, and some files, repeat it.
    width = config.integer("hidden_size")
    projected = config.integer("word_embed_proj_dim", default=width) != width
    return Places(
        blocks={"decoder": BlockLayout("model.decoder.layers.{}.", ATTENTION, mlp, norms)},
        final_norm={"decoder": "model.decoder.final_layer_norm"},
        tokens=tokens,
        head="lm_head.weight",
        projections=("model.decoder.project_in.weight", f"{out}.weight"),
        readers=(StateReader(out, is_last=True), StateReader("score", out), StateReader("qa_outputs", out)),
        positions={"decoder": "model.decoder.embed_positions.weight"},
        position_offset=2,
        base="model.",
        copies={"lm_head.weight": tokens} if projected else {},
    )


OPT = ModelFamily("opt", describe, places)
