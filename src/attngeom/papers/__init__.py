"""The claims of the two papers as data, with runners that recompute each of them."""

from attngeom.papers.claims import CLAIMS, find_claims
from attngeom.papers.records import OUTCOMES, PAPERS, Check, Claim, Finding, Record, Work, count_outcomes
from attngeom.papers.runner import FIGURES, Store, run_claim, run_claims

__all__ = [
    "CLAIMS",
    "FIGURES",
    "OUTCOMES",
    "PAPERS",
    "Check",
    "Claim",
    "Finding",
    "Record",
    "Store",
    "Work",
    "count_outcomes",
    "find_claims",
    "run_claim",
    "run_claims",
]


def __dir__() -> list[str]:
    return sorted(__all__)
