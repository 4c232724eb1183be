"""The outcome of a proof by rank: lower and upper bound of a dimension, and what they rest on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.residues import BalancedResidues
from attngeom.models.proofs.formal import PRIME

MAX_PARAMETERS = 4096


@dataclass(frozen=True, kw_only=True)
class RankProof:
    """lower <= dimension of the set of functions <= upper, for generic weights of the described sizes.

    ``lower`` is the rank of the derivative at a point mod p, ``upper`` the number of parameters minus the rank of
    the infinitesimal symmetries. ``formula`` is what `redundancy` says; None if no formula is known for the kind.
    ``obstacle`` says why no rank was taken, if none was.
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


def checked_upper_bound(moves: Array, derivative: Array) -> int:
    """parameters − rank of the moves, after a check that the derivative annihilates every move."""
    field = BalancedResidues(PRIME)
    residues = field.from_integers(derivative)
    for start in range(0, len(moves), 64):
        if field.multiply(residues, field.from_integers(moves[start : start + 64]).T).any():
            raise AssertionError("an infinitesimal symmetry changes the function; please report this")
    size = int(derivative.shape[1])
    return size - (rank_mod_p(moves, PRIME) if len(moves) else 0)
