"""Pairs of models whose history is known: how alike they are, as numbers that ``benchmarks/lineage.py`` made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from attngeom.files import read_json

TABLE = Path(__file__).with_name("reference.json")
INDEPENDENT = ("independent, same data", "independent, other data")
"""Kinds of pairs of which neither was made from the other."""
STRANGERS = ("independent, four model types, same data", "independent, four model types, other data")
"""The same of ``benchmarks/lineage_strangers.py``, from the first values of transformers and on real text."""


@dataclass(frozen=True, kw_only=True)
class PairKind:
    """Pairs with one history: how many, and the least, middle and largest similarity."""

    name: str
    pairs: int
    least: float
    median: float
    largest: float


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The table that a similarity is held against."""

    pairs: int
    """Independent pairs."""
    largest_independent: float
    largest_layer: float
    """The largest similarity of a single layer in an independent pair."""
    kinds: tuple[PairKind, ...]
    made_by: str

    def nearest(self, similarity: float) -> list[PairKind]:
        """The kinds of derived pairs that were so alike, to three digits; else the one whose median is nearest.

        >>> [kind.name for kind in reference().nearest(0.96)]
        ['fine-tuned long']
        """
        derived = [kind for kind in self.kinds if kind.name not in (*INDEPENDENT, *STRANGERS)]
        shown = round(similarity, 3)
        around = [kind for kind in derived if round(kind.least, 3) <= shown <= round(kind.largest, 3)]
        return around or [min(derived, key=lambda kind: abs(kind.median - similarity))]

    def to_json(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs, "largest_independent": self.largest_independent, "largest_layer": self.largest_layer,
            "made_by": self.made_by,
        }  # fmt: skip


@cache
def reference() -> Reference:
    """The reference that is shipped.

    >>> reference().pairs >= 100
    True
    """
    table = read_json(TABLE)
    kinds = tuple(PairKind(**row) for row in table["kinds"])
    return Reference(
        pairs=table["pairs"], largest_independent=table["largest_independent"], largest_layer=table["largest_layer"],
        kinds=kinds, made_by=table["made_by"],
    )  # fmt: skip
