"""Where two aligned layers differ: for every head and every hidden unit the tensor with the worst mismatch.

Heads are listed one by one. Units are many: of them the count, the middle and the largest ratio are kept, and those
that rounding does not explain are listed, at most `LOCATED_UNITS` of them, the worst first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.limits.shown import LOCATED_UNITS
from attngeom.models.layer import HEAD_PARTS
from attngeom.models.mismatches import UNIT_PARTS, Mismatch, Mismatches

Name = Callable[[str], str]
Place = tuple[str, Mismatch]
"""The name of a tensor, and its mismatch at one head or unit."""


def mismatch_json(tensor: str, mismatch: Mismatch) -> dict[str, Any]:
    """A mismatch with the name of its tensor."""
    return {
        "tensor": tensor,
        "part": mismatch.part,
        "head": mismatch.index,
        "misfit": mismatch.value,
        "expected": mismatch.expected,
        "allowed": mismatch.allowed,
    }


@dataclass(frozen=True, kw_only=True)
class UnitMismatches:
    """Mismatches of all units of one MLP, in units of what rounding explains; ``listed`` are the worst beyond it."""

    prefix: str
    count: int
    median: float
    largest: float
    beyond: int
    listed: tuple[Place, ...]

    def to_json(self) -> dict[str, Any]:
        rows = [{**mismatch_json(name, m), "unit": m.index} for name, m in self.listed]
        for row in rows:
            del row["head"]
        return {
            "mlp": self.prefix.rstrip(".") or "mlp",
            "count": self.count,
            "median_ratio": self.median,
            "largest_ratio": self.largest,
            "beyond_rounding": self.beyond,
            "listed": rows,
        }


def worst_by_head(mismatches: Sequence[Mismatches], name: Name, prefix: str = "") -> tuple[Place, ...]:
    """For each query head its worst tensor; heads of a group share keys and values."""
    wanted = [f"{prefix}{part}" for part in HEAD_PARTS]
    chosen = [m for m in mismatches if m.part in wanted]
    count = max((len(m.values) for m in chosen if m.part == f"{prefix}query"), default=0)
    chosen = [m for m in chosen if count and count % len(m.values) == 0]
    return _worst(chosen, count, name)


def worst_units(mismatches: Sequence[Mismatches], name: Name, limit: float) -> tuple[UnitMismatches, ...]:
    """For each MLP of the layer its units; ``limit`` is the ratio up to which rounding explains a mismatch."""
    result = []
    for up in (m for m in mismatches if m.part.rpartition(".")[2] == "up"):
        prefix = up.part.removesuffix("up")
        wanted = [f"{prefix}{part}" for part in UNIT_PARTS]
        own = [m for m in mismatches if m.part in wanted and len(m.values) == len(up.values)]
        ratios = np.max([m.ratios for m in own], axis=0)
        beyond = np.flatnonzero(ratios > limit)
        worst = beyond[np.argsort(-ratios[beyond], kind="stable")][:LOCATED_UNITS]
        result.append(
            UnitMismatches(
                prefix=prefix, count=len(ratios), median=float(np.median(ratios)), largest=float(ratios.max()),
                beyond=len(beyond), listed=_worst(own, len(ratios), name, worst),
            )
        )  # fmt: skip
    return tuple(result)


def _worst(mismatches: Sequence[Mismatches], count: int, name: Name, chosen: Array | None = None) -> tuple[Place, ...]:
    """At each chosen one of ``count`` places the tensor of largest ratio; shorter tensors are shared by neighbours."""
    if not mismatches:
        return ()
    table = np.array([np.repeat(m.ratios, count // len(m.values)) for m in mismatches])
    places = []
    for place in range(count) if chosen is None else (int(i) for i in chosen):
        worst = mismatches[int(table[:, place].argmax())]
        at = place * len(worst.values) // count
        places.append((name(worst.part), replace(worst[at], index=place)))
    return tuple(places)
