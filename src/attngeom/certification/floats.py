"""Float coefficients: the nearest layer found and a bound below every layer, and a verdict if they are clear."""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom import digits
from attngeom.certification.results import Certification, LayerQuestion
from attngeom.exact import lapack
from attngeom.layer.coefficients import scale_to_one
from attngeom.layer.distance_bounds import conjugate_pair_distance, lower_bound
from attngeom.layer.float_splitting import check_width
from attngeom.layer.nearest import nearest_layer
from attngeom.limits.trials import NEAREST_STARTS


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
