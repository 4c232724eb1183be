"""A formula with its source, its status and its hypotheses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["theorem", "computed"]


@dataclass(frozen=True)
class DimensionFormula:
    """A value with its source; it is claimed only if ``applies``.

    ``status``: a theorem, or computed (the value is a proven upper bound, equality was found by exact computation in
    all tested cases). ``hypotheses`` says of each whether the architecture satisfies it; ``theorem`` is the name under
    which a certificate cites it.
    """

    value: int
    source: str
    status: Status
    hypotheses: Mapping[str, bool]
    theorem: str | None = None

    @property
    def applies(self) -> bool:
        return all(self.hypotheses.values())

    def to_json(self) -> dict[str, Any]:
        claim = {"value": self.value, "source": self.source, "applies": self.applies, "status": self.status}
        return {**claim, "hypotheses": dict(self.hypotheses)}
