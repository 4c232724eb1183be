"""ModernBERT: LayerNorms before the sublayers but for the first, gated units, rotations, windows to both sides."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, StateReader, stack_of
from attngeom.models.families.decoders import gated_mlp, grouped_attention, pre_norm_block, rotary_of_type
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout
from attngeom.models.specification import Norm, Norms, TransformerSpec

THETAS = {"full_attention": ("global_rope_theta", 160000.0), "sliding_attention": ("local_rope_theta", 10000.0)}
"""Where older files have the base of the rotation of a type of layers, and what it is by default."""


def specify(config: Config) -> TransformerSpec:
    config.refuse("rope_scaling", None)
    norm = Norm(kind="layer", eps=config.number("norm_eps", default=1e-5), bias=config.flag("norm_bias", default=False))
    layers, every = config.layers("num_hidden_layers"), config.integer("global_attn_every_n_layers", default=3)
    default = ["sliding_attention" if i % every else "full_attention" for i in range(layers)]
    # The number counts the neighbours on both sides; a window counts the token itself and one side.
    windows = config.windows(layers, config.integer("local_attention", default=128) // 2 + 1, default)
    types = config.raw("layer_types") or default
    turns = {kind: rotary_of_type(config, kind, theta=theta, key=key) for kind, (key, theta) in THETAS.items()}
    bias = config.flag("attention_bias", default=False)
    attention = grouped_attention(config, None, bias=bias, output_bias=bias).bidirectional
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    mlp = replace(mlp, activation=config.activation("hidden_activation", default="gelu"))
    blocks = [
        pre_norm_block(replace(attention, rotary=turns[kind], window=window), mlp, norm)
        for kind, window in zip(types, windows)
    ]
    blocks[:1] = [replace(block, attention_norms=Norms()) for block in blocks[:1]]
    return TransformerSpec(
        family="modernbert",
        width=config.integer("hidden_size"),
        stacks=(stack_of(blocks, "encoder", final_norm=norm, embedding_norm=norm),),
        vocabulary=config.integer("vocab_size"),
        head=None,
    )


def locate(config: Config) -> Places:
    attention = AttentionLayout(packing="stacked", fused="attn.Wqkv", output="attn.Wo")
    mlp = MLPLayout(packing="fused", up="mlp.Wi", down="mlp.Wo")
    norms, tokens = {"attention.input": "attn_norm", "mlp.input": "mlp_norm"}, "model.embeddings.tok_embeddings.weight"
    return Places(
        blocks={"encoder": BlockLayout("model.layers.{}.", attention, mlp, norms)},
        final_norm={"encoder": "model.final_norm"},
        tokens=tokens,
        embedding_norm="model.embeddings.norm",
        others=("head.", "decoder.", "classifier."),
        base="model.",
        readers=(StateReader("head.dense"), StateReader("classifier", "head.dense")),
        copies={"decoder.weight": tokens},
        rereader="head.",
    )


FAMILY = ModelFamily(("modernbert",), specify, locate)
