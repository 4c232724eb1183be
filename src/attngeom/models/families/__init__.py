"""The table of model families: one file each, all behind the contract of `families.contract`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families import (
    bert,
    bloom,
    clip_text,
    cohere,
    deepseek,
    falcon,
    gemma,
    glm,
    gpt,
    gpt_oss,
    granite,
    hybrids,
    llama,
    mamba,
    mbart,
    modernbert,
    mpt,
    nemotron,
    olmo,
    opt,
    phi,
    qwen,
    qwen_next,
    t5,
    vit,
    whisper,
)
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.refused import MISSING
from attngeom.models.specification import TransformerSpec

ROWS = (
    gpt.GPT2,
    gpt.GPT_BIGCODE,
    gpt.GPT_NEO,
    bert.BERT,
    *bert.ROBERTA_ROWS,
    bert.DISTILBERT,
    bert.ELECTRA,
    bert.MPNET,
    modernbert.FAMILY,
    vit.VIT,
    vit.DEIT,
    clip_text.CLIP,
    clip_text.SIGLIP,
    opt.FAMILY,
    gpt.GPT_NEOX,
    gpt.GPTJ,
    gpt.CODEGEN,
    bloom.FAMILY,
    mpt.FAMILY,
    falcon.FAMILY,
    llama.LLAMA,
    llama.SEED_OSS,
    llama.MISTRAL,
    llama.MINISTRAL,
    llama.MIXTRAL,
    qwen.QWEN2,
    qwen.QWEN2_MOE,
    qwen.QWEN3,
    qwen.QWEN3_MOE,
    olmo.OLMO,
    olmo.OLMO2,
    olmo.OLMO3,
    olmo.OLMOE,
    gemma.GEMMA,
    gemma.GEMMA2,
    gemma.GEMMA3,
    phi.PHI,
    phi.PHI3,
    cohere.COHERE,
    cohere.COHERE2,
    glm.GLM,
    glm.GLM4,
    glm.GLM4_MOE,
    glm.DOTS1,
    granite.GRANITE,
    granite.GRANITE_MOE,
    granite.GRANITE_MOE_SHARED,
    nemotron.NEMOTRON,
    nemotron.ARCEE,
    llama.SMOLLM3,
    llama.EXAONE4,
    llama.ERNIE,
    llama.STARCODER2,
    llama.STABLELM,
    gpt_oss.FAMILY,
    deepseek.V2,
    deepseek.V3,
    t5.T5,
    t5.MT5,
    t5.UMT5,
    mbart.BART,
    mbart.MBART,
    mbart.MARIAN,
    mbart.PEGASUS,
    mbart.BLENDERBOT,
    whisper.FAMILY,
    mamba.MAMBA2,
    hybrids.BAMBA,
    hybrids.GRANITE_HYBRID,
    qwen_next.FAMILY,
)
FAMILIES: Mapping[str, ModelFamily] = {name: family for family in ROWS for name in family.model_types}


def family_of(config: Mapping[str, Any]) -> ModelFamily:
    """The family of a config.json; unknown model types are refused with what is needed to add one."""
    name = config.get("model_type")
    if not isinstance(name, str):
        raise InputError("config.json without model_type given; the model_type of the checkpoint is required")
    if name in MISSING:
        raise InputError(f"model_type {name!r} is not read: it has {MISSING[name]}")
    if name not in FAMILIES:
        raise InputError(
            f"model_type {name[:40]!r} is not known; to add it, write models/families/<name>.py with a Family "
            "(specify, locate: see families/contract.py) and a reference checkpoint"
        )
    return FAMILIES[name]


def specify(config: Mapping[str, Any]) -> TransformerSpec:
    """The `TransformerSpec` of a config.json."""
    return family_of(config).specify(Config(config))


__all__ = ["FAMILIES", "Config", "ModelFamily", "Places", "family_of", "specify"]
