"""The outcome of a recheck: the certificate proves its claim, it does not, or the recheck is beyond the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.results import Result, Standing


class Probable(str):
    """A reason that a claim is true, up to an error whose probability it states."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict(Result):
    """Whether a certificate proves its ``claim``, which is given in words that name every part of it.

    ``valid`` is True (the standing is "certified", or "probabilistic" with the probability of an error in the reason),
    False (the certificate proves nothing, which does not make the claim false) or None (the recheck needs more than
    the budget; ``reason`` says how much).

    >>> Verdict.refused("a claim", "no witness").valid
    False
    """

    valid: bool | None
    claim: str

    @property
    def is_positive(self) -> bool | None:
        return self.valid

    @classmethod
    def accepted(cls, claim: str, reason: str) -> Verdict:
        """The claim was proven, up to the stated probability of an error if the reason is :class:`Probable`."""
        standing: Standing = "probabilistic" if isinstance(reason, Probable) else "certified"
        return cls(valid=True, claim=claim, reason=reason, standing=standing)

    @classmethod
    def refused(cls, claim: str, reason: str) -> Verdict:
        """The certificate does not prove the claim."""
        return cls(valid=False, claim=claim, reason=reason, standing="undecided")

    @classmethod
    def beyond_budget(cls, claim: str, reason: str) -> Verdict:
        """The recheck would take more than the budget."""
        return cls(valid=None, claim=claim, reason=reason, standing="undecided")

    def to_json(self) -> dict[str, Any]:
        return {"valid": self.valid, "claim": self.claim, "reason": self.reason}

    def rows(self) -> Mapping[str, Any]:
        words = {True: "yes", False: "no", None: "undecided"}
        return {"valid": words[self.valid], "claim": self.claim, "reason": self.reason}
