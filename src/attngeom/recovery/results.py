"""The answer of a recovery: weights, or the reason why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from attngeom.exact.domains import Domain
from attngeom.network import Weights

Outcome = Literal["recovered", "not identifiable", "failed", "closure_only"]


@dataclass(frozen=True, eq=False)
class Recovery:
    """Weights that give a function, up to its fiber: both points of a two-point fiber, none unless they were checked.

    ``outcome``: "recovered"; "not identifiable" (a hypothesis fails, ``reason`` says which); "closure_only" (complex
    weights exist, real ones do not); "failed" (no weights of this architecture fit, or not to the tolerance).
    ``error_estimate`` is the largest relative error at inputs that were not used. ``is_exact`` weights reproduce the
    given coefficients, or all outputs that were checked, exactly.
    """

    outcome: Outcome
    reason: str
    weights: tuple[Weights, ...]
    error_estimate: float | None
    queries: int
    seed: int
    domain: Domain
    precision: int | None = None
    separation: float | None = None
    is_exact: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "num_points": len(self.weights),
            "exact": self.is_exact,
            "domain": self.domain.name,
            "error_estimate": self.error_estimate,
            "queries": self.queries,
            "precision": self.precision,
            "separation": self.separation,
            "seed": self.seed,
        }
