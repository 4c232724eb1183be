"""Float coefficients: the nearest layer found and a bound below every layer, and a verdict if they are clear."""

from __future__ import annotations

import numpy as np

from attngeom.certification.results import Certification, LayerPoint, LayerVerdict
from attngeom.exact import lapack
from attngeom.exact.domains import RR
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.distance_bounds import conjugate_pair_distance, lower_bound
from attngeom.layer.nearest import STARTS, nearest_layer
from attngeom.layer.scaling import scale_to_one


def certify_float(coefficients: Coefficients, attention: int | None, seed: int, tolerance: float) -> Certification:
    """The verdict for float coefficients: distances relative to their norm, compared with ``tolerance``.

    "realizable" if a layer lies within the tolerance; "not_realizable" (or "closure_only", if complex weights lie
    within it) if every layer is farther away; else "undecided" with both numbers. Both enclose the true distance,
    rounding errors included. The verdict does not change when all coefficients are multiplied by a power of two.
    """
    unit, exponent = scale_to_one(coefficients)
    outside = sum(float(term.value) ** 2 for term in unit.outside)
    norm = float(np.sqrt(np.sum(unit.single**2) + np.sum(unit.cross**2) + outside))
    if norm == 0.0:
        zero = LayerPoint(np.zeros((coefficients.d,) * 2), np.zeros((coefficients.d_out, coefficients.d)), RR)
        reason = "the zero function, which A = 0 computes"
        return _result("realizable", reason, coefficients, attention, seed, 0, zero, 0.0, tolerance)
    bound = lower_bound(unit, attention) / norm * (1 - 1e-12)
    # With a bound above the tolerance more starts cannot change the verdict.
    nearest = nearest_layer(unit, attention, seed, tolerance * norm / 2, 3 if bound > tolerance else STARTS)
    distance = nearest.distance / norm * (1 + 1e-12)
    if distance <= tolerance:
        values = lapack.svdvals(nearest.A)
        size = int(np.sum(values > max(tolerance, 1e-12) * values[0])) if values[0] > 0 else 0
        half = exponent // 2
        point = LayerPoint(np.ldexp(nearest.A, half), np.ldexp(nearest.V, exponent - half), RR)
        reason = f"a layer lies at relative distance {distance:.2e}, within the tolerance"
        return _result("realizable", reason, coefficients, attention, seed, size, point, distance, tolerance)
    if bound > tolerance:
        if coefficients.t > 1 and conjugate_pair_distance(unit) <= tolerance * norm:
            reason = f"conjugate linear factors within the tolerance; every real layer is at distance ≥ {bound:.2e}"
            return _result("closure_only", reason, coefficients, attention, seed, 1, None, distance, tolerance)
        reason = f"every layer is at relative distance ≥ {bound:.2e}; the nearest found is at {distance:.2e}"
        return _result("not_realizable", reason, coefficients, attention, seed, None, None, distance, tolerance)
    reason = f"the nearest layer found is at relative distance {distance:.2e}, every layer at ≥ {bound:.2e}"
    return _result("undecided", reason, coefficients, attention, seed, None, None, distance, tolerance)


def _result(
    verdict: LayerVerdict,
    reason: str,
    coefficients: Coefficients,
    attention: int | None,
    seed: int,
    rank: int | None,
    point: LayerPoint | None,
    distance: float,
    tolerance: float,
) -> Certification:
    points = () if point is None else (point,)
    return Certification(
        verdict, reason, coefficients, attention, seed, rank, points, residual=distance, tolerance=tolerance
    )
