"""BERT: LayerNorm of the residual stream after each sublayer, learned positions and segments, attention both ways."""

from __future__ import annotations

from attngeom.models.configuration import Config
from attngeom.models.families.contract import ModelFamily, Places, StateReader, plain_attention, plain_mlp, stack_of
from attngeom.models.layout import BlockLayout, MLPLayout, split_attention
from attngeom.models.specification import Norms, TransformerBlock, TransformerSpec

ATTENTION = split_attention("attention.self.{}", "attention.output.dense", ("query", "key", "value"))


def encoder(
    config: Config, family: str, *, unread: int = 0, types: int | None = None, before: bool = False
) -> TransformerSpec:
    """The encoder of BERT; ``unread`` rows of its positions are never read, ``before``: norms are before sublayers."""
    config.refuse("add_cross_attention", False)
    config.refuse("position_embedding_type", "absolute")
    width = config.integer("hidden_size")
    causal = config.flag("is_decoder", default=False)
    mlp = plain_mlp(config.integer("intermediate_size"), config.activation("hidden_act", default="gelu"))
    norm = config.layer_norm(default=1e-12)
    block = TransformerBlock(
        attention=plain_attention(config.integer("num_attention_heads"), width, causal=causal),
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


def specify(config: Config) -> TransformerSpec:
    return encoder(config, "bert")


def locate(config: Config) -> Places:
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


FAMILY = ModelFamily(("bert",), specify, locate)
