"""The answer of a recovery: weights, or the stage at which it ended and the reason why there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from attngeom import digits
from attngeom.exact.domains import RR, Domain
from attngeom.layer.blackbox import BlackBox
from attngeom.network import Weights
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.results import Failure, Result

Outcome = Literal["recovered", "not identifiable", "failed", "closure_only"]


def layer_failure(layer: int, reason: str, is_hypothesis: bool = False) -> Failure:
    """The failure of a search at a layer, counted from 0."""
    return Failure(stage=f"layer {layer + 1}", reason=f"layer {layer + 1}: {reason}", is_hypothesis=is_hypothesis)


def undetermined(layer: int, reason: str) -> Failure:
    """A layer, counted from 0, that the values do not show."""
    return layer_failure(layer, reason, is_hypothesis=True)


class Attempt(NamedTuple):
    """Weights, and their largest relative error at inputs that were not used to find them."""

    error: float
    weights: Weights
    separation: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Recovery(Result):
    """Weights that give a function, up to its fiber: both points of a two-point fiber, none unless they were checked.

    ``outcome``: "recovered"; "not identifiable" (a hypothesis fails, ``reason`` says which); "closure_only" (complex
    weights exist, real ones do not); "failed" (no weights of this architecture fit, or not to the tolerance).
    ``stage`` is where a recovery without weights ended. ``error_estimate`` is the largest relative error at inputs
    that were not used. ``standing``: "proven" for exact coefficients; "probabilistic" if the outputs at random inputs
    over GF(p) agree; else "estimate", or "undecided" where a search from values found nothing.
    """

    outcome: Outcome
    domain: Domain
    weights: tuple[Weights, ...] = ()
    stage: str | None = None
    error_estimate: float | None = None
    queries: int = 0
    precision: int | None = None
    separation: float | None = None

    @classmethod
    def stopped(cls, failure: Failure, **known: Any) -> Recovery:
        """The answer of a search that failed; undecided unless ``known`` says more."""
        outcome: Outcome = "not identifiable" if failure.is_hypothesis else "failed"
        return cls(
            **{"standing": "undecided", "outcome": outcome, "reason": failure.reason, "stage": failure.stage, **known}
        )

    @classmethod
    def found(cls, weights: Weights, reason: str, error: float, **known: Any) -> Recovery:
        """The answer with weights that were checked at inputs that were not used; an estimate unless ``known``."""
        checked = {"weights": (weights,), "domain": weights.domain, "error_estimate": error}
        return cls(**{"standing": "estimate", "outcome": "recovered", "reason": reason, **checked, **known})

    @classmethod
    def best(cls, attempts: Iterable[Attempt | Failure], box: BlackBox, tolerance: float, seed: int) -> Recovery:
        """The answer of a search in floats: the weights of least error, if that is within the tolerance.

        The first attempt near machine precision is the last one that is made.
        """
        best: Attempt | None = None
        for attempt in attempts:
            if isinstance(attempt, Failure):
                failure = attempt
            elif best is None or attempt.error < best.error:
                best = attempt
            if best is not None and best.error <= min(tolerance, 1e-10):
                break
        known: dict[str, Any] = {"queries": box.queries, "seed": seed}
        if best is None:
            return cls.stopped(failure, domain=RR, **known)
        error, weights, known["separation"], note = best
        if error <= tolerance:
            return cls.found(weights, f"held-out outputs agree to {digits.error(error)}{note}", error, **known)
        reason = (
            f"held-out outputs differ by {digits.error(error)}, more than {tolerance:.0e}: double precision does not"
            " suffice, or the function is not of this architecture"
        )
        failure = Failure(stage="check", reason=reason)
        return cls.stopped(failure, error_estimate=error, domain=weights.domain, **known)

    @property
    def is_exact(self) -> bool:
        """Whether the weights reproduce the given coefficients, or all outputs that were checked, exactly."""
        return self.outcome == "recovered" and self.domain.is_exact

    @property
    def is_positive(self) -> bool | None:
        return None if self.outcome == "not identifiable" else self.outcome == "recovered"

    def to_json(self) -> dict[str, Any]:
        record = {
            **self.select("outcome", "standing", "reason"),
            "num_points": len(self.weights),
            "exact": self.is_exact,
            "domain": self.domain.name,
            **self.select("error_estimate", "queries", "precision", "separation", "seed"),
        }
        if self.weights and self.weights[0].architecture.num_layers == 1:
            record["points"] = [
                {
                    "A": matrix_to_json(weights.attention_matrices()[0][0], weights.domain),
                    "V": matrix_to_json(weights.value_matrices()[0][0], weights.domain),
                }
                for weights in self.weights
            ]
        return record

    def rows(self) -> Mapping[str, Any]:
        lines: dict[str, Any] = {self.outcome: "", **self.select("standing", "reason")}
        lines["exact"] = "yes" if self.is_exact else "no"
        if self.error_estimate is not None and not self.is_exact:
            lines["error estimate"] = digits.error(self.error_estimate)
        if self.domain.degree > 1:
            lines["field"] = self.domain.label
        for index, point in enumerate(self.to_json().get("points", [])):
            for name in ("A", "V"):
                lines[f"{name} ({index + 1})"] = digits.matrix(point[name])
        return lines
