"""DeBERTa-v2 and v3: BERT whose contents are scored against states of distances, which all layers share."""

from __future__ import annotations

from dataclasses import replace

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families.bert import AFTER, MLP_LAYOUT, encoder, encoder_places
from attngeom.models.families.contract import ModelFamily, Places, StateReader
from attngeom.models.layout import split_attention
from attngeom.models.specification import Disentangled, TransformerSpec


def _kinds(config: Config) -> list[str]:
    """Which scores there are beside those of contents against contents: c2p, p2c."""
    given = config.raw("pos_att_type") or []
    kinds = [kind.strip() for kind in given.lower().split("|")] if isinstance(given, str) else given
    if not isinstance(kinds, list) or not all(kind in ("c2p", "p2c") for kind in kinds):
        raise InputError(f"config pos_att_type = {str(given)[:40]} given; c2p, p2c or both are required")
    return kinds


def _disentangled(config: Config, kinds: list[str]) -> Disentangled:
    if not config.flag("share_att_key", default=False):
        raise InputError("config share_att_key = false given; maps of their own for states of distances are not known")
    context, buckets = config.integer("max_position_embeddings", default=512), config.raw("position_buckets")
    given = config.raw("max_relative_positions")
    furthest = config.integer("max_relative_positions", least=-1, default=-1) if given is not None else -1
    furthest = context if furthest < 1 else furthest
    shares = buckets is not None and config.integer("position_buckets", least=-1) > 0
    span = config.integer("position_buckets") if shares else furthest
    return Disentangled(span=span, furthest=furthest, buckets=shares, keys="c2p" in kinds, queries="p2c" in kinds)


def describe_deberta(config: Config) -> TransformerSpec:
    width = config.integer("hidden_size", default=1536)
    config.refuse("conv_kernel_size", 0)
    config.refuse("embedding_size", width)
    kinds, norms = _kinds(config), config.raw("norm_rel_ebd") or "none"
    if not isinstance(norms, str) or set(norms.replace(" ", "").lower().split("|")) - {"none", "layer_norm"}:
        raise InputError(f"config norm_rel_ebd = {str(norms)[:40]} given; layer_norm or none is required")
    spec = encoder(config, types=config.integer("type_vocab_size", default=0, least=0))
    stack, attention = spec.stack, spec.stack.block(0).attention
    assert attention is not None
    scale = (attention.head_dim * (1 + len(set(kinds)))) ** -0.5
    own = _disentangled(config, kinds) if config.flag("relative_attention", default=False) else None
    attention = replace(attention, scale=scale, disentangled=own if kinds else None)
    blocks = tuple(replace(block, attention=attention) for block in stack.kinds)
    normed = "layer_norm" in norms.lower() and own is not None and bool(kinds)
    stack = replace(
        stack, kinds=blocks, distances=0 if own is None or not kinds else 2 * own.span,
        distance_norm=stack.embedding_norm if normed else None,
        positions=stack.positions if config.flag("position_biased_input", default=True) else 0,
    )  # fmt: skip
    return replace(spec, stacks=(stack,))


LEGACY, HEAD = "cls.predictions.transform.dense", "lm_predictions.lm_head.dense"


def places_deberta(config: Config) -> Places:
    tokens, types = "deberta.embeddings.word_embeddings.weight", config.integer("type_vocab_size", default=0, least=0)
    attention = split_attention("attention.self.{}_proj", "attention.output.dense", ("query", "key", "value"))
    return encoder_places(
        "deberta.",
        types=types > 0,
        block=(attention, MLP_LAYOUT, AFTER),
        others=("cls.", "lm_predictions.", "pooler.", "classifier.", "qa_outputs."),
        readers=(
            *map(StateReader, (LEGACY, HEAD, "pooler.dense")),
            StateReader("classifier", "pooler.dense"),
            StateReader("qa_outputs"),
        ),
        copies={"cls.predictions.decoder.weight": tokens, "cls.predictions.decoder.bias": "cls.predictions.bias"},
        rereader="lm_predictions." if config.raw("legacy") is False else "cls.predictions.",
        distances="deberta.encoder.rel_embeddings.weight",
        distance_norm="deberta.encoder.LayerNorm",
    )


DEBERTA = ModelFamily(
    "deberta-v2", describe_deberta, places_deberta, {"layer_norm_eps": 1e-7, "max_position_embeddings": 512}
)
