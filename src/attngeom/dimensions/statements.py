"""A formula with its source, its status and its hypotheses, each with whether it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["theorem", "computed"]


@dataclass(frozen=True)
class Condition:
    """A condition of a formula, and whether the architecture satisfies it."""

    text: str
    holds: bool


@dataclass(frozen=True)
class DimensionFormula:
    """A value with its source; it is claimed only if ``applies``.

    ``status``: a theorem, or computed (the value is a proven upper bound, equality was found by exact computation in
    all tested cases). ``theorem`` is the name under which a certificate cites it.
    """

    value: int
    source: str
    status: Status
    hypotheses: tuple[Condition, ...]
    theorem: str | None = None

    @property
    def applies(self) -> bool:
        return all(hypothesis.holds for hypothesis in self.hypotheses)

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "source": self.source,
            "applies": self.applies,
            "status": self.status,
            "hypotheses": {hypothesis.text: hypothesis.holds for hypothesis in self.hypotheses},
        }
