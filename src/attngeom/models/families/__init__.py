"""The table of model families: one file each, all behind the contract of `families.contract`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families import (
    bert,
    bloom,
    cohere,
    deepseek,
    falcon,
    gemma2,
    gpt2,
    gpt_neox,
    gpt_oss,
    gptj,
    llama,
    mistral,
    mixtral,
    olmo2,
    opt,
    phi3,
    qwen,
    t5,
    vit,
    whisper,
)
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.specification import TransformerSpec

ROWS = (
    gpt2.FAMILY,
    bert.FAMILY,
    vit.FAMILY,
    opt.FAMILY,
    gpt_neox.FAMILY,
    gptj.FAMILY,
    bloom.FAMILY,
    falcon.FAMILY,
    llama.FAMILY,
    mistral.FAMILY,
    mixtral.FAMILY,
    qwen.QWEN2,
    qwen.QWEN3,
    qwen.QWEN3_MOE,
    olmo2.FAMILY,
    gemma2.FAMILY,
    phi3.FAMILY,
    cohere.FAMILY,
    gpt_oss.FAMILY,
    deepseek.V2,
    deepseek.V3,
    t5.FAMILY,
    whisper.FAMILY,
)
FAMILIES: Mapping[str, ModelFamily] = {name: family for family in ROWS for name in family.model_types}


def family_of(config: Mapping[str, Any]) -> ModelFamily:
    """The family of a config.json; unknown model types are refused with what is needed to add one."""
    name = config.get("model_type")
    if not isinstance(name, str):
        raise InputError("config.json without model_type given; the model_type of the checkpoint is required")
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
