"""Configurations of published models: the keys of their config.json that fix sizes and function.

They let `attngeom model inspect` and the tests answer for published sizes without a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attngeom.errors import InputError
from attngeom.models.families import specify
from attngeom.models.specification import TransformerSpec

_TABLE: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("presets.json").read_text())
PUBLISHED: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: MappingProxyType(config) for name, config in _TABLE.items()}
)
"""By name, as they stand in ``presets.json``."""


def published(name: str) -> TransformerSpec:
    """The description of a published model.

    >>> published("llama-3-8b").parameters
    8030261248
    """
    if name not in PUBLISHED:
        raise InputError(f"published model {name[:40]!r} given; known are {', '.join(PUBLISHED)}")
    return specify(PUBLISHED[name])
