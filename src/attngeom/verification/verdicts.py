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

    >>> Verdict.of(False, "a claim", "no witness").standing
    'undecided'
    """

    valid: bool | None
    claim: str

    @property
    def is_positive(self) -> bool | None:
        return self.valid

    @classmethod
    def of(cls, valid: bool | None, claim: str, reason: str) -> Verdict:
        """The verdict with the standing that it and the reason say."""
        standing: Standing = "probabilistic" if isinstance(reason, Probable) else "certified"
        return cls(valid=valid, claim=claim, reason=reason, standing=standing if valid else "undecided")

    def to_json(self) -> dict[str, Any]:
        return {"valid": self.valid, "claim": self.claim, "reason": self.reason}

    def rows(self) -> Mapping[str, Any]:
        words = {True: "yes", False: "no", None: "undecided"}
        return {"valid": words[self.valid], "claim": self.claim, "reason": self.reason}
