"""BERT and encoders of its design: learned positions, biases everywhere, LayerNorms of the sums or before the maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, StateReader, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import Norms, TransformerBlock, TransformerSpec

# BERT: LayerNorm of the residual stream after each sublayer, learned positions and segments, attention both ways.

ATTENTION = split_attention("attention.self.{}", "attention.output.dense", ("query", "key", "value"))


def encoder(
    config: Config, family: str, *, unread: int = 0, types: int | None = None, before: bool = False
) -> TransformerSpec:
    """The encoder of BERT; ``unread`` rows of its positions are never read, ``before``: norms are before sublayers."""
    config.refuse("add_cross_attention", False)
    config.refuse("position_embedding_type", "absolute")
    width = config.integer("hidden_size")
    attention = plain_attention(config.integer("num_attention_heads"), width)
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
    norm = config.layer_norm(default=1e-12)
    block = TransformerBlock(
        attention=attention if config.flag("is_decoder", default=False) else attention.bidirectional,
        mlp=mlp,
        attention_norms=Norms(input=norm) if before else Norms(stream=norm),
        mlp_norms=Norms(input=norm) if before else Norms(stream=norm),
    )
    stack = stack_of(
        [block] * config.layers("num_hidden_layers"),
        "encoder",
        final_norm=norm if before else None,
        positions=config.integer("max_position_embeddings"),
        unread_positions=unread,
        token_types=config.integer("type_vocab_size", default=2, least=0) if types is None else types,
        embedding_norm=norm,
    )
    # The head of masked language models has a hidden layer: the function described here is the final hidden states.
    return TransformerSpec(
        family=family, width=width, stacks=(stack,), vocabulary=config.integer("vocab_size"), head=None
    )


def specify_bert(config: Config) -> TransformerSpec:
    return encoder(config, "bert")


def locate_bert(config: Config) -> Places:
    mlp = MLPLayout(packing="split", up="intermediate.dense", down="output.dense")
    norms = {"attention.stream": "attention.output.LayerNorm", "mlp.stream": "output.LayerNorm"}
    tokens, pooler, hidden = "bert.embeddings.word_embeddings.weight", "bert.pooler.dense", "cls.predictions.transform"
    return Places(
        blocks={"encoder": BlockLayout("bert.encoder.layer.{}.", ATTENTION, mlp, norms)},
        final_norm={},
        tokens=tokens,
        positions={"encoder": "bert.embeddings.position_embeddings.weight"},
        token_types="bert.embeddings.token_type_embeddings.weight",
        embedding_norm="bert.embeddings.LayerNorm",
        others=("bert.pooler.", "cls.", "classifier.", "qa_outputs."),
        ignored=("bert.embeddings.position_ids",),
        base="bert.",
        readers=(
            StateReader(pooler),
            StateReader(f"{hidden}.dense"),
            StateReader("classifier", pooler),
            StateReader("qa_outputs", pooler),
        ),
        copies={"cls.predictions.decoder.weight": tokens, "cls.predictions.decoder.bias": "cls.predictions.bias"},
        rereader=hidden,
    )


BERT = ModelFamily(("bert",), specify_bert, locate_bert)


# RoBERTa, XLM-RoBERTa, CamemBERT, data2vec: BERT with positions that begin behind that of padding. RoBERTa-
# PreLayerNorm has its norms before the sublayers.

MLP_LAYOUT = MLPLayout(packing="split", up="intermediate.dense", down="output.dense")
AFTER = {"attention.stream": "attention.output.LayerNorm", "mlp.stream": "output.LayerNorm"}
BEFORE = {"attention.input": "attention.LayerNorm", "mlp.input": "intermediate.LayerNorm"}


def padding(config: Config) -> int:
    """The row of the positions that padding has; rows before it are never read, tokens begin behind it."""
    return config.integer("pad_token_id", default=1, least=0)


def masked_readers(pooler: str) -> tuple[StateReader, ...]:
    """What reads the final hidden states: the head of masked models, classifiers with and without a hidden layer."""
    names = (pooler, "lm_head.dense", "classifier.dense")
    return (*map(StateReader, names), StateReader("classifier", pooler), StateReader("qa_outputs", pooler))


def _places_roberta(base: str, before: bool) -> Callable[[Config], Places]:
    def locate(config: Config) -> Places:
        tokens = f"{base}embeddings.word_embeddings.weight"
        return Places(
            blocks={
                "encoder": BlockLayout(f"{base}encoder.layer.{{}}.", ATTENTION, MLP_LAYOUT, BEFORE if before else AFTER)
            },
            final_norm={"encoder": f"{base}LayerNorm"} if before else {},
            tokens=tokens,
            positions={"encoder": f"{base}embeddings.position_embeddings.weight"},
            position_offset=padding(config),
            first_position=1,
            token_types=f"{base}embeddings.token_type_embeddings.weight",
            embedding_norm=f"{base}embeddings.LayerNorm",
            others=(f"{base}pooler.", "lm_head.", "classifier.", "qa_outputs."),
            ignored=(f"{base}embeddings.position_ids",),
            base=base,
            readers=masked_readers(f"{base}pooler.dense"),
            copies={"lm_head.decoder.weight": tokens, "lm_head.decoder.bias": "lm_head.bias"},
            rereader="lm_head.",
        )

    return locate


def _row_roberta(model_type: str, base: str, before: bool = False) -> ModelFamily:
    def specify(config: Config) -> TransformerSpec:
        return encoder(config, model_type, unread=padding(config), before=before)

    return ModelFamily((model_type,), specify, _places_roberta(base, before))


ROBERTA_ROWS = (
    _row_roberta("roberta", "roberta."),
    _row_roberta("xlm-roberta", "roberta."),
    _row_roberta("camembert", "roberta."),
    _row_roberta("data2vec-text", "data2vec_text."),
    _row_roberta("roberta-prelayernorm", "roberta_prelayernorm.", before=True),
)


# DistilBERT and ELECTRA (with embeddings as wide as the stream): BERT under other names.

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


# MPNet: RoBERTa without segments, with a table of relative positions that all layers share.

DISTANCE = 128
"""The largest distance of the table; no key of the configuration changes it."""


def specify_mpnet(config: Config) -> TransformerSpec:
    spec = encoder(config, "mpnet", unread=padding(config), types=0)
    buckets = config.integer("relative_attention_num_buckets", default=32)
    return replace(spec, stacks=(replace(spec.stack, relative_buckets=buckets, relative_distance=DISTANCE),))


def locate_mpnet(config: Config) -> Places:
    attention = split_attention("attention.attn.{}", "attention.attn.o")
    norms = {"attention.stream": "attention.LayerNorm", "mlp.stream": "output.LayerNorm"}
    tokens = "mpnet.embeddings.word_embeddings.weight"
    return Places(
        blocks={"encoder": BlockLayout("mpnet.encoder.layer.{}.", attention, MLP_LAYOUT, norms)},
        final_norm={},
        tokens=tokens,
        positions={"encoder": "mpnet.embeddings.position_embeddings.weight"},
        position_offset=padding(config),
        first_position=1,
        relative={"encoder": "mpnet.encoder.relative_attention_bias.weight"},
        embedding_norm="mpnet.embeddings.LayerNorm",
        others=("mpnet.pooler.", "lm_head.", "classifier.", "qa_outputs."),
        ignored=("mpnet.embeddings.position_ids",),
        base="mpnet.",
        readers=masked_readers("mpnet.pooler.dense"),
        copies={"lm_head.decoder.weight": tokens, "lm_head.decoder.bias": "lm_head.bias"},
        rereader="lm_head.",
    )


MPNET = ModelFamily(("mpnet",), specify_mpnet, locate_mpnet)
