"""Rational networks compared: a symmetry, equal layers, theorems on virtual weights, or inputs that separate them.

Lightning networks are evaluated modulo primes, where that is all that is left; softmax and sigmoid ones in balls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom.comparison.layerwise import fits_table, layerwise_equality
from attngeom.comparison.lightning_fibers import virtual_scales
from attngeom.comparison.matching import ClearedNetwork, clear, match_rational
from attngeom.comparison.results import UNTOLD, Comparison, Report, Ruling, Separation, ignore
from attngeom.comparison.separation import (
    function_over,
    present_separation,
    separate_balls,
    separate_consensus,
    separate_exact,
)
from attngeom.comparison.virtual import compare_virtual
from attngeom.errors import InputError
from attngeom.exact.domains import GF, QQ
from attngeom.exact.numbers import WORD_PRIME
from attngeom.inspection.hypotheses import check_hypotheses, failed
from attngeom.limits.rounding import ERROR_PROBABILITY
from attngeom.network import Weights
from attngeom.network.inputs import telling_tokens, with_all_tokens
from attngeom.results import Failure

CARRIED = "a symmetry carries the first weights to the second"


def compare_exact(first: Weights, second: Weights, seed: int, report: Report = ignore) -> Comparison:
    """Rational networks of a kind of the papers compared, by evaluation where it is exact and by theorems elsewhere."""
    decide = _compare_lightning if first.architecture.rule.evaluates(QQ) else _compare_transcendental
    return decide(first, second, seed, report)


def _compare_lightning(first: Weights, second: Weights, seed: int, report: Report = ignore) -> Comparison:
    """The verdict on two rational lightning networks; without a proof of equality, equality modulo random primes."""
    one, two = clear(first), clear(second)
    separation = screen(one, two, seed)
    if separation is not None:
        return _differ(separation, seed)
    report("aligning", 0, None)
    match = match_rational(one, two)
    if not isinstance(match, Failure):
        return Comparison.proven(True, CARRIED, seed=seed, carrier=match)
    hypotheses = failed(check_hypotheses(first))
    why = f"no symmetry carries one to the other ({match.stage}: {match.reason})"
    if virtual_scales(first, second) is not None:
        reason = f"what the function shows of (M, L) is equal, up to scales that satisfy [G] Eq 13; {why}"
        return Comparison.proven(True, reason, seed=seed, failed_hypotheses=hypotheses)
    mixings = layerwise_equality(first, second)
    if mixings is not None:
        reason = f"the layers have equal coefficients up to a change of basis; {why}"
        mixings = mixings if any(G is not None and len(G) > 1 for G in mixings) else ()
        return Comparison.proven(True, reason, seed=seed, failed_hypotheses=hypotheses, mixings=mixings)
    result = separate_exact(one, two, report=report)
    if isinstance(result, Separation):
        return _differ(result, seed)
    if first.architecture.num_layers == 1 and fits_table(first):
        reason = f"the coefficients of the layer differ, at no input that was tried; {why}"
        return Comparison.proven(False, reason, seed=seed)
    count = len(result.primes)
    reason = f"equal outputs at {2 * count} random inputs mod {count} random primes; {why}"
    certain = result.error_probability <= ERROR_PROBABILITY
    return Comparison(
        same_function=True if certain else None,
        standing="probabilistic" if certain else "undecided",
        reason=reason,
        seed=seed,
        error_probability=result.error_probability,
        primes=result.primes,
        entropy=result.entropy,
        failed_hypotheses=hypotheses,
    )


def _differ(separation: Separation, seed: int) -> Comparison:
    p = separation.domain.characteristic
    where = f" (their residues mod {p} differ)" if p else ""
    reason = f"the outputs at the separating input differ{where}"
    return Comparison.proven(False, reason, seed=seed, separation=separation)


def screen(first: ClearedNetwork, second: ClearedNetwork, seed: int) -> Separation | None:
    """One evaluation modulo a word prime at few tokens separates almost all different networks.

    A difference is a proof; agreement says nothing, for the prime is known to everybody.
    """
    architecture, field = first.architecture, GF(WORD_PRIME)
    shape = (architecture.widths[0], telling_tokens(architecture))
    X = np.random.default_rng(seed).integers(-9, 10, size=shape)
    try:
        one, two = (function_over(network, field)(X) for network in (first, second))
    except InputError:
        return None
    if field.equal(one, two):
        return None
    X, one, two = (with_all_tokens(architecture, x) for x in (X, one, two))
    return present_separation(first, second, QQ.convert(X), (one, two), field)


def _compare_transcendental(first: Weights, second: Weights, seed: int, report: Report = ignore) -> Comparison:
    """The verdict on two rational softmax or sigmoid networks.

    Decided without exception for one layer of heads (Theorems D and S); for softmax with one head and no skip
    connection (Theorem A; with a mask: Theorem A', which leaves a case open for t = 2), and for one token; for sigmoid
    with one head, neither skip connection nor mask, and no M_i = 0 before the last (Theorem S).

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1, kind="softmax"), QQ, seed=0)
    >>> compare_exact(w, w, 0).standing
    'proven'
    """
    architecture = first.architecture
    known: dict[str, Any] = {"seed": seed, "virtual": first}
    report("aligning", 0, None)
    one, two = clear(first), clear(second)
    match = match_rational(one, two)
    if not isinstance(match, Failure):
        return Comparison.proven(True, CARRIED, carrier=match, **known)
    verdict = UNTOLD
    if architecture.has_virtual_weights:
        verdict = compare_virtual(one, two)
    elif layerwise_equality(first, second) is not None:
        verdict = Ruling(True, "the layers are equal up to a change of basis")
    elif architecture.num_layers == 1 and architecture.rule.head_theorem is not None:
        theorem = architecture.rule.head_theorem
        verdict = Ruling(False, f"the heads differ after those with one A are added up ({theorem})")
    if verdict.same:
        return Comparison.proven(True, verdict.reason, failed_hypotheses=failed(check_hypotheses(first)), **known)
    separation = separate_balls(one, two, seed, report)
    if separation is not None:
        reason = "the outputs at the separating input differ, enclosed by disjoint balls"
        return Comparison.proven(False, reason, separation=separation, **known)
    separation = separate_consensus(first, second)
    if separation is not None:
        reason = "the outputs at the separating input, whose tokens are equal, differ"
        return Comparison.proven(False, reason, separation=separation, **known)
    if verdict.same is False:
        return Comparison(same_function=False, standing="theorem", reason=verdict.reason, **known)
    reason = verdict.reason or f"no symmetry was found ({match.stage}: {match.reason})"
    reason = f"{reason}; the outputs agree to 256 bits at random inputs"
    hypotheses = failed(check_hypotheses(first))
    return Comparison(same_function=None, standing="undecided", reason=reason, failed_hypotheses=hypotheses, **known)
