"""The outcome of a recheck: the certificate proves its claim, it does not, or the recheck is beyond the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from attngeom.results import Proof, Result


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict(Result):
    """Whether a certificate proves its ``claim``, which is given in words that name every part of it.

    ``valid`` is True (the standing is "certified", or "probabilistic" with the probability of an error in the reason),
    False (the certificate proves nothing, which does not make the claim false) or None (the recheck needs more than
    the budget; ``reason`` says how much). ``proof`` has the standing of every part of what was checked.

    >>> Verdict.of_proof("a claim", Proof("certified", "a witness")).valid
    True
    >>> Verdict.without_proof(False, "a claim", "no witness").standing
    'undecided'
    """

    valid: bool | None
    claim: str
    proof: Proof | None = None

    @property
    def is_positive(self) -> bool | None:
        return self.valid

    @classmethod
    def of_proof(cls, claim: str, proof: Proof) -> Verdict:
        """The claim is true, as strongly as the proof is."""
        return cls(valid=True, claim=claim, reason=proof.reason, standing=proof.standing, proof=proof)

    @classmethod
    def without_proof(cls, valid: Literal[False] | None, claim: str, reason: str) -> Verdict:
        """The certificate proves nothing (False), or the recheck is beyond the budget (None)."""
        return cls(valid=valid, claim=claim, reason=reason, standing="undecided")

    def to_json(self) -> dict[str, Any]:
        return self.select("valid", "claim", "standing", "reason")

    def rows(self) -> Mapping[str, Any]:
        words = {True: "yes", False: "no", None: "undecided"}
        return {"valid": words[self.valid], "claim": self.claim, "standing": self.standing, "reason": self.reason}
