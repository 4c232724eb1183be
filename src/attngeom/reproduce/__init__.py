"""The claims of the two papers as data, with runners that recompute each of them."""

from attngeom.reproduce.claims import CLAIMS, find_claims
from attngeom.reproduce.records import OUTCOMES, PAPERS, Check, Claim, Finding, Record, Work, count_outcomes
from attngeom.reproduce.runner import FIGURES, Store, run_claim, run_claims

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
