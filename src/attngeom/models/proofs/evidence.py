"""The outcome of a proof by rank: lower and upper bound of a dimension, and what they rest on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from attngeom.errors import InputError
from attngeom.programs import Program
from attngeom.programs.arithmetic import CHAIN
from attngeom.rank.hypotheses import exponents_are_independent, prove_rank
from attngeom.rank.lower import bound_rank
from attngeom.rank.upper import bound_above

RELATED = "arguments of exponentials are related, or too few points were found to see that they are not"


@dataclass(frozen=True, kw_only=True)
class RankProof:
    """lower <= dimension of the set of functions <= upper, for generic weights of the described sizes.

    ``lower`` is the rank of the derivative at a point mod p; ``upper`` the number of acting weights minus the orbit of
    symmetries that were proven for all weights and inputs, or another proven bound. ``formula`` is what `redundancy`
    says; None if no formula is known for the kind. ``obstacle`` says why the rank proves nothing, if it does not.
    """

    subject: str
    parameters: int
    lower: int
    upper: int
    formula: int | None
    prime: int
    seed: int
    samples: int
    obstacle: str = ""

    @property
    def standing(self) -> Literal["proven", "undecided"]:
        return "proven" if self.lower == self.upper else "undecided"

    @property
    def redundancy(self) -> int | None:
        """parameters − dimension, if proven."""
        return self.parameters - self.upper if self.lower == self.upper else None

    @property
    def agrees(self) -> bool | None:
        """Whether the formula gives the proven number; None if one of the two is missing."""
        return None if self.redundancy is None or self.formula is None else self.redundancy == self.formula

    @property
    def reason(self) -> str:
        if self.obstacle:
            return self.obstacle
        if self.lower < self.upper:
            return f"the rank found, {self.lower}, is below the bound {self.upper} that the known symmetries give"
        text = f"rank {self.lower} mod {self.prime} and {self.parameters - self.upper} independent symmetries add up"
        verdict = {True: "; the formula agrees", False: f"; the formula says {self.formula}", None: ""}
        return text + verdict[self.agrees]

    def to_json(self) -> dict[str, Any]:
        derived = {"standing": self.standing, "redundancy": self.redundancy, "agrees": self.agrees}
        return asdict(self) | derived | {"reason": self.reason}

    def __str__(self) -> str:
        return f"{self.subject}: {self.standing}, {self.reason}"


def prove_program(
    program: Program, size: int, formula: int | None, seed: int, subject: str, wider: Program | None = None
) -> RankProof:
    """Bounds of the dimension of the functions of a program, whose weights stand for ``size`` stored ones.

    The formula only says where the search for a larger rank may stop. ``wider``: a program with the same weights and
    two other tokens, for which symmetries are proven, if their scores are independent (Lemma 7).
    """
    if wider is not None and not exponents_are_independent(wider, seed):
        return _undecided(program, size, formula, seed, subject, RELATED)
    expected = None if formula is None else min(size - formula, program.num_parameters)
    try:
        lower = bound_rank(program, seed, expected=expected)
    except InputError as error:
        return _undecided(program, size, formula, seed, subject, str(error))
    rank_proof = prove_rank(lower.point)
    is_proven = rank_proof.standing == "proven"
    return RankProof(
        subject=subject,
        parameters=size,
        lower=lower.value if is_proven else 0,
        upper=bound_above(lower, seed, quick=True, wider=wider).value,
        formula=formula,
        prime=lower.prime,
        seed=seed,
        samples=len(lower.samples),
        obstacle="" if is_proven else rank_proof.reason,
    )


def _undecided(program: Program, size: int, formula: int | None, seed: int, subject: str, obstacle: str) -> RankProof:
    return RankProof(
        subject=subject, parameters=size, lower=0, upper=program.num_parameters, formula=formula, prime=CHAIN[0],
        seed=seed, samples=0, obstacle=obstacle,
    )  # fmt: skip
