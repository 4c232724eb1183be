"""What a claim is, what running it finds, and how the outcome follows from the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from importlib import import_module
from typing import Any, Literal, cast, get_args

from attngeom.errors import FormatError

Paper = Literal["G", "I"]
Strength = Literal[
    "proven", "confirmed in all degrees", "proven in part", "proven at the stated sizes", "supported", "answered"
]
Flaw = Literal["error", "expectation refuted", "misprint"]
"""What is not as printed: a statement that is false, a belief that does not come true, a slip of the pen."""
Outcome = Literal[Strength, Flaw, "failed"]
Evidence = Literal[
    "identities of polynomials",
    "certificates",
    "exact arithmetic",
    "exact arithmetic mod p",
    "operation counts",
    "double precision",
]
Part = Literal["claim", "printed proof", "correction", "support"]

FLAWS: tuple[Flaw, ...] = get_args(Flaw)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
PAGE = "docs/reference/papers.md"
"""Where the proofs at all sizes stand that are not on a page of their own."""
PAPERS: Mapping[Paper, str] = {
    "G": "Henry, Marchetti, Kohn: Geometry of Lightning Self-Attention: Identifiability and Dimension (ICLR 2025);"
    " read in version 3 of arXiv 2408.17221, June 2026",
    "I": "Alexandr, Duan, Montúfar: Algebraic Invariants of Lightning Self-Attention (2026); arXiv 2604.15632",
}


@dataclass(frozen=True)
class Check:
    """One statement that was computed, and whether it holds.

    ``part``: "claim" is what the paper says, "printed proof" a step of its proof that may fail while the statement
    stands, "correction" what holds instead, "support" what the test itself needs (a point is generic, bounds meet).
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

    def outcome(self, strength: Strength, flaw: Flaw = "error") -> Outcome:
        """The strength of the claim if everything holds; the flaw if only the claim fails and corrections hold.

        >>> Finding("", (Check("2 + 2 = 5", False), Check("2 + 2 = 4", True, "correction"))).outcome("proven")
        'error'
        """
        failed = {check.part for check in self.checks if not check.holds} - {"printed proof"}
        if not failed:
            return strength
        corrected = any(check.part == "correction" for check in self.checks)
        return flaw if failed == {"claim"} and corrected else "failed"


@dataclass(frozen=True)
class Work:
    """How much to compute: the quick sizes or the full ones, and the seed of every random choice."""

    quick: bool = False
    seed: int = 0

    def choose(self, quick: Any, full: Any) -> Any:
        """The first for quick runs, else the second."""
        return quick if self.quick else full


def listed(counts: Mapping[str, object]) -> str:
    """Counts as a phrase, such as "2: 45, 3: 10"."""
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


Runner = Callable[[Work], Finding]
Checks = Generator[Check, None, Any]
"""The checks of a claim as they are computed; what is known in the end only is returned, as fields of the finding."""


def finds(
    evidence: str, counterexample: str | None = None, primes: tuple[int, ...] = ()
) -> Callable[[Callable[[Work], Checks]], Runner]:
    """A runner from the generator of its checks.

    >>> @finds("counted")
    ... def run(work):
    ...     yield Check("2 + 2 = 4", True)
    >>> run(Work()).checks
    (Check(statement='2 + 2 = 4', holds=True, part='claim'),)
    """
    said = {"evidence": evidence, "counterexample": counterexample, "primes": primes}

    def decorate(checks: Callable[[Work], Checks]) -> Runner:
        @wraps(checks)
        def run(work: Work) -> Finding:
            steps, checked = checks(work), []
            while True:
                try:
                    checked.append(next(steps))
                except StopIteration as end:
                    return Finding(**{**said, "checks": tuple(checked), **(end.value or {})})

        return run

    return decorate


@dataclass(frozen=True)
class Named:
    """The runner "module.function" of this package, loaded when it is called."""

    name: str

    def __call__(self, work: Work) -> Finding:
        module, function = self.name.split(".")
        return cast("Finding", getattr(import_module(f"attngeom.papers.{module}"), function)(work))


@dataclass(frozen=True)
class Claim:
    """A result of a paper as data: where it stands, what it says, how far it is established, and by what.

    ``strength`` is what holds of the statement, or of the corrected one if it has a ``flaw`` as printed: "proven" for
    all sizes by the argument that ``proof`` names, "confirmed in all degrees" likewise for an ideal that the paper
    computed, "proven in part" under the conditions that the row names, "proven at the stated sizes" and "supported" by
    the runner alone, "answered" for a question that is settled. ``evidence`` is how the runner checks the finite part.
    """

    id: str
    place: str
    evidence: Evidence
    run: Runner
    statement: str
    correction: str | None = None
    flaw: Flaw | None = None
    strength: Strength = "proven"
    page: str = PAGE

    @property
    def paper(self) -> Paper:
        """The paper, which the id starts with."""
        return "G" if self.id.startswith("G") else "I"

    @property
    def expected(self) -> Outcome:
        """The recorded outcome."""
        return self.flaw or self.strength

    @property
    def proof(self) -> str | None:
        """Where the argument for all sizes stands; None if the row rests on its runner alone."""
        if self.strength in ("proven at the stated sizes", "supported"):
            return None
        return f"{self.page}, {self.id}" if self.page == PAGE else self.page


def outcome_label(outcome: str, strength: str) -> str:
    """The outcome in words, with what holds of the corrected statement.

    >>> outcome_label("misprint", "proven")
    'misprint, corrected and proven'
    """
    if outcome == "expectation refuted":
        return f"{outcome}, what holds is {strength}"
    return f"{outcome}, corrected and {strength}" if outcome in FLAWS else outcome


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
    strength: str
    proof: str | None
    evidence: str
    checks: tuple[Check, ...]
    values: Mapping[str, Any]
    counterexample: str | None
    correction: str | None
    primes: tuple[int, ...]
    error_bound: float
    seconds: float

    @property
    def label(self) -> str:
        """The outcome in words, with what holds of the corrected statement."""
        return outcome_label(self.outcome, self.strength)

    @property
    def basis(self) -> str:
        """What the outcome rests on: a proof on a page, where there is one, of which the run computes examples."""
        return f"proof; examples by {self.kind}" if self.proof else self.kind

    @property
    def as_expected(self) -> bool:
        """Whether the computed outcome is the recorded one."""
        return self.outcome == self.expected

    @classmethod
    def of(cls, claim: Claim, finding: Finding, seconds: float) -> Record:
        """The record of a claim that was run."""
        known = {f.name: getattr(claim, f.name) for f in fields(cls) if hasattr(claim, f.name)}
        values = {f.name: getattr(finding, f.name) for f in fields(finding) if f.name != "data"}
        outcome = finding.outcome(claim.strength, claim.flaw or "error")
        return cls(**{**known, "kind": claim.evidence, "outcome": outcome, "seconds": round(seconds, 3), **values})

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


def count_outcomes(records: Iterable[Record]) -> dict[str, int]:
    """How many claims have each outcome, in the fixed order.

    >>> count_outcomes([])["proven"]
    0
    """
    counts = Counter(record.outcome for record in records)
    return {outcome: counts[outcome] for outcome in OUTCOMES}
