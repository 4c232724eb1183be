"""RoBERTa, XLM-RoBERTa, CamemBERT, data2vec: BERT with positions that begin behind that of padding.

RoBERTa-PreLayerNorm has its norms before the sublayers.
"""

from __future__ import annotations

from collections.abc import Callable

from attngeom.models.configuration import Config
from attngeom.models.families.bert import ATTENTION, encoder
from attngeom.models.families.contract import ModelFamily, Places, StateReader
from attngeom.models.layout import BlockLayout, MLPLayout
from attngeom.models.specification import TransformerSpec

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


def _places(base: str, before: bool) -> Callable[[Config], Places]:
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


def _row(model_type: str, base: str, before: bool = False) -> ModelFamily:
    def specify(config: Config) -> TransformerSpec:
        return encoder(config, model_type, unread=padding(config), before=before)

    return ModelFamily((model_type,), specify, _places(base, before))


ROWS = (
    _row("roberta", "roberta."),
    _row("xlm-roberta", "roberta."),
    _row("camembert", "roberta."),
    _row("data2vec-text", "data2vec_text."),
    _row("roberta-prelayernorm", "roberta_prelayernorm.", before=True),
)
