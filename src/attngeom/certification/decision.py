"""Decide what one attention layer can compute: weights, or a violated invariant.

For float coefficients: the nearest layer found and a bound below every layer, and a verdict if they are clear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from attngeom import digits
from attngeom.certification.refutation import Violation, find_violation
from attngeom.certification.results import Certification, LayerQuestion, LayerVerdict
from attngeom.errors import DomainError, InputError, SizeError, check_positive
from attngeom.exact import lapack
from attngeom.exact.domains import QQ, Array
from attngeom.exact.multisets import pair_orbits, pairs, triple_orbits, triples
from attngeom.layer.coefficients import Coefficients, scale_to_one, symmetrize
from attngeom.layer.float_splitting import check_width
from attngeom.layer.nearest import conjugate_pair_distance, lower_bound, nearest_layer
from attngeom.layer.polynomial_maps import PolynomialMap
from attngeom.layer.splitting import LayerSplitting, split_layer
from attngeom.limits.memory import FACTOR_ENTRIES
from attngeom.limits.rounding import DECIDED_DISTANCE
from attngeom.limits.trials import NEAREST_STARTS

if TYPE_CHECKING:
    from attngeom.certification.heads import HeadsCertification
    from attngeom.certification.layers import LayersCertification


def certify_float(question: LayerQuestion, tolerance: float) -> Certification:
    """The verdict for float coefficients: distances relative to their norm, compared with ``tolerance``.

    "realizable" if a layer lies within the tolerance; "not_realizable" (or "closure_only", if complex weights lie
    within it) if every layer is farther away; else "undecided" with both numbers. Both enclose the true distance,
    rounding errors included. The verdict does not change when all coefficients are multiplied by a power of two.
    """
    coefficients, attention, seed = question.coefficients, question.attention, question.seed
    check_width(coefficients.d)
    unit, exponent = scale_to_one(coefficients)
    norm = unit.norm
    if norm == 0.0:
        return question.zero(distance=0.0, tolerance=tolerance)
    bound = lower_bound(unit, attention) / norm * (1 - 1e-12)
    # With a bound above the tolerance more starts cannot change the verdict.
    nearest = nearest_layer(unit, attention, seed, tolerance * norm / 2, 3 if bound > tolerance else NEAREST_STARTS)
    distance = nearest.distance / norm * (1 + 1e-12)
    measured: dict[str, Any] = {"distance": distance, "tolerance": tolerance}
    if distance <= tolerance:
        values = lapack.svdvals(nearest.point.A)
        size = int(np.sum(values > max(tolerance, 1e-12) * values[0])) if values[0] > 0 else 0
        reason = f"a layer lies at relative distance {digits.error(distance, 2)}, within the tolerance"
        return question.answer("realizable", reason, rank=size, points=(nearest.point.scaled(exponent),), **measured)
    if bound > tolerance:
        if coefficients.t > 1 and conjugate_pair_distance(unit) <= tolerance * norm:
            reason = f"conjugate linear factors within the tolerance; every real layer is at distance ≥ {bound:.2e}"
            return question.answer("closure_only", reason, rank=1, **measured)
        reason = (
            f"every layer is at relative distance ≥ {bound:.2e}; the nearest found is at {digits.error(distance, 2)}"
        )
        return question.answer("not_realizable", reason, **measured)
    known = f"every layer is at ≥ {bound:.2e}" if bound > 0 else "whether a layer is nearer is not known"
    reason = f"the nearest layer found is at relative distance {digits.error(distance, 2)}; {known}"
    return question.answer("undecided", reason, **measured)


@overload
def certify(
    coefficients: Coefficients, attention: int | None = None, seed: int = 0, tolerance: float = DECIDED_DISTANCE
) -> Certification: ...


@overload
def certify(
    coefficients: Coefficients,
    attention: int | None = None,
    seed: int = 0,
    tolerance: float = DECIDED_DISTANCE,
    *,
    heads: int,
    value: int | None = None,
) -> HeadsCertification: ...


@overload
def certify(
    coefficients: PolynomialMap, attention: None = None, seed: int = 0, *, layers: int, causal: bool = False
) -> LayersCertification: ...


def certify(
    coefficients: Coefficients | PolynomialMap,
    attention: int | None = None,
    seed: int = 0,
    tolerance: float = DECIDED_DISTANCE,
    *,
    heads: int | None = None,
    value: int | None = None,
    layers: int | None = None,
    causal: bool = False,
) -> Certification | HeadsCertification | LayersCertification:
    """Whether φ(X) = V X Xᵀ A X with real V and real A of rank at most ``attention`` has these coefficients.

    Exact input (over Q): a complete decision, with weights or a violated invariant that :func:`verify` rechecks. For
    t ≥ 2 by [G] Prop A.5 and Thm 3.2: the linear relations, then one quadric α_m ν_n is factored and the others are
    divided. For t = 1 the cubics are split into a linear and a quadratic form. Float input: the nearest layer and its
    distance, a verdict only if bounds on the distance are clear of ``tolerance``, and no certificate.

    With ``heads`` = H the question is whether a sum of H real heads with rank A_h ≤ ``attention`` and rank V_h ≤
    ``value`` has them: exact input, t ≥ 2, see :func:`attngeom.certification.heads.certify_heads`.

    With ``layers`` = l the question is about a :class:`PolynomialMap` of degree 3^l and l lightning layers of one head,
    with or without causal mask: see :func:`attngeom.certification.layers.certify_layers`.

    >>> from attngeom.layer.coefficients import coefficients
    >>> from attngeom.network import Architecture, random_weights
    >>> certify(coefficients(random_weights(Architecture((2, 1), 1, tokens=2), QQ, seed=0))).verdict
    'realizable'
    """
    if isinstance(coefficients, PolynomialMap) or layers is not None:
        return _certify_deep(coefficients, layers, causal, seed, alone=attention is heads is value is None)
    if attention is not None:
        check_positive("attention", attention)
        if attention * coefficients.d > FACTOR_ENTRIES:
            raise SizeError(
                f"attention = {attention} given for d = {coefficients.d}; Q and K of at most"
                f" {FACTOR_ENTRIES:,} entries are written, and widths above d change nothing"
            )
    if not (0 <= tolerance < float("inf")):
        raise InputError(f"tolerance = {tolerance} given; a finite number from 0 on is required")
    if heads is None and value is not None:
        raise InputError(f"value = {str(value)[:40]} given without heads; give the number of heads, 1 for one head")
    if heads is not None and coefficients.domain.rounds:
        raise DomainError(
            "float coefficients given with heads; find_heads searches in floats, certify needs exact ones"
        )
    question = LayerQuestion(coefficients, attention, seed)
    if coefficients.domain.rounds:
        from attngeom.certification.decision import certify_float

        return certify_float(question, tolerance)
    if coefficients.domain != QQ:
        raise DomainError(
            f"coefficients over {coefficients.domain.name} given; rational numbers or floats are required"
        )
    violated = find_linear_violation(coefficients)
    if heads is not None:
        from attngeom.certification.heads import certify_heads

        return certify_heads(coefficients, attention, heads, value, violated, seed)
    if violated is not None:
        reason = f"the linear relation {violated.family} ({violated.label}) has value {violated.value}, not 0"
        return question.answer("not_realizable", reason, violated=violated)
    if coefficients.t == 1:
        from attngeom.certification.single_token import certify_single_token

        return certify_single_token(question)
    return _certify_table(question)


def _certify_deep(
    given: Coefficients | PolynomialMap, layers: int | None, causal: bool, seed: int, alone: bool
) -> LayersCertification:
    from attngeom.certification.layers import certify_layers

    if not isinstance(given, PolynomialMap) or layers is None or not alone:
        raise InputError("layers are asked about for a PolynomialMap, without attention, heads and value")
    return certify_layers(given, layers, causal, seed)


def find_linear_violation(coefficients: Coefficients) -> Violation | None:
    """The first violated linear relation: a term outside the support, a copy that differs, a symmetrization."""
    if coefficients.outside:
        term = coefficients.outside[0]
        monomial = [list(entry) for entry in sorted(term.monomial)]
        label = f"output={term.output} monomial={tuple(tuple(x) for x in monomial)}"
        data = {"output": list(term.output), "monomial": monomial}
        return Violation("support", label, 1, data, str(term.value))
    return _find_copy(coefficients) or _find_symmetrization(coefficients)


def _first_true(mask: Array) -> tuple[int, ...] | None:
    places = np.argwhere(mask)
    return tuple(int(x) for x in places[0]) if len(places) else None


def _find_copy(coefficients: Coefficients) -> Violation | None:
    single, cross, d = coefficients.single, coefficients.cross, coefficients.d
    for j in range(1, coefficients.t):
        place = _first_true(single[:, j] != single[:, 0])
        if place is not None:
            i, r = place
            R = triples(d)[r]
            value = (single[i, j, r] - single[i, 0, r]) / int(triple_orbits(d)[r])
            label = f"row={i} column={j} R={R}"
            return Violation("sequence-copy", label, 1, {"row": i, "column": j, "R": list(R)}, str(value))
    for j in range(coefficients.t):
        place = _first_true(np.moveaxis(cross[:, j] != cross[:, 0, :1], 1, 0))
        if place is not None:
            n, i, s, m = place
            S, context = pairs(d)[s], n + (n >= j)
            value = (cross[i, j, n, s, m] - cross[i, 0, 0, s, m]) / int(pair_orbits(d)[s])
            label = f"row={i} column={j} context={context} S={S} m={m}"
            data = {"row": i, "column": j, "context": context, "S": list(S), "m": m}
            return Violation("sequence-copy", label, 1, data, str(value))
    return None


def _find_symmetrization(coefficients: Coefficients) -> Violation | None:
    if coefficients.t == 1:
        return None
    d = coefficients.d
    difference = coefficients.single[:, 0] - symmetrize(coefficients.cross[:, 0, 0], d, QQ)
    place = _first_true(difference != 0)
    if place is None:
        return None
    i, r = place
    R = triples(d)[r]
    label = f"row={i} column=0 R={R}"
    return Violation("symmetrization", label, 1, {"row": i, "column": 0, "R": list(R)}, str(difference[i, r]))


def _certify_table(question: LayerQuestion) -> Certification:
    """The decision for t ≥ 2 when the linear relations hold."""
    coefficients, attention = question.coefficients, question.attention
    d = coefficients.d
    splitting = split_layer(coefficients.table, QQ)
    if splitting.status == "zero":
        return question.zero()
    broken = attention is not None and splitting.rank_A > attention
    if splitting.status == "none" or broken:
        y = coefficients.cross[:, 0, 0] / pair_orbits(d)[:, None]
        violated = find_violation(y, d, attention, np.random.default_rng(question.seed))
        reason = f"{violated.family} ({violated.label}) has value {violated.value[:80]}, not 0"
        if broken:
            reason += f"; the only weights have rank A = {splitting.rank_A}, above the attention width {attention}"
        return question.answer("not_realizable", reason, violated=violated)
    verdict, reason = _describe(splitting)
    return question.answer(verdict, reason, rank=splitting.rank_A, points=splitting.points)


def _describe(splitting: LayerSplitting) -> tuple[LayerVerdict, str]:
    fiber = "two points of the fiber up to scale" if len(splitting.points) == 2 else "the only point up to scale"
    if splitting.status == "complex":
        return (
            "closure_only",
            "the linear factors are conjugate: all equations of layers hold, but no real weights exist",
        )
    if splitting.status == "real":
        return "realizable", f"weights over a real quadratic field: {fiber}, rank A = rank V = 1"
    return "realizable", f"rational weights: {fiber}, rank A = {splitting.rank_A}, rank V = {splitting.rank_V}"
