"""The table of model families: one file each, all behind the contract of `families.contract`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.families import (
    alibi,
    bart,
    bert,
    cohere,
    deberta,
    deepseek,
    falcon_h1,
    gemma,
    glm,
    gpt,
    granite,
    griffin,
    llama,
    llama4,
    minimax,
    nemotron_h,
    olmo,
    opt,
    qwen,
    recurrent,
    t5,
    towers,
)
from attngeom.models.families.contract import ModelFamily, Places
from attngeom.models.families.refused import MISSING
from attngeom.models.specification import TransformerSpec

FILES = (
    gpt, bert, deberta, towers, opt, alibi, llama, llama4, qwen, olmo, gemma, cohere, glm, granite, deepseek, t5, bart,
    recurrent, nemotron_h, falcon_h1, minimax, griffin,
)  # fmt: skip
FAMILIES: Mapping[str, ModelFamily] = {
    row.model_type: row for file in FILES for row in vars(file).values() if isinstance(row, ModelFamily)
}
"""Every family that a file of the list defines."""


def family_of(config: Mapping[str, Any]) -> ModelFamily:
    """The family of a config.json; unknown model types are refused with what is needed to add one."""
    name = config.get("model_type")
    if not isinstance(name, str):
        raise InputError("config.json without model_type given; the model_type of the checkpoint is required")
    if name in MISSING:
        raise InputError(f"model_type {name!r} is not read: it has {MISSING[name]}")
    if name not in FAMILIES:
        raise InputError(
            f"model_type {name[:40]!r} is not known; to add it, write models/families/<name>.py with a "
            "ModelFamily (see families/contract.py) and a reference checkpoint"
        )
    return FAMILIES[name]


def specify(config: Mapping[str, Any]) -> TransformerSpec:
    """The `TransformerSpec` of a config.json."""
    return family_of(config).specify(Config(config))


__all__ = ["FAMILIES", "Config", "ModelFamily", "Places", "family_of", "specify"]
