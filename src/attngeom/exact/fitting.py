"""Damped least squares in floats (Levenberg and Marquardt): local minima of ‖r(x)‖, one or a stack of them at once.

SciPy's ``least_squares`` comes to the same residuals at three to five times the cost (``benchmarks/fitting.py``); it
cannot keep directions at rest along which ‖r‖ is constant, as on fibers of parametrizations, and fits no stacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.limits.rounding import DAMPING, DAMPING_EASED, DAMPING_HARDENED, FIT_PROGRESS, LEAST_DAMPING
from attngeom.limits.trials import REFUSED_STEPS

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


def fit(
    start: Array,
    residual: Callable[[Array], Array],
    derivative: Callable[[Array], tuple[Array | LinearOperator, Array]],
    *,
    steps: int,
    cut: float = 0.0,
    rest: float = 0.0,
) -> Array:
    """The x to which steps u (B² + μ²)⁻¹ Bᵀ r lead from each start (..., n), B = J diag(u); ‖r‖ never rises.

    ``derivative`` gives B (..., m, n) and the units u (..., n), or an operator B, in units in which its norm is about
    one. μ is relative to the largest singular value; directions below ``cut`` times that are not moved. A fit is done
    when eight steps in a row do not lower ‖r‖, when one lowers it by 1e-9 only, or, at ‖r‖ ≤ ``rest``, by half only.

    >>> x = fit(np.array([1.0]), lambda x: x**2 - 2, lambda x: (2 * x[:, None], np.ones(1)), steps=20)
    >>> bool(abs(x[0] - 2**0.5) < 1e-14)
    True
    """
    x, r = start, residual(start)
    damping = np.full(x.shape[:-1], DAMPING)
    refused = np.zeros(x.shape[:-1], dtype=int)
    is_done = np.zeros(x.shape[:-1], dtype=bool)
    solve: Callable[[Array], Array] | None = None
    for _ in range(steps * REFUSED_STEPS):
        if solve is None:
            if not steps:
                break
            B, units = derivative(x)
            solve, steps = _solver(B, r, cut), steps - 1
        trial = x - units * solve(damping)
        moved = residual(trial)
        before, after = np.linalg.norm(r, axis=-1), np.linalg.norm(moved, axis=-1)
        better = (after < before) & ~is_done
        refused = np.where(better, 0, refused + 1)
        is_small = (after > 0.5 * before) & (after <= rest) | (after > (1 - FIT_PROGRESS) * before) | (after == 0)
        is_done |= better & is_small | (refused == REFUSED_STEPS)
        damping = np.where(
            better,
            np.maximum(damping / DAMPING_EASED, LEAST_DAMPING),
            np.where(is_done, damping, damping * DAMPING_HARDENED),
        )
        if better.any():
            x, r = np.where(better[..., None], trial, x), np.where(better[..., None], moved, r)
            solve = None
        if is_done.all():
            break
    return x


def _solver(B: Array | LinearOperator, r: Array, cut: float) -> Callable[[Array], Array]:
    """The map from a damping μ to (B² + μ²)⁻¹ Bᵀ r: matrices are decomposed once, operators are applied."""
    if not isinstance(B, np.ndarray):
        from scipy.sparse.linalg import lsmr  # slow to load, and few problems are large

        return lambda damping: np.asarray(lsmr(B, r, damp=float(damping), atol=1e-6, btol=1e-6, maxiter=100)[0])
    basis, triangle = lapack.qr(B)
    left, values, right = lapack.svd(triangle, full_matrices=False)
    projected = (r[..., None, :] @ basis @ left)[..., 0, :]
    largest = values[..., :1]

    def solve(damping: Array) -> Array:
        size = values**2 + (damping[..., None] * largest) ** 2
        gains = np.divide(values, size, out=np.zeros_like(values), where=(values > cut * largest) & (size > 0))
        return np.asarray(((gains * projected)[..., None, :] @ right)[..., 0, :])

    return solve
