"""What a theorem says of a point: its pair (λ, m), or why it says nothing and which bounds are left."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from attngeom.learning.pairs import Pair


@dataclass(frozen=True)
class PairFinding:
    """The pair (λ, m) with the theorem that gives it; or no pair, the reason and proven bounds for λ.

    ``witness`` is what a recheck needs beside the weights: the prime and seed of ranks mod p, or nothing.
    """

    theorem: str
    reason: str
    pair: Pair | None = None
    lower: Fraction | None = None
    upper: Fraction | None = None
    is_clear: bool = True
    witness: dict[str, Any] = field(default_factory=dict)
