"""What a claim is, what running it finds, and how the outcome follows from the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from attngeom.errors import FormatError

Paper = Literal["G", "I"]
Outcome = Literal["confirmed", "confirmed with a correction", "refuted", "not run"]
Evidence = Literal[
    "exact proof",
    "certificate",
    "exact at the stated sizes",
    "exact computation",
    "exact computation mod p",
    "float experiment",
]
Part = Literal["claim", "correction", "support"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
PAPERS: Mapping[Paper, str] = {
    "G": "Henry, Marchetti, Kohn: Geometry of Lightning Self-Attention: Identifiability and Dimension (ICLR 2025)",
    "I": "Alexandr, Montúfar et al.: Algebraic Invariants of Lightning Self-Attention (2026)",
}


@dataclass(frozen=True)
class Check:
    """One statement that was computed, and whether it holds.

    ``part``: "claim" is what the paper says, "correction" what holds instead, "support" what the test itself needs
    (a hypothesis is necessary, a point is generic).
    """

    statement: str
    holds: bool
    part: Part = "claim"


@dataclass(frozen=True)
class Finding:
    """The result of running one claim: its checks, numbers worth keeping, and what they rest on.

    ``counterexample`` is the smallest one, in words, if a part of the claim fails; ``data`` is what a figure draws.
    ``error_bound`` bounds the probability that a check mod p passes by accident.
    """

    evidence: str
    checks: tuple[Check, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    counterexample: str | None = None
    primes: tuple[int, ...] = ()
    error_bound: float = 0.0
    data: Mapping[str, Any] | None = None

    @property
    def outcome(self) -> Outcome:
        """Confirmed if everything holds; with a correction if only parts of the claim fail and corrections hold.

        >>> Finding("", (Check("2 + 2 = 5", False), Check("2 + 2 = 4", True, "correction"))).outcome
        'confirmed with a correction'
        """
        failed = {check.part for check in self.checks if not check.holds}
        if not failed:
            return "confirmed"
        corrected = any(check.part == "correction" for check in self.checks)
        return "confirmed with a correction" if failed == {"claim"} and corrected else "refuted"


@dataclass(frozen=True)
class Work:
    """How much to compute: the quick sizes or the full ones, and the seed of every random choice."""

    quick: bool = False
    seed: int = 0

    def choose(self, quick: Any, full: Any) -> Any:
        """The first for quick runs, else the second.

        >>> Work(quick=True).choose(2, 9)
        2
        """
        return quick if self.quick else full


@dataclass(frozen=True)
class Claim:
    """A result of a paper as data: where it stands, what it says, how it is checked, and what we expect to find."""

    id: str
    paper: Paper
    place: str
    statement: str
    evidence: Evidence
    expected: Outcome
    run: Callable[[Work], Finding]
    command: str
    function: str
    correction: str | None = None


@dataclass(frozen=True)
class Record:
    """A finished claim as it is stored: JSON values only, independent of the machine except for the seconds."""

    id: str
    paper: str
    place: str
    statement: str
    kind: str
    expected: str
    outcome: str
    evidence: str
    checks: tuple[Check, ...]
    values: Mapping[str, Any]
    counterexample: str | None
    correction: str | None
    primes: tuple[int, ...]
    error_bound: float
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether the computed outcome is the recorded one."""
        return self.outcome == self.expected

    def to_json(self) -> dict[str, Any]:
        checks = [{"statement": c.statement, "holds": c.holds, "part": c.part} for c in self.checks]
        return {**self.__dict__, "checks": checks, "values": dict(self.values), "primes": list(self.primes)}

    @classmethod
    def from_json(cls, data: Any) -> Record:
        """The record of :meth:`to_json`; FormatError if the data has another form."""
        try:
            checks = tuple(Check(c["statement"], c["holds"], c["part"]) for c in data["checks"])
            return cls(**{**data, "checks": checks, "primes": tuple(data["primes"])})
        except (KeyError, TypeError):
            raise FormatError("stored claim without the required keys found; start again with a new folder") from None


def make_record(claim: Claim, finding: Finding | None, reason: str, seconds: float) -> Record:
    """The record of a claim that was run, or of one that could not be run, with the reason."""
    outcome: Outcome = "not run" if finding is None else finding.outcome
    return Record(
        id=claim.id,
        paper=claim.paper,
        place=claim.place,
        statement=claim.statement,
        kind=claim.evidence,
        expected=claim.expected,
        outcome=outcome,
        evidence=reason if finding is None else finding.evidence,
        checks=() if finding is None else finding.checks,
        values={} if finding is None else finding.values,
        counterexample=None if finding is None else finding.counterexample,
        correction=claim.correction,
        primes=() if finding is None else finding.primes,
        error_bound=0.0 if finding is None else finding.error_bound,
        seconds=round(seconds, 3),
    )


def count_outcomes(records: Iterable[Record]) -> dict[str, int]:
    """How many claims have each outcome, in the fixed order.

    >>> count_outcomes([])
    {'confirmed': 0, 'confirmed with a correction': 0, 'refuted': 0, 'not run': 0}
    """
    counts = dict.fromkeys(OUTCOMES, 0)
    for record in records:
        counts[record.outcome] += 1  # type: ignore[index]
    return {str(outcome): count for outcome, count in counts.items()}
