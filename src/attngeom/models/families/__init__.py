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
    codegen,
    cohere,
    deepseek,
    distilbert,
    ernie,
    exaone4,
    falcon,
    gemma,
    gemma2,
    gemma3,
    glm,
    glm_moe,
    gpt2,
    gpt_bigcode,
    gpt_neo,
    gpt_neox,
    gpt_oss,
    gptj,
    granite,
    llama,
    mbart,
    mistral,
    mixtral,
    mpnet,
    mpt,
    olmo,
    olmo2,
    olmoe,
    opt,
    phi,
    phi3,
    qwen,
    roberta,
    smollm3,
    stablelm,
    starcoder2,
    t5,
    vit,
    whisper,
)
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.refused import MISSING
from attngeom.models.specification import TransformerSpec

ROWS = (
    gpt2.FAMILY,
    gpt_bigcode.FAMILY,
    gpt_neo.FAMILY,
    bert.FAMILY,
    *roberta.ROWS,
    distilbert.DISTILBERT,
    distilbert.ELECTRA,
    mpnet.FAMILY,
    vit.FAMILY,
    clip_text.CLIP,
    clip_text.SIGLIP,
    opt.FAMILY,
    gpt_neox.FAMILY,
    gptj.FAMILY,
    codegen.FAMILY,
    bloom.FAMILY,
    mpt.FAMILY,
    falcon.FAMILY,
    llama.LLAMA,
    llama.SEED_OSS,
    mistral.MISTRAL,
    mistral.MINISTRAL,
    mixtral.FAMILY,
    qwen.QWEN2,
    qwen.QWEN3,
    qwen.QWEN3_MOE,
    olmo.FAMILY,
    olmo2.OLMO2,
    olmo2.OLMO3,
    olmoe.FAMILY,
    gemma.FAMILY,
    gemma2.FAMILY,
    gemma3.FAMILY,
    phi.FAMILY,
    phi3.FAMILY,
    cohere.COHERE,
    cohere.COHERE2,
    glm.GLM,
    glm.GLM4,
    glm_moe.GLM4_MOE,
    glm_moe.DOTS1,
    granite.GRANITE,
    granite.GRANITE_MOE,
    smollm3.FAMILY,
    exaone4.FAMILY,
    ernie.FAMILY,
    starcoder2.FAMILY,
    stablelm.FAMILY,
    gpt_oss.FAMILY,
    deepseek.V2,
    deepseek.V3,
    t5.T5,
    t5.MT5,
    mbart.MBART,
    mbart.PEGASUS,
    mbart.BLENDERBOT,
    whisper.FAMILY,
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
