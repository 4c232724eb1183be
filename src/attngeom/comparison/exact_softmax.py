"""Rational softmax networks: equality by symmetry or virtual weights, difference by balls."""

from __future__ import annotations

from attngeom.comparison.equality import virtual_scales
from attngeom.comparison.evaluation import separate_balls
from attngeom.comparison.matching import match_rational
from attngeom.comparison.results import Comparison
from attngeom.inspection.hypotheses import check_hypotheses, failed
from attngeom.network import Symmetry, Weights


def compare_softmax(first: Weights, second: Weights, seed: int) -> Comparison:
    """The verdict on two rational softmax networks."""
    found = match_rational(first, second)
    if isinstance(found, Symmetry):
        reason = "a symmetry carries the first weights to the second"
        return Comparison(same_function=True, standing="proven", reason=reason, seed=seed, symmetry=found)
    hypotheses = failed(check_hypotheses(first))
    if virtual_scales(first, second) is not None:
        reason = "the virtual weights (M, L) are equal"
        return Comparison(same_function=True, standing="proven", reason=reason, seed=seed, failed_hypotheses=hypotheses)
    separation = separate_balls(first, second, seed)
    if separation is not None:
        reason = "the outputs at the separating input differ, enclosed by disjoint balls"
        return Comparison(same_function=False, standing="proven", reason=reason, seed=seed, separation=separation)
    reason = f"no symmetry was found ({found.reason}) and the outputs agree to 256 bits at random inputs"
    return Comparison(same_function=None, standing="undecided", reason=reason, seed=seed, failed_hypotheses=hypotheses)
