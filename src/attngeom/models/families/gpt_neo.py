"""GPT-Neo: GPT-2 with scores that are not scaled and a window in the layers that are called local."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families import gpt2
from attngeom.models.families.contract import ModelFamily, Places, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import LogitHead, Norms, TransformerBlock, TransformerSpec


def _kinds(config: Config, layers: int) -> list[str]:
    """``attention_types`` lists patterns with the number of their repetitions."""
    given = config.raw("attention_types")
    given = [[["global", "local"], layers // 2]] if given is None else given
    try:
        names = [name for pattern, count in given for _ in range(min(count, layers + 1)) for name in pattern]
    except (TypeError, ValueError):
        names = []
    if len(names) != layers or not all(name in ("global", "local") for name in names):
        raise InputError(f"config attention_types = {str(given)[:40]} given; patterns of {layers} layers are required")
    return names


def specify(config: Config) -> TransformerSpec:
    width, heads = config.integer("hidden_size"), config.integer("num_heads", "num_attention_heads")
    layers = config.layers("num_layers", "num_hidden_layers")
    attention = replace(
        plain_attention(heads, width, causal=True, scale=1.0), query_bias=False, key_bias=False, value_bias=False
    )
    mlp = plain_mlp(
        config.integer("intermediate_size", default=4 * width),
        config.activation("activation_function", default="gelu_new"),
    )
    norm = config.layer_norm(default=1e-5)
    windows = {"global": None, "local": config.integer("window_size", default=256)}
    config.raw("attention_layers")
    blocks = [
        TransformerBlock(
            attention=replace(attention, window=windows[name]),
            mlp=mlp,
            attention_norms=Norms(input=norm),
            mlp_norms=Norms(input=norm),
        )
        for name in _kinds(config, layers)
    ]
    positions = config.integer("max_position_embeddings", default=2048)
    return TransformerSpec(
        family="gpt_neo",
        width=width,
        stacks=(stack_of(blocks, "decoder", final_norm=norm, positions=positions),),
        vocabulary=config.integer("vocab_size"),
        head=LogitHead(tied=config.flag("tie_word_embeddings", default=True)),
    )


def locate(config: Config) -> Places:
    attention = split_attention("attn.attention.{}_proj", "attn.attention.out_proj")
    mlp = MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj")
    block = BlockLayout("transformer.h.{}.", attention, mlp, {"attention.input": "ln_1", "mlp.input": "ln_2"})
    places = gpt2.locate(config)
    ignored = (".attn.attention.bias", ".attn.attention.masked_bias")
    return replace(places, blocks={"decoder": block}, ignored=ignored)


FAMILY = ModelFamily(("gpt_neo",), specify, locate)
