"""BERT and encoders of its design: learned positions, biases everywhere, LayerNorms of the sums or before the maps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.contract import (
    ModelFamily,
    Places,
    StateReader,
    block_of,
    model_of,
    plain_attention,
    plain_mlp,
    stack_of,
)
from attngeom.models.families.decoders import gated_mlp, grouped_attention, rotary_of_type
from attngeom.models.layout import AttentionLayout, BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import Norm, Norms, TransformerSpec

# BERT: LayerNorm of the residual stream after each sublayer, learned positions and segments, attention both ways.

ATTENTION = split_attention("attention.self.{}", "attention.output.dense", ("query", "key", "value"))
MLP_LAYOUT = MLPLayout(packing="split", up="intermediate.dense", down="output.dense")
AFTER = {"attention.stream": "attention.output.LayerNorm", "mlp.stream": "output.LayerNorm"}
BEFORE = {"attention.input": "attention.LayerNorm", "mlp.input": "intermediate.LayerNorm"}


def encoder(config: Config, *, unread: int = 0, types: int | None = None, before: bool = False) -> TransformerSpec:
    """The encoder of BERT; ``unread`` rows of its positions are never read, ``before``: norms are before sublayers."""
    config.refuse("add_cross_attention", False)
    config.refuse("position_embedding_type", "absolute")
    width = config.integer("hidden_size")
    attention = plain_attention(config.integer("num_attention_heads"), width)
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
    norm = config.layer_norm(default=1e-12)
    attention = attention if config.flag("is_decoder", default=False) else attention.bidirectional
    stack = stack_of(
        [block_of(attention, mlp, norm, after=not before)] * config.layers("num_hidden_layers"),
        "encoder",
        final_norm=norm if before else None,
        positions=config.integer("max_position_embeddings"),
        unread_positions=unread,
        token_types=config.integer("type_vocab_size", default=2, least=0) if types is None else types,
        embedding_norm=norm,
    )
    # The head of masked language models has a hidden layer: the function described here is the final hidden states.
    return model_of(config, width, stack, head=None)


def encoder_places(base: str, layer: str = "encoder.layer.{}.", types: bool = True, **more: Any) -> Places:
    """The names of BERT below a base, some of them others; ``types``: with a table of segments."""
    tables = f"{base}embeddings"
    block = more.pop("block", (ATTENTION, MLP_LAYOUT, AFTER))
    names: dict[str, Any] = {"final_norm": {}, "ignored": (f"{tables}.position_ids",)}
    return Places(
        blocks={"encoder": BlockLayout(base + layer, *block)},
        tokens=f"{tables}.word_embeddings.weight",
        positions={"encoder": f"{tables}.position_embeddings.weight"},
        token_types=f"{tables}.token_type_embeddings.weight" if types else "",
        embedding_norm=f"{tables}.LayerNorm",
        base=base,
        **(names | more),
    )


POOLER, HIDDEN = "bert.pooler.dense", "cls.predictions.transform"
BERT_PLACES = encoder_places(
    "bert.",
    others=("bert.pooler.", "cls.", "classifier.", "qa_outputs."),
    readers=(
        StateReader(POOLER),
        StateReader(f"{HIDDEN}.dense"),
        StateReader("classifier", POOLER),
        StateReader("qa_outputs", POOLER),
    ),
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    rereader=HIDDEN,
)
BERT = ModelFamily("bert", encoder, BERT_PLACES)


# RoBERTa, XLM-RoBERTa, CamemBERT, data2vec: BERT with positions that begin behind that of padding. RoBERTa-
# PreLayerNorm has its norms before the sublayers.


def padding(config: Config) -> int:
    """The row of the positions that padding has; rows before it are never read, tokens begin behind it."""
    return config.integer("pad_token_id", default=1, least=0)


def masked_places(base: str, config: Config, **more: Any) -> Places:
    """With the head of masked models, and classifiers with and without a hidden layer."""
    pooler = f"{base}pooler.dense"
    readers = (*map(StateReader, (pooler, "lm_head.dense", "classifier.dense")), StateReader("classifier", pooler))
    return encoder_places(
        base,
        position_offset=padding(config),
        first_position=1,
        others=(f"{base}pooler.", "lm_head.", "classifier.", "qa_outputs."),
        readers=(*readers, StateReader("qa_outputs", pooler)),
        copies={
            "lm_head.decoder.weight": f"{base}embeddings.word_embeddings.weight",
            "lm_head.decoder.bias": "lm_head.bias",
        },
        rereader="lm_head.",
        **more,
    )


def _roberta(model_type: str, base: str, before: bool = False) -> ModelFamily:
    names: dict[str, Any] = {}
    if before:
        names = {"block": (ATTENTION, MLP_LAYOUT, BEFORE), "final_norm": {"encoder": f"{base}LayerNorm"}}

    def describe(config: Config) -> TransformerSpec:
        return encoder(config, unread=padding(config), before=before)

    return ModelFamily(model_type, describe, lambda config: masked_places(base, config, **names))


ROBERTA = _roberta("roberta", "roberta.")
XLM_ROBERTA = _roberta("xlm-roberta", "roberta.")
CAMEMBERT = _roberta("camembert", "roberta.")
DATA2VEC = _roberta("data2vec-text", "data2vec_text.")
ROBERTA_BEFORE = _roberta("roberta-prelayernorm", "roberta_prelayernorm.", before=True)


# DistilBERT and ELECTRA: BERT under other names, ELECTRA with narrow tables or wide ones.

KEYS = {
    "hidden_size": "dim",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
"""The keys of BERT and those of DistilBERT."""


def describe_distilbert(config: Config) -> TransformerSpec:
    return encoder(config.with_defaults({bert: config.raw(own) for bert, own in KEYS.items()}), types=0)


def narrow(config: Config, spec: TransformerSpec, **more: Any) -> TransformerSpec:
    """The encoder with tables of their own width, and what more changes."""
    width = config.integer("embedding_size", default=128)
    return replace(spec, stacks=(replace(spec.stack, embedding_width=width, **more),))


def describe_electra(config: Config) -> TransformerSpec:
    """Tables as wide as the stream are written into it as they are."""
    spec = encoder(config)
    return spec if config.integer("embedding_size", default=128) == spec.width else narrow(config, spec)


DISTILBERT_PLACES = encoder_places(
    "distilbert.",
    "transformer.layer.{}.",
    types=False,
    block=(
        split_attention("attention.{}_lin", "attention.out_lin"),
        MLPLayout(packing="split", up="ffn.lin1", down="ffn.lin2"),
        {"attention.stream": "sa_layer_norm", "mlp.stream": "output_layer_norm"},
    ),
    others=(
        "vocab_transform.",
        "vocab_layer_norm.",
        "vocab_projector.",
        "pre_classifier.",
        "classifier.",
        "qa_outputs.",
    ),
    ignored=(),
    readers=(
        StateReader("vocab_transform"),
        StateReader("pre_classifier"),
        StateReader("classifier", "pre_classifier"),
        StateReader("qa_outputs"),
    ),
    copies={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
    rereader="vocab_transform.",
)
ELECTRA_READERS = (
    "generator_predictions.dense", "discriminator_predictions.dense", "classifier.dense", "classifier", "qa_outputs"
)  # fmt: skip
ELECTRA_PLACES = encoder_places(
    "electra.",
    others=(
        "generator_predictions.",
        "generator_lm_head.",
        "discriminator_predictions.",
        "classifier.",
        "qa_outputs.",
        "sequence_summary.",
    ),
    readers=tuple(map(StateReader, ELECTRA_READERS)),
    copies={"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
    rereader="generator_predictions.",
    widening="electra.embeddings_project",
)
DISTILBERT = ModelFamily("distilbert", describe_distilbert, DISTILBERT_PLACES)
ELECTRA = ModelFamily("electra", describe_electra, ELECTRA_PLACES)


# ALBERT: narrow tables, and groups of layers that share their weights.


def describe_albert(config: Config) -> TransformerSpec:
    config.refuse("inner_group_num", 1)
    layers, groups = config.layers("num_hidden_layers", default=12), config.layers("num_hidden_groups", default=1)
    if groups > layers:
        raise InputError(f"config num_hidden_groups = {groups} given; at most {layers}, the layers, are required")
    shared = config.with_defaults({"hidden_act": "gelu_new"})
    shared.values = {**shared.values, "num_hidden_layers": groups}
    path = tuple(int(layer / (layers / groups)) for layer in range(layers))
    return narrow(config, encoder(shared), path=() if groups == layers else path)


ALBERT_PLACES = encoder_places(
    "albert.",
    "encoder.albert_layer_groups.{}.albert_layers.0.",
    block=(
        split_attention("attention.{}", "attention.dense", ("query", "key", "value")),
        MLPLayout(packing="split", up="ffn", down="ffn_output"),
        {"attention.stream": "attention.LayerNorm", "mlp.stream": "full_layer_layer_norm"},
    ),
    others=("albert.pooler.", "predictions.", "sop_classifier.", "classifier.", "qa_outputs."),
    ignored=("position_ids", "token_type_ids"),
    readers=(
        StateReader("albert.pooler"),
        StateReader("predictions.dense"),
        StateReader("classifier", "albert.pooler"),
        StateReader("qa_outputs", "albert.pooler"),
    ),
    copies={
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    rereader="predictions.",
    widening="albert.encoder.embedding_hidden_mapping_in",
)
ALBERT = ModelFamily("albert", describe_albert, ALBERT_PLACES)


# MPNet: RoBERTa without segments, with a table of relative positions that all layers share.

DISTANCE = 128
"""The largest distance of the table; no key of the configuration changes it."""


def describe_mpnet(config: Config) -> TransformerSpec:
    spec = encoder(config, unread=padding(config), types=0)
    buckets = config.integer("relative_attention_num_buckets", default=32)
    return replace(spec, stacks=(replace(spec.stack, relative_buckets=buckets, relative_distance=DISTANCE),))


def places_mpnet(config: Config) -> Places:
    attention = split_attention("attention.attn.{}", "attention.attn.o")
    block = attention, MLP_LAYOUT, {**AFTER, "attention.stream": "attention.LayerNorm"}
    relative = {"encoder": "mpnet.encoder.relative_attention_bias.weight"}
    return masked_places("mpnet.", config, types=False, block=block, relative=relative)


MPNET = ModelFamily("mpnet", describe_mpnet, places_mpnet)


# ModernBERT: LayerNorms before the sublayers but for the first, gated units, rotations, windows to both sides.

THETAS = {"full_attention": ("global_rope_theta", 160000.0), "sliding_attention": ("local_rope_theta", 10000.0)}
"""Where older files have the base of the rotation of a type of layers, and what it is by default."""


def describe_modernbert(config: Config) -> TransformerSpec:
    config.refuse("rope_scaling", None)
    norm = Norm(kind="layer", eps=config.number("norm_eps", default=1e-5), bias=config.flag("norm_bias", default=False))
    layers, every = config.layers("num_hidden_layers"), config.integer("global_attn_every_n_layers", default=3)
    default = ["sliding_attention" if i % every else "full_attention" for i in range(layers)]
    # The number counts the neighbours on both sides; a window counts the token itself and one side.
    windows = config.windows(config.integer("local_attention", default=128) // 2 + 1, default)
    types = config.layer_types(default)
    turns = {kind: rotary_of_type(config, kind, theta=theta, key=key) for kind, (key, theta) in THETAS.items()}
    attention = grouped_attention(config, None, bias=config.flag("attention_bias", default=False)).bidirectional
    mlp = gated_mlp(config, bias=config.flag("mlp_bias", default=False))
    mlp = replace(mlp, activation=config.activation("hidden_activation", default="gelu"))
    blocks = [
        block_of(replace(attention, rotary=turns[kind], window=window), mlp, norm)
        for kind, window in zip(types, windows)
    ]
    blocks[:1] = [replace(block, attention_norms=Norms()) for block in blocks[:1]]
    stack = stack_of(blocks, "encoder", final_norm=norm, embedding_norm=norm)
    return model_of(config, config.integer("hidden_size"), stack, head=None)


MODERNBERT_BLOCK = BlockLayout(
    "model.layers.{}.",
    AttentionLayout(packing="stacked", fused="attn.Wqkv", output="attn.Wo"),
    MLPLayout(packing="fused", up="mlp.Wi", down="mlp.Wo"),
    {"attention.input": "attn_norm", "mlp.input": "mlp_norm"},
)
MODERNBERT_PLACES = Places(
    blocks={"encoder": MODERNBERT_BLOCK},
    final_norm={"encoder": "model.final_norm"},
    tokens="model.embeddings.tok_embeddings.weight",
    embedding_norm="model.embeddings.norm",
    others=("head.", "decoder.", "classifier."),
    base="model.",
    readers=(StateReader("head.dense"), StateReader("classifier", "head.dense")),
    copies={"decoder.weight": "model.embeddings.tok_embeddings.weight"},
    rereader="head.",
)
MODERNBERT = ModelFamily("modernbert", describe_modernbert, MODERNBERT_PLACES)
