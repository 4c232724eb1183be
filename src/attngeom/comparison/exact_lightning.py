"""Rational lightning networks: a symmetry, equal layers, equal virtual weights, or evaluation modulo primes."""

from __future__ import annotations

import numpy as np

from attngeom.comparison.cleared import ClearedNetwork, clear
from attngeom.comparison.evaluation import NEGLIGIBLE, present_separation, separate_exact
from attngeom.comparison.layerwise import fits_table, layerwise_equality
from attngeom.comparison.matching import match_rational
from attngeom.comparison.results import Comparison, Separation
from attngeom.comparison.steps import Report, ignore
from attngeom.comparison.virtual import virtual_scales
from attngeom.errors import InputError
from attngeom.exact.domains import GF, QQ, Array
from attngeom.exact.primes import WORD_PRIME
from attngeom.inspection.hypotheses import check_hypotheses, failed
from attngeom.network import Symmetry, Weights, forward

SCREEN_TOKENS = 8


def compare_lightning(first: Weights, second: Weights, seed: int, report: Report = ignore) -> Comparison:
    """The verdict on two rational lightning networks; without a proof of equality, equality modulo random primes."""
    one, two = clear(first), clear(second)
    separation = screen(one, two, seed)
    if separation is not None:
        return _differ(separation, seed)
    report("aligning", 0, None)
    found = match_rational(one, two)
    if isinstance(found, Symmetry):
        reason = "a symmetry carries the first weights to the second"
        return Comparison(same_function=True, standing="proven", reason=reason, seed=seed, symmetry=found)
    hypotheses = failed(check_hypotheses(first))
    why = f"no symmetry carries one to the other ({found.stage}: {found.reason})"
    if virtual_scales(first, second) is not None:
        reason = f"the virtual weights (M, L) are equal up to scales that satisfy [G] Eq 13; {why}"
        return Comparison(same_function=True, standing="proven", reason=reason, seed=seed, failed_hypotheses=hypotheses)
    equality = layerwise_equality(first, second)
    if equality is not None:
        return Comparison(
            same_function=True,
            standing="proven",
            reason=f"the layers have equal coefficients up to a change of basis; {why}",
            seed=seed,
            failed_hypotheses=hypotheses,
            mixings=_nontrivial(equality.mixings),
        )
    result = separate_exact(first, second, report=report)
    if isinstance(result, Separation):
        return _differ(result, seed)
    if first.architecture.num_layers == 1 and fits_table(first):
        reason = f"the coefficients of the layer differ, at no input that was tried; {why}"
        return Comparison(same_function=False, standing="proven", reason=reason, seed=seed)
    reason = f"equal outputs at {result.evaluations} random inputs mod {len(result.primes)} random primes; {why}"
    certain = result.error_probability <= NEGLIGIBLE
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


def _nontrivial(mixings: tuple[Array | None, ...]) -> tuple[Array | None, ...]:
    return mixings if any(G is not None and len(G) > 1 for G in mixings) else ()


def _differ(separation: Separation, seed: int) -> Comparison:
    p = separation.domain.characteristic
    where = f" (their residues mod {p} differ)" if p else ""
    reason = f"the outputs at the separating input differ{where}"
    return Comparison(same_function=False, standing="proven", reason=reason, seed=seed, separation=separation)


def screen(first: ClearedNetwork, second: ClearedNetwork, seed: int) -> Separation | None:
    """One evaluation modulo a word prime separates almost all different networks; tokens beyond a few are zero.

    A difference is a proof; agreement says nothing, for the prime is known to everybody.
    """
    width, tokens = first.architecture.widths[0], first.architecture.tokens
    X = np.zeros((width, tokens), dtype=np.int64)
    visible = min(tokens, SCREEN_TOKENS)
    X[:, :visible] = np.random.default_rng(seed).integers(-9, 10, size=(width, visible))
    field = GF(WORD_PRIME)
    try:
        one, two = (forward(network.weights.to(field), field.convert(X[:, :visible])) for network in (first, second))
    except InputError:
        return None
    if field.equal(one, two):
        return None
    # The other tokens are zero, and so are their outputs.
    outputs = tuple(np.pad(output, ((0, 0), (0, tokens - visible))) for output in (one, two))
    return present_separation(first, second, QQ.convert(X), (outputs[0], outputs[1]), field)
