"""What a decision about one layer returns: a verdict with weights or a violated invariant, and its certificate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from attngeom import digits
from attngeom.certification.refutation import Violation
from attngeom.exact.numbers import BIG_PRIME, WORD_PRIME
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.files import coefficients_record
from attngeom.layer.splitting import LayerMatrices
from attngeom.results import Result, Standing
from attngeom.verification.records import Certificate

LayerVerdict = Literal["realizable", "closure_only", "not_realizable", "undecided"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision(Result):
    """Whether something of a kind computes given coefficients: a verdict, and what proves it.

    ``bounds`` names the fields that the claim of a certificate states beside the verdict and the coefficients.
    """

    verdict: LayerVerdict
    coefficients: Coefficients
    witness: Mapping[str, Any] = field(default_factory=dict)
    kind: ClassVar[str]
    bounds: ClassVar[tuple[str, ...]]
    primes: ClassVar[tuple[int, ...]]

    @classmethod
    def of(cls, verdict: LayerVerdict, reason: str, coefficients: Coefficients, **found: Any) -> Self:
        """The record of a verdict: proven for exact coefficients, an estimate for floats."""
        standing: Standing = "proven" if coefficients.domain.is_exact else "estimate"
        standing = "undecided" if verdict == "undecided" else standing
        return cls(standing=standing, verdict=verdict, reason=reason, coefficients=coefficients, **found)

    @property
    def is_exact(self) -> bool:
        return self.coefficients.domain.is_exact

    @property
    def is_positive(self) -> bool | None:
        return None if self.verdict == "undecided" else self.verdict == "realizable"

    @abstractmethod
    def evidence(self) -> dict[str, Any]:
        """What a certificate holds as witness."""

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate, for exact input with a verdict; built when asked for, it contains the coefficients."""
        if not self.is_exact or self.verdict == "undecided":
            return None
        claim = {"kind": self.kind, **self.select("verdict", *self.bounds)}
        claim["coefficients"] = coefficients_record(self.coefficients)
        return Certificate(claim, self.evidence(), {"seed": self.seed, "primes": list(self.primes)})

    @property
    def recheck(self) -> str | None:
        if not self.is_exact or self.verdict == "undecided":
            return None
        return "attngeom.verify(answer.certificate), or attngeom certify … --out c.json and attngeom verify c.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class Certification(Decision):
    """The decision whether one attention layer computes given coefficients, over the reals.

    ``verdict``: "realizable" (``points`` hold weights: all of the fiber up to scale for t ≥ 2), "closure_only"
    (``points`` hold complex weights, and no real ones exist), "not_realizable" (``violated`` names an invariant with
    its value, or ``witness`` holds another obstruction), "undecided" (``reason`` says why). ``rank`` is that of A. For
    float input ``distance`` and ``tolerance`` are relative to the norm of the coefficients, and nothing is proven.
    """

    attention: int | None
    seed: int
    rank: int | None = None
    points: tuple[LayerMatrices, ...] = ()
    violated: Violation | None = None
    distance: float | None = None
    tolerance: float | None = None
    kind = "layer"
    bounds = ("attention", "rank")
    primes = (WORD_PRIME, BIG_PRIME)

    def evidence(self) -> dict[str, Any]:
        witness = dict(self.witness)
        if self.points:
            witness["field"] = self.points[0].domain.written
            witness["points"] = [point.to_json() for point in self.points]
        if self.violated is not None:
            witness["violated"] = self.violated.evidence
        return witness

    def to_json(self) -> dict[str, Any]:
        """The answer of the command line: verdict, reason, rank, and weights or the violated invariant."""
        record = {
            **self.select("verdict", "standing", "reason"),
            "exact": self.is_exact,
            **self.select("rank", "attention"),
        }
        if self.points:
            width = max(self.attention or self.rank or 1, 1)
            fits = self.rank is not None and self.rank <= width
            shown = [point.to_json(width if fits else None) for point in self.points]
            record["field"] = self.points[0].domain.written
            record["weights"] = shown[0]
            record["fiber"] = shown
        if self.violated is not None:
            record["violated"] = self.violated.to_json()
        if self.witness:
            record["witness"] = dict(self.witness)
        if self.distance is not None:
            record["residual"], record["tolerance"] = self.distance, self.tolerance
        return record

    def rows(self) -> Mapping[str, Any]:
        lines: dict[str, Any] = {"verdict": self.verdict, "standing": self.standing, "reason": self.reason}
        if self.rank is not None:
            lines["rank A"] = self.rank
        if self.distance is not None:
            lines["distance"] = f"{digits.error(self.distance, 3)} relative, tolerance {self.tolerance:.1e}"
        return lines


@dataclass(frozen=True, eq=False)
class LayerQuestion:
    """Whether a real layer with rank A ≤ ``attention`` (None: any rank) has these coefficients."""

    coefficients: Coefficients
    attention: int | None
    seed: int

    def answer(self, verdict: LayerVerdict, reason: str, **found: Any) -> Certification:
        return Certification.of(verdict, reason, **vars(self), **found)

    def zero(self, **found: Any) -> Certification:
        """The answer for the zero function."""
        point = LayerMatrices.zero(self.coefficients.d, self.coefficients.d_out, self.coefficients.domain)
        return self.answer("realizable", "the zero function, which A = 0 computes", rank=0, points=(point,), **found)
