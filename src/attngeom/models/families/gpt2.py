"""GPT-2: LayerNorm before each sublayer, biases, learned positions, transposed (Conv1D) projections, tied head."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    config.refuse("add_cross_attention", False)
    width, heads = config.integer("n_embd", "hidden_size"), config.integer("n_head", "num_attention_heads")
    layers = config.layers("n_layer", "num_hidden_layers")
    scale = None if config.flag("scale_attn_weights", default=True) else 1.0
    attention = plain_attention(heads, width, causal=True, scale=scale)
    mlp = plain_mlp(
        config.integer("n_inner", default=4 * width), config.activation("activation_function", default="gelu_new")
    )
    norm = config.layer_norm(default=1e-5)
    norms = Norms(input=norm)
    by_depth = config.flag("scale_attn_by_inverse_layer_idx", default=False)
    blocks = [
        TransformerBlock(
            attention=replace(attention, scale=attention.scale / (i + 1)) if by_depth else attention,
            mlp=mlp,
            attention_norms=norms,
            mlp_norms=norms,
        )
        for i in range(layers)
    ]
    positions = config.integer("n_positions", "n_ctx", "max_position_embeddings", default=1024)
    return TransformerSpec(
        family="gpt2",
        width=width,
        stacks=(stack_of(blocks, "decoder", final_norm=norm, positions=positions),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )


def locate(config: Config) -> Places:
    attention = AttentionLayout(packing="stacked", fused="attn.c_attn", output="attn.c_proj", transposed=True)
    mlp = MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj", transposed=True)
    norms = {"attention.input": "ln_1", "mlp.input": "ln_2"}
    return Places(
        blocks={"decoder": BlockLayout("transformer.h.{}.", attention, mlp, norms)},
        final_norm={"decoder": "transformer.ln_f"},
        tokens="transformer.wte.weight",
        head="lm_head.weight",
        positions={"decoder": "transformer.wpe.weight"},
        others=("multiple_choice_head.",),
        ignored=(".attn.bias", ".attn.masked_bias"),
        base="transformer.",
    )


FAMILY = ModelFamily(("gpt2",), specify, locate)
