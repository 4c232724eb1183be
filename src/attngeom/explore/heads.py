"""What a page tells of each head of a checkpoint: rank, gap, condition, λ of its matrices, a head that it repeats."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite, log10
from typing import NamedTuple

import numpy as np

from attngeom import digits
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.exact.precise import measured_rank
from attngeom.explore.pages import math
from attngeom.learning.blocks import head_blocks
from attngeom.limits.rounding import HEADS_REPEATED
from attngeom.models.findings import HeadRow
from attngeom.network import Weights

MEASURES = {
    "condition": "condition of A (log₁₀ of the largest by the least singular value that counts)",
    "rank": "rank of A",
    "gap": "gap of the singular values at that rank (log₁₀)",
    "lambda": "learning coefficient λ of the matrix A of the head in its weights",
    "coincidence": "heads that repeat another head of their layer",
}


class HeadFacts(NamedTuple):
    """One head; ``gap`` is None for exact ranks and where nothing lies below, ``twin`` the head that it repeats.

    ``coefficient`` is the learning coefficient of its matrix A in its weights, None where it is not proven.
    """

    layer: int
    head: int
    rank: int
    gap: float | None
    condition: float
    twin: int | None
    learned: str
    coefficient: Fraction | None

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of a table of heads."""
        gap = "–" if self.gap is None else digits.gap(self.gap)
        twin = "–" if self.twin is None else f"repeats head {self.twin}"
        return (str(self.layer), str(self.head), str(self.rank), gap, f"{self.condition:.3g}", twin, math(self.learned))

    def cell(self, measure: str, width: int) -> tuple[float | None, str]:
        """The size between 0 and 1 and the text of a cell of the map."""
        if measure == "rank":
            return self.rank / max(width, 1), str(self.rank)
        if measure == "coincidence":
            return (0.0, "–") if self.twin is None else (1.0, f"= {self.twin}")
        if measure == "lambda":
            value = self.coefficient
            return (None, "–") if value is None else (float(value) / (width * width), str(value))
        ratio = self.condition if measure == "condition" else self.gap
        if ratio is None or not isfinite(ratio) or ratio <= 0:
            return None, "–"
        size = log10(ratio)
        return min(1.0, size / 16), f"{size:.1f}"


def facts_of_weights(weights: Weights) -> list[HeadFacts]:
    """The heads of a network; ranks are exact over Q and measured over floats, conditions are of floats."""
    facts, domain = [], weights.domain
    for index, (heads, blocks) in enumerate(zip(weights.layers, head_blocks(weights), strict=True)):
        floats = [[RR.convert(m) for m in (h.attention_matrix(domain), h.value_matrix(domain))] for h in heads]
        for place, head in enumerate(heads):
            rank = measured_rank(head.attention_matrix(domain), domain)
            values = lapack.svdvals(floats[place][0])[: rank.value]
            condition = float(values[0] / values[-1]) if rank.value and values[-1] > 0 else inf if rank.value else 1.0
            twin = next((k for k in range(place) if _repeats(floats[k], floats[place])), None)
            learned = ", ".join(f"{block.name}: {block.pair.value}" for block in blocks[place])
            coefficient = next((block.pair.value for block in blocks[place] if block.name.startswith("A")), None)
            facts.append(HeadFacts(index, place, rank.value, rank.gap, condition, twin, learned, coefficient))
    return facts


def _repeats(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(np.linalg.norm(a - b) <= HEADS_REPEATED * np.linalg.norm(a) for a, b in zip(one, other, strict=True))


def facts_of_model(rows: Sequence[HeadRow]) -> list[HeadFacts]:
    """The heads of a transformer, its self-attention; λ is not proven for these blocks."""
    facts = []
    for row in rows:
        if row.part == "attention":
            values, rank = row.query_key, row.key_rank
            gap = values[rank - 1] / values[rank] if 0 < rank < len(values) and values[rank] > 0 else None
            facts.append(HeadFacts(row.layer, row.head, rank, gap, row.condition, row.twin, "not proven", None))
    return facts


def map_of_heads(facts: Sequence[HeadFacts], measure: str) -> list[list[tuple[float | None, str]]]:
    """The cells of the map of layers × heads for one measure."""
    width = max((fact.rank for fact in facts), default=1)
    layers = sorted({fact.layer for fact in facts})
    return [[fact.cell(measure, width) for fact in facts if fact.layer == layer] for layer in layers]
