"""Kinds of attention; this table is the list of all of them."""

from __future__ import annotations

from typing import Any

from attngeom.errors import InputError
from attngeom.network.attention.kind import Attention, Kind
from attngeom.network.attention.lightning import Lightning
from attngeom.network.attention.linear import Differential, Linear
from attngeom.network.attention.recurrent import (
    DeltaRule,
    GatedDelta,
    GatedLinear,
    KimiDelta,
    Retention,
    ScalarGate,
    StateSpace,
)
from attngeom.network.attention.sigmoid import Sigmoid
from attngeom.network.attention.softmax import Softmax

RULES: dict[str, type[Attention]] = {kind.name: kind for kind in (Lightning, Softmax, Sigmoid)}
"""The kinds of the papers: weights that are functions of one matrix of scores."""

KINDS: dict[str, type[Kind]] = RULES | {
    kind.name: kind
    for kind in (
        Retention,
        ScalarGate,
        StateSpace,
        GatedLinear,
        DeltaRule,
        GatedDelta,
        KimiDelta,
        Linear,
        Differential,
    )
}


def find_kind(name: Any) -> type[Kind]:
    """The kind of attention of that name.

    >>> find_kind("softmax").has_temperature
    True
    """
    if not isinstance(name, str) or name not in KINDS:
        raise InputError(f"kind {str(name)[:40]!r} given; one of {', '.join(KINDS)} is required")
    return KINDS[name]


__all__ = ["KINDS", "RULES", "Attention", "Kind", "Lightning", "Sigmoid", "Softmax", "find_kind"]
