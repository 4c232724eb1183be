"""What a decision about one layer returns: a verdict with weights or a violated invariant, and its certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from attngeom.certification.refutation import Violation
from attngeom.exact.domains import Array, Domain
from attngeom.exact.primes import BIG_PRIME, WORD_PRIME
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.files import coefficients_to_json
from attngeom.network.factorization import factor_attention
from attngeom.verification.records import Certificate

LayerVerdict = Literal["realizable", "closure_only", "not_realizable", "undecided"]


@dataclass(frozen=True, eq=False)
class LayerPoint:
    """Weights (A, V) of one layer over ``domain``: A is d×d, V is d_out×d."""

    A: Array
    V: Array
    domain: Domain

    @property
    def field_name(self) -> str:
        """Q, Q(sqrt(D)) or RR."""
        return self.domain.written

    def to_json(self, attention: int | None = None) -> dict[str, Any]:
        """A and V row by row; with ``attention``, also Q and K of that width with Kᵀ Q = A."""
        arrays = {"A": self.A, "V": self.V}
        if attention is not None:
            arrays["Q"], arrays["K"] = factor_attention(self.A, attention, self.domain)
        return {name: [[self.domain.format(x) for x in row] for row in array] for name, array in arrays.items()}


@dataclass(frozen=True, eq=False)
class Certification:
    """The decision whether one attention layer computes given coefficients, over the reals.

    ``verdict``: "realizable" (``points`` hold weights: all of the fiber up to scale for t ≥ 2), "closure_only"
    (``points`` hold complex weights, and no real ones exist), "not_realizable" (``violated`` names an invariant with
    its value, or ``witness`` holds another obstruction), "undecided" (``reason`` says why). ``rank`` is that of A. For
    float input ``residual`` and ``tolerance`` are relative to the norm of the coefficients, and nothing is proven.
    """

    verdict: LayerVerdict
    reason: str
    coefficients: Coefficients
    attention: int | None
    seed: int
    rank: int | None = None
    points: tuple[LayerPoint, ...] = ()
    violated: Violation | None = None
    witness: Mapping[str, Any] = field(default_factory=dict)
    residual: float | None = None
    tolerance: float | None = None

    @property
    def is_exact(self) -> bool:
        return self.coefficients.domain.is_exact

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate, for exact input with a verdict; built when asked for, it contains the coefficients."""
        if not self.is_exact or self.verdict == "undecided":
            return None
        claim = {
            "kind": "layer",
            "verdict": self.verdict,
            "attention": self.attention,
            "rank": self.rank,
            "coefficients": coefficients_to_json(self.coefficients),
        }
        witness = dict(self.witness)
        if self.points:
            witness["field"] = self.points[0].field_name
            witness["points"] = [point.to_json() for point in self.points]
        if self.violated is not None:
            witness["violated"] = {key: value for key, value in self.violated.to_json().items() if key != "label"}
        return Certificate(claim, witness, {"seed": self.seed, "primes": [WORD_PRIME, BIG_PRIME]})

    def to_json(self) -> dict[str, Any]:
        """The answer of the command line: verdict, reason, rank, and weights or the violated invariant."""
        record: dict[str, Any] = {
            "verdict": self.verdict,
            "reason": self.reason,
            "exact": self.is_exact,
            "rank": self.rank,
            "attention": self.attention,
        }
        if self.points:
            width = max(self.attention or self.rank or 1, 1)
            fits = self.rank is not None and self.rank <= width
            shown = [point.to_json(width if fits else None) for point in self.points]
            record["field"] = self.points[0].field_name
            record["weights"] = shown[0]
            record["fiber"] = shown
        if self.violated is not None:
            record["violated"] = self.violated.to_json()
        if self.witness:
            record["witness"] = dict(self.witness)
        if self.residual is not None:
            record["residual"], record["tolerance"] = self.residual, self.tolerance
        return record
