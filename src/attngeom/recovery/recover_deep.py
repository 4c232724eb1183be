"""Networks from black boxes: lightning in floats with a final fit, any precision for more layers, exactly over Q."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
from flint import fmpq

from attngeom import digits
from attngeom.errors import DomainError, FormatError, InputError, SingularError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import QQ, RR, Balls
from attngeom.exact.precise import dyadic, to_float
from attngeom.layer.blackbox import BlackBox, QueryPlan, on_grid
from attngeom.limits.rounding import PEELING_BITS, PEELING_CONDITIONS, RECOVERED_ERROR
from attngeom.limits.trials import EXACT_CHECKS, HELD_OUT, PEELING_ATTEMPTS
from attngeom.network import Architecture, VirtualWeights, Weights
from attngeom.network.virtual import forward_virtual
from attngeom.recovery.peeling import Peeler, held_out_error
from attngeom.recovery.recover_field import recover_field
from attngeom.recovery.recover_softmax import recover_softmax
from attngeom.recovery.results import Attempt, Recovery, layer_failure
from attngeom.recovery.virtual_lift import largest_error, lift_virtual, polish
from attngeom.results import Failure


def check_identifiable(architecture: Architecture) -> Failure | None:
    """Why no algorithm here applies to an architecture, or None if one does."""
    rule = architecture.rule
    if not (rule.is_polynomial or rule.is_normalised):
        reason = f"{architecture.kind} attention: the algorithm uses that the function is a polynomial"
    elif not architecture.has_virtual_weights:
        reason = "several heads or a skip connection: the function does not depend on (M, L) alone"
    elif rule.is_normalised and architecture.mask.hides:
        reason = f"{architecture.mask} softmax: the algorithm uses that all tokens see each other"
    elif architecture.view == "nothing":
        reason = "t = 1: one token attends to itself alone, and the attention matrices are invisible"
    elif architecture.tokens < 2:
        reason = "t = 1: only the symmetric parts of the attention matrices are visible ([G] Theorem 3.7 needs t ≥ 3)"
    else:
        return None
    return Failure(stage="architecture", reason=reason, is_hypothesis=True)


def _attempts(box: BlackBox, architecture: Architecture, seed: int) -> Iterator[Attempt | Failure]:
    """Peeling in double precision and a least squares fit, with several random starts."""
    for attempt in range(PEELING_ATTEMPTS):
        rng = np.random.default_rng([seed, attempt])
        name = f"attempt {attempt + 1}, "
        peeler = Peeler(box, architecture, RR, rng, PEELING_CONDITIONS[attempt % len(PEELING_CONDITIONS)], name)
        with np.errstate(all="ignore"):
            try:
                result = peeler.run()
            except FormatError:
                raise
            except (SingularError, ValueError):
                yield layer_failure(0, "the linear systems are singular in double precision")
                continue
        if not isinstance(result, Failure):
            yield _fit(result, box, architecture, rng, name)._replace(separation=peeler.separation)
            continue
        yield result
        if result.is_hypothesis and attempt >= 2:
            return


def _fit(
    virtual: VirtualWeights, box: BlackBox, architecture: Architecture, rng: np.random.Generator, name: str = ""
) -> Attempt:
    """Weights fitted to random values of the box, and their largest relative error at other inputs."""
    weights = lift_virtual(virtual, architecture)
    count = architecture.num_parameters // architecture.widths[-1] + 8
    X = rng.standard_normal((count + HELD_OUT, architecture.widths[0], architecture.tokens))
    # Tokens of unit size keep the outputs of deep networks in the range of floats.
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    # The sizes of tokens relative to each other matter, a common factor does not: the function is homogeneous.
    X[count:] *= 2.0 ** rng.uniform(-2, 2, size=(HELD_OUT, 1, architecture.tokens))
    plan, Y = box.ask(f"{name}fit", QueryPlan(on_grid(X)))
    X = plan.inputs
    with np.errstate(all="ignore"):
        fitted = polish(weights, X[:count], Y[:count])
        return min((Attempt(largest_error(w, X[count:], Y[count:]), w) for w in (fitted, weights)), key=itemgetter(0))


def recover_precise(box: BlackBox, architecture: Architecture, seed: int, tolerance: float) -> Recovery:
    """Peeling in balls: the precision is doubled until held-out outputs agree far below the tolerance, then a fit.

    Boxes over Q are asked at dyadic numbers; the result is then rounded to rationals and checked exactly.
    """
    exact = box.domain.is_exact
    failure: Failure | None = None
    error = np.inf
    known: dict[str, Any] = {"seed": seed}
    for place, precision in enumerate(PEELING_BITS):
        domain = Balls(precision)
        rng = np.random.default_rng([seed, precision])
        with domain.working(), np.errstate(all="ignore"):
            asked = _as_balls(box, domain) if exact else box
            peeler = Peeler(asked, architecture, domain, rng, PEELING_CONDITIONS[place])
            try:
                result = peeler.run()
            except SingularError:
                failure = layer_failure(0, "the linear systems are singular at this precision")
                continue
            if isinstance(result, Failure):
                failure = result
                continue
            failure = None
            known |= {"precision": precision, "separation": peeler.separation}
            if exact:
                rational = _rationalise(result, box, architecture, precision, rng)
                if rational is not None:
                    reason = f"rational weights, equal outputs at {EXACT_CHECKS} random inputs ({precision} bits used)"
                    return Recovery.found(rational, reason, 0.0, queries=box.queries, **known)
                continue
            error = held_out_error(result, asked, architecture.tokens, rng)
            if error < min(tolerance, 1e-12):
                # The weights that are returned are floats, so they are fitted and checked as floats.
                rounded = VirtualWeights(tuple(map(to_float, result.M)), to_float(result.L), RR, architecture.rule)
                error, weights, *_ = _fit(rounded, _as_floats(asked, domain), architecture, rng)
                if error <= tolerance:
                    reason = f"held-out outputs agree to {digits.error(error)}, {precision} bits were used"
                    return Recovery.found(weights, reason, error, queries=box.queries, **known)
    known = {"queries": box.queries, "seed": seed, "domain": box.domain, "precision": PEELING_BITS[-1]}
    if failure is not None:
        return Recovery.stopped(failure, **known)
    failure = Failure(stage="check", reason=f"no weights of this architecture fit up to {PEELING_BITS[-1]} bits")
    return Recovery.stopped(failure, error_estimate=None if exact else float(error), **known)


def _as_balls(box: BlackBox, domain: Balls) -> BlackBox:
    return BlackBox(lambda X: domain.convert(box(dyadic(X))), domain)


def _as_floats(box: BlackBox, domain: Balls) -> BlackBox:
    return BlackBox(lambda X: to_float(box(domain.convert(X))), RR)


def _rationalise(
    virtual: VirtualWeights, box: BlackBox, architecture: Architecture, precision: int, rng: np.random.Generator
) -> Weights | None:
    """The rational virtual weights near the given ones, with L solved for exactly; None unless every check passes."""
    M = []
    for matrix in virtual.M:
        entries = [_simplest(x.mid().fmpq(), precision // 4) for x in matrix.ravel()]
        if any(entry is None for entry in entries):
            return None
        M.append(QQ.convert(entries).reshape(matrix.shape))
    d, t = architecture.widths[0], architecture.tokens
    X = QQ.convert(rng.integers(-9, 10, size=(d + 2 + EXACT_CHECKS, d, t)))
    Y = box(X)
    images = forward_virtual(VirtualWeights(tuple(M), QQ.eye(d), QQ, architecture.rule), X[: d + 2])
    L = QQ.solve(np.concatenate(swap(images)), np.concatenate(swap(Y[: d + 2])))
    if L is None:
        return None
    exact = VirtualWeights(tuple(M), L.T, QQ, architecture.rule)
    if not QQ.equal(forward_virtual(exact, X[d + 2 :]), Y[d + 2 :]):
        return None
    try:
        return lift_virtual(exact, architecture)
    except InputError:
        return None


def _simplest(x: fmpq, bits: int) -> fmpq | None:
    """The fraction of denominator at most 2^bits next to x, if it is within 2^(-2 bits) of x."""
    value = Fraction(int(x.p), int(x.q))
    guess = value.limit_denominator(2**bits)
    return fmpq(guess.numerator, guess.denominator) if abs(guess - value) < Fraction(1, 4**bits) else None


def recover_deep(
    box: BlackBox, architecture: Architecture, seed: int = 0, tolerance: float = RECOVERED_ERROR
) -> Recovery:
    """Weights of a network from values: lightning over floats, balls (any precision), Q, GF(p); softmax over floats."""
    obstacle = check_identifiable(architecture)
    if obstacle is not None:
        return Recovery.stopped(obstacle, seed=seed, domain=box.domain)
    domain = box.domain
    if architecture.rule.is_normalised:
        if not domain.rounds:
            raise DomainError(f"a softmax black box over {domain.name} given; its values are asked for in floats")
        return recover_softmax(box, architecture, seed, tolerance)
    if domain.rounds:
        return Recovery.best(_attempts(box, architecture, seed), box, tolerance, seed)
    if domain.characteristic:
        return recover_field(box, architecture, seed)
    return recover_precise(box, architecture, seed, tolerance)
