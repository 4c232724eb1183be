"""Which weights give this function? From coefficients, or from a black box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import RR, Array
from attngeom.layer.blackbox import BlackBox
from attngeom.layer.coefficients import Coefficients, scale_to_one
from attngeom.layer.float_splitting import split_layer_floats
from attngeom.layer.interpolation import interpolate
from attngeom.layer.splitting import LayerMatrices, apparent_mask, check_copies, split_layer
from attngeom.limits.rounding import RECOVERED_ERROR
from attngeom.network import Architecture, Head, VirtualWeights, Weights
from attngeom.network.mask import Mask
from attngeom.recovery.recover_deep import check_identifiable, recover_deep
from attngeom.recovery.results import Recovery
from attngeom.recovery.virtual_lift import lift_virtual
from attngeom.results import Failure, Standing


def recover(
    source: Coefficients | BlackBox | Callable[[Array], Array],
    architecture: Architecture | None = None,
    seed: int = 0,
    tolerance: float = RECOVERED_ERROR,
    causal: bool = False,
) -> Recovery:
    """Weights that give the function described by coefficients (one layer) or by a black box (any depth).

    Coefficients over Q give exact weights over Q or Q(√D), and both points of a two-point fiber ([G] Theorem 3.2).
    Without an architecture, the attention width is the rank of A, and the mask is causal if the coefficients look so
    or ``causal`` says so. A callable is taken as a black box over floats.

    >>> from attngeom.layer.coefficients import coefficients
    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> found = recover(coefficients(random_weights(Architecture((3, 2), 2), QQ, seed=0)))
    >>> found.outcome, found.is_exact
    ('recovered', True)
    """
    if isinstance(source, Coefficients):
        return recover_layer(source, architecture, seed, tolerance, causal)
    box = source if isinstance(source, BlackBox) else BlackBox(source)
    if architecture is None:
        raise InputError("a black box without an architecture was given; its widths and tokens are required")
    if not architecture.is_cubic or box.domain.encloses:
        return recover_deep(box, architecture, seed, tolerance)
    obstacle = check_identifiable(architecture)
    if obstacle is not None:
        return Recovery.stopped(obstacle, seed=seed, domain=box.domain)
    d, d_out = architecture.widths
    interpolation = interpolate(box, d, d_out, architecture.tokens, box.domain, seed, tolerance=tolerance)
    result = recover_layer(interpolation.coefficients, architecture, seed, tolerance)
    error = interpolation.residual if interpolation.residual is not None else result.error_estimate
    if result.error_estimate is not None and error is not None:
        error = max(error, result.error_estimate)
    # That the values are those of a layer is not proven, exact as they may be.
    standing: Standing = "estimate" if result.weights else "undecided"
    return replace(result, standing=standing, error_estimate=error, queries=interpolation.queries)


def recover_layer(
    coefficients: Coefficients,
    architecture: Architecture | None = None,
    seed: int = 0,
    tolerance: float = RECOVERED_ERROR,
    causal: bool = False,
) -> Recovery:
    """Weights of one lightning layer from its coefficients: exact over Q and GF(p), least squares over floats.

    Floats are scaled to size one by a power of two first, and the weights back: tiny and huge functions are alike.
    """
    domain, exponent = coefficients.domain, 0
    if domain.rounds:
        coefficients, exponent = scale_to_one(coefficients)
    if coefficients.t < 2:
        reason = "t = 1: the coefficients do not determine A and V ([G] Theorem 3.2 needs t ≥ 2)"
        failure = Failure(stage="coefficients", reason=reason, is_hypothesis=True)
        return Recovery.stopped(failure, seed=seed, domain=domain)
    known: dict[str, Any] = {"standing": "proven" if domain.is_exact else "estimate", "seed": seed, "domain": domain}
    mask = architecture.mask if architecture is not None else Mask(causal or apparent_mask(coefficients).hides)
    obstacle = check_copies(coefficients, mask, tolerance)
    if obstacle is not None:
        return Recovery.stopped(obstacle, **known)
    table = np.ascontiguousarray(coefficients.table)
    split = split_layer_floats(table, tolerance, seed) if domain.rounds else split_layer(table, domain)
    known |= {"domain": split.domain, "error_estimate": split.residual, "separation": split.separation}
    if split.status == "complex":
        return Recovery(outcome="closure_only", reason=split.reason, stage="splitting", **known)
    if split.status == "none":
        return Recovery.stopped(Failure(stage="splitting", reason=split.reason), **known)
    known["error_estimate"] = split.residual or 0.0
    d, d_out, t = coefficients.d, coefficients.d_out, coefficients.t
    if architecture is None:
        architecture = Architecture((d, d_out), max(1, split.rank_A), tokens=t, causal=mask.hides)
    if architecture.widths != (d, d_out) or architecture.tokens != t or architecture.is_factored:
        raise InputError(
            f"coefficients of a map {d}×{t} → {d_out}×{t} given; one unfactored layer of that size is required"
        )
    if split.rank_A > architecture.attention[0]:
        reason = f"A has rank {split.rank_A}, attention width {architecture.attention[0]} is too small"
        return Recovery.stopped(Failure(stage="attention width", reason=reason), **known)
    points = split.points or (LayerMatrices.zero(d, d_out, split.domain),)
    virtual = (VirtualWeights((point.A,), point.V, point.domain, architecture.rule) for point in points)
    weights = tuple(_scale(lift_virtual(virtual_point, architecture), exponent) for virtual_point in virtual)
    reason = "two points of the fiber" if len(weights) == 2 else "one point of the fiber"
    if split.status == "zero":
        reason = "the zero function: its fiber is the union of {A = 0} and {V = 0}, of which one point is given"
    return Recovery(outcome="recovered", reason=reason, weights=weights, **known)


def _scale(weights: Weights, exponent: int) -> Weights:
    """The weights of 2^exponent times the function: A takes the factor, and V what could overflow there."""
    if not exponent:
        return weights
    inner = min(max(exponent, -900), 900)
    head = weights.layers[0][0]
    Q, K = np.ldexp(head.Q, inner // 2), np.ldexp(head.K, inner - inner // 2)
    return Weights(weights.architecture, RR, ((Head(Q, K, np.ldexp(head.V, exponent - inner)),),))
