"""StarCoder2: grouped heads and rotation as in Llama, LayerNorms, biases and a plain MLP as in GPT-2."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, plain_mlp
from attngeom.models.families.decoders import (
    ATTENTION,
    decoder,
    grouped_attention,
    llama_places,
    pre_norm_block,
    rotary,
)
from attngeom.models.layout import MLPLayout
from attngeom.models.specification import LogitHead, Norm, TransformerSpec


def specify(config: Config) -> TransformerSpec:
    bias = config.flag("use_bias", default=True)
    attention = grouped_attention(config, rotary(config), bias=bias, output_bias=bias)
    activation = config.activation("hidden_act", default="gelu_pytorch_tanh")
    mlp = plain_mlp(config.integer("intermediate_size"), activation, bias=bias)
    norm = Norm(kind="layer", eps=config.number("norm_epsilon", default=1e-5), bias=True)
    windows = [config.optional_integer("sliding_window")] * config.layers("num_hidden_layers")
    head = LogitHead(tied=config.flag("tie_word_embeddings", default=True))
    return decoder(config, "starcoder2", pre_norm_block(attention, mlp, norm), norm, windows=windows, head=head)


def locate(config: Config) -> Places:
    return llama_places(ATTENTION, MLPLayout(packing="split", up="mlp.c_fc", down="mlp.c_proj"))


FAMILY = ModelFamily(("starcoder2",), specify, locate)
