"""DistilBERT and ELECTRA (with embeddings as wide as the stream): BERT under other names."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.bert import ATTENTION, encoder
from attngeom.models.families.contract import ModelFamily, Places, StateReader
from attngeom.models.families.roberta import AFTER, MLP_LAYOUT
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import TransformerSpec

KEYS = {
    "hidden_size": "dim",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
"""The keys of BERT and those of DistilBERT."""


def specify_distilbert(config: Config) -> TransformerSpec:
    for bert, own in KEYS.items():
        config = config.with_default(bert, config.raw(own))
    return encoder(config, "distilbert", types=0)


def specify_electra(config: Config) -> TransformerSpec:
    config.refuse("embedding_size", config.integer("hidden_size"))
    config = config.with_default("embedding_size", 128)
    config.refuse("embedding_size", config.integer("hidden_size"))
    return encoder(config, "electra")


def locate_distilbert(config: Config) -> Places:
    attention = split_attention("attention.{}_lin", "attention.out_lin")
    mlp = MLPLayout(packing="split", up="ffn.lin1", down="ffn.lin2")
    norms = {"attention.stream": "sa_layer_norm", "mlp.stream": "output_layer_norm"}
    tokens = "distilbert.embeddings.word_embeddings.weight"
    return Places(
        blocks={"encoder": BlockLayout("distilbert.transformer.layer.{}.", attention, mlp, norms)},
        final_norm={},
        tokens=tokens,
        positions={"encoder": "distilbert.embeddings.position_embeddings.weight"},
        embedding_norm="distilbert.embeddings.LayerNorm",
        others=(
            "vocab_transform.",
            "vocab_layer_norm.",
            "vocab_projector.",
            "pre_classifier.",
            "classifier.",
            "qa_outputs.",
        ),
        base="distilbert.",
        readers=(
            StateReader("vocab_transform"),
            StateReader("pre_classifier"),
            StateReader("classifier", "pre_classifier"),
            StateReader("qa_outputs"),
        ),
        copies={"vocab_projector.weight": tokens},
        rereader="vocab_transform.",
    )


def locate_electra(config: Config) -> Places:
    tokens, inner = "electra.embeddings.word_embeddings.weight", "generator_predictions"
    return Places(
        blocks={"encoder": BlockLayout("electra.encoder.layer.{}.", ATTENTION, MLP_LAYOUT, AFTER)},
        final_norm={},
        tokens=tokens,
        positions={"encoder": "electra.embeddings.position_embeddings.weight"},
        token_types="electra.embeddings.token_type_embeddings.weight",
        embedding_norm="electra.embeddings.LayerNorm",
        others=(f"{inner}.", "generator_lm_head.", "discriminator_predictions.", "classifier.", "qa_outputs."),
        ignored=("electra.embeddings.position_ids",),
        base="electra.",
        readers=(
            StateReader(f"{inner}.dense"),
            StateReader("discriminator_predictions.dense"),
            StateReader("classifier.dense"),
            StateReader("classifier"),
            StateReader("qa_outputs"),
        ),
        copies={"generator_lm_head.weight": tokens},
        rereader=f"{inner}.",
    )


DISTILBERT = ModelFamily(("distilbert",), specify_distilbert, locate_distilbert)
ELECTRA = ModelFamily(("electra",), specify_electra, locate_electra)
