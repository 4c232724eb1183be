"""MPNet: RoBERTa without segments, with a table of relative positions that all layers share."""

from __future__ import annotations

from dataclasses import replace

from attngeom.models.configuration import Config
from attngeom.models.families.bert import encoder
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.roberta import MLP_LAYOUT, masked_readers, padding
from attngeom.models.layout import BlockLayout, split_attention
from attngeom.models.specification import TransformerSpec

DISTANCE = 128
"""The largest distance of the table; no key of the configuration changes it."""


def specify(config: Config) -> TransformerSpec:
    spec = encoder(config, "mpnet", unread=padding(config), types=0)
    buckets = config.integer("relative_attention_num_buckets", default=32)
    return replace(spec, stacks=(replace(spec.stack, relative_buckets=buckets, relative_distance=DISTANCE),))


def locate(config: Config) -> Places:
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


FAMILY = ModelFamily(("mpnet",), specify, locate)
