"""One softmax layer near zero: φ_j(X) = Σ V_h x̄ + Σ V_h C A_h x_j + O(X⁵), C the covariance of the tokens.

The third-order part is the table of the lightning layer with the same (A_h, V_h), so it gives each head up to
(λ A, V/λ); the first-order part Σ V_h gives the scales, if the V_h found are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.heads.results import Heads
from attngeom.layer.quadrics import polar_points, polarize
from attngeom.limits.rounding import TAYLOR_STEP
from attngeom.limits.trials import TAYLOR_SIZES
from attngeom.network import Architecture


def softmax_table(box: Callable[[Array], Array], architecture: Architecture) -> tuple[Array, Array, float]:
    """The table of quadrics Σ V_h z (A_hᵀ z)ᵀ and the matrix Σ V_h, from values, with their relative accuracy.

    Tokens are y + z, and y for all others: C = c z zᵀ with c = (t − 1)/t². The part of column 1 that is even in y
    cancels against −y; what is left is V_h z (zᵀ A_h y) at order three.
    """
    d, t = architecture.widths[0], architecture.tokens
    tau = float(architecture.temperature)
    unit, points = np.eye(d), polar_points(d)
    # Every pair of a target direction e_m (token y) and a context direction z.
    y = np.repeat(unit, len(points), axis=0)
    z = np.tile(points, (d, 1)).astype(np.float64)
    cubic = _third_order(box, y, z, t) - _third_order(box, -y, z, t)
    # Σ V C A (y + z at token 0, y at token 1): token 1 has x_j = y; odd in y doubles it.
    values = cubic.reshape(d, len(points), -1) / 2 * (t * t / (t - 1)) * tau
    quadrics = polarize(np.transpose(values, (2, 0, 1)), RR)
    equal = np.repeat(unit[:, :, None], t, axis=2)
    total = np.asarray(box(equal), dtype=np.float64)[:, :, 0].T
    return np.ascontiguousarray(quadrics), total, 1e-9


def _third_order(box: Callable[[Array], Array], y: Array, z: Array, t: int) -> Array:
    """The coefficient of ε³ in column 1 of φ(ε X), X with tokens y + z, y, …, y (masked layers: see token 1)."""
    X = np.repeat(y[:, :, None], t, axis=2)
    X[:, :, 0] += z
    nodes = TAYLOR_STEP * np.arange(1, TAYLOR_SIZES + 1)
    values = np.stack([np.asarray(box(X * node), dtype=np.float64)[:, :, 1] for node in nodes])
    opposite = np.stack([np.asarray(box(-X * node), dtype=np.float64)[:, :, 1] for node in nodes])
    odd = (values - opposite) / 2
    powers = np.stack([nodes ** (2 * order + 1) for order in range(TAYLOR_SIZES)], axis=1)
    weights = lapack.inv(powers)[1]
    cubic: Array = np.tensordot(weights, odd, axes=1)
    return cubic


def scale_heads(heads: Heads, total: Array) -> Heads:
    """The heads with the scales c_h for which Σ c_h V_h is the given matrix; undecided if they are not unique."""
    if heads.outcome != "found" or not heads.blocks:
        return heads
    columns = np.stack([head.V.ravel() for head in heads.blocks], axis=1)
    domain = heads.blocks[0].domain
    if len({head.domain for head in heads.blocks}) > 1:
        return replace(heads, outcome="undecided", standing="undecided", blocks=(), reason="heads over several fields")
    if not domain.rounds:
        scales = (
            domain.solve(columns, domain.convert(total.ravel())) if domain.rank(columns) == columns.shape[1] else None
        )
    else:
        values = lapack.svdvals(columns)
        scales = lapack.lstsq(columns, total.ravel()) if values[-1] > 1e-8 * values[0] else None
        if scales is not None:
            miss = float(np.linalg.norm(columns @ scales - total.ravel()) / max(float(np.linalg.norm(total)), 1e-300))
            scales = scales if miss < 1e-5 else None
    if scales is None or any(not s for s in scales.tolist()):
        reason = "Σ V_h does not give the scales of the heads: the V_h found are dependent, or the sum does not fit"
        return replace(heads, outcome="undecided", standing="undecided", blocks=(), unique=None, reason=reason)
    inverses = domain.invert(scales)
    blocks = tuple(replace(head, A=head.A * inverses[h], V=head.V * scales[h]) for h, head in enumerate(heads.blocks))
    return replace(heads, blocks=blocks)
