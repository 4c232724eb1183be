"""Rational networks that are not polynomial: symmetries, equal layers, theorems, and inputs enclosed by balls."""

from __future__ import annotations

from attngeom.comparison.cleared import clear
from attngeom.comparison.layerwise import layerwise_equality
from attngeom.comparison.matching import match_rational
from attngeom.comparison.results import Comparison
from attngeom.comparison.separation import separate_balls, separate_consensus
from attngeom.comparison.steps import Report, ignore
from attngeom.comparison.virtual import compare_virtual
from attngeom.inspection.fibers import virtual_fiber
from attngeom.inspection.hypotheses import check_hypotheses, failed
from attngeom.network import Symmetry, Weights


def compare_transcendental(first: Weights, second: Weights, seed: int, report: Report = ignore) -> Comparison:
    """The verdict on two rational softmax or sigmoid networks.

    Decided without exception for one layer of heads (Theorems D and S); for softmax with one head and no skip
    connection (Theorem A; causal: Theorem A', which leaves a case open for t = 2), and for one token; for sigmoid
    with one head, neither skip connection nor mask, and no M_i = 0 before the last (Theorem S).

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1, kind="softmax"), QQ, seed=0)
    >>> compare_transcendental(w, w, 0).standing
    'proven'
    """
    architecture = first.architecture
    fiber = virtual_fiber(first)
    report("aligning", 0, None)
    found = match_rational(clear(first), clear(second))
    if isinstance(found, Symmetry):
        reason = "a symmetry carries the first weights to the second"
        return Comparison(same_function=True, standing="proven", reason=reason, seed=seed, symmetry=found, fiber=fiber)
    hypotheses = failed(check_hypotheses(first))
    same, reason = None, ""
    if architecture.has_virtual_weights:
        verdict = compare_virtual(first, second)
        same, reason = verdict.same, verdict.reason
    elif layerwise_equality(first, second) is not None:
        same, reason = True, "the layers are equal up to a change of basis"
    elif architecture.num_layers == 1 and architecture.rule.head_theorem is not None:
        same, reason = False, f"the heads differ after those with one A are added up ({architecture.rule.head_theorem})"
    if same:
        return Comparison(
            same_function=True,
            standing="proven",
            reason=reason,
            seed=seed,
            failed_hypotheses=hypotheses,
            fiber=fiber,
        )
    separation = separate_balls(first, second, seed, report)
    if separation is not None:
        reason = "the outputs at the separating input differ, enclosed by disjoint balls"
        return Comparison(
            same_function=False, standing="proven", reason=reason, seed=seed, separation=separation, fiber=fiber
        )
    separation = separate_consensus(first, second) if architecture.rule.is_normalised else None
    if separation is not None:
        reason = "the outputs at the separating input, whose tokens are equal, differ"
        return Comparison(
            same_function=False, standing="proven", reason=reason, seed=seed, separation=separation, fiber=fiber
        )
    if same is False:
        return Comparison(same_function=False, standing="theorem", reason=reason, seed=seed, fiber=fiber)
    reason = reason or f"no symmetry was found ({found.stage}: {found.reason})"
    return Comparison(
        same_function=None,
        standing="undecided",
        reason=f"{reason}; the outputs agree to 256 bits at random inputs",
        seed=seed,
        failed_hypotheses=hypotheses,
        fiber=fiber,
    )
