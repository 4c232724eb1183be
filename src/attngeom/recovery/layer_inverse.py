"""Undoing virtual lightning layers on two tokens, in floats and balls.

If X = P N with two fixed columns P and a 2×2 matrix N of coordinates, the virtual layer X ↦ X · mask(Xᵀ M X) is the
virtual layer N ↦ N · mask(Nᵀ S N) with S = Pᵀ M P.
"""

from __future__ import annotations

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.precise import midpoints, to_float
from attngeom.limits.rounding import INVERSE_ACCEPTED
from attngeom.limits.trials import INVERSE_STARTS, NEWTON_STEPS
from attngeom.network.attention import Attention
from attngeom.network.virtual import virtual_layer

UNITS = np.eye(4).reshape(4, 2, 2)


def _derivative(N: Array, S: Array, mask: Array) -> Array:
    """The 4×4 Jacobian of the layer at N, in floats."""
    left, right = S @ N, N.T @ S
    change = (np.swapaxes(UNITS, 1, 2) @ left + right @ UNITS) * mask
    columns: Array = (UNITS @ ((N.T @ left) * mask) + N @ change).reshape(4, 4)
    return columns.T


def invert_layer(
    target: Array, S: Array, rule: Attention, rng: np.random.Generator, start: Array | None = None
) -> Array | None:
    """An N with N · mask(Nᵀ S N) = target, by damped Newton steps from several starts; None if none is found.

    With ``start``, the solution at a target nearby, only that one is tried.

    >>> from attngeom.exact import RR
    >>> from attngeom.network.attention import Lightning
    >>> S = np.array([[1.0, 0.2], [-0.3, 2.0]])
    >>> N = invert_layer(np.diag([0.5, 1.0]), S, Lightning(), np.random.default_rng(0))
    >>> bool(np.allclose(virtual_layer(S, N, Lightning(), RR), np.diag([0.5, 1.0])))
    True
    """
    size = float(np.abs(S).max()) * float(np.linalg.norm(target))
    if size == 0 or not np.isfinite(size):
        return None
    mask = rule.hide(np.ones((2, 2)))
    if start is not None:
        return _newton(start, target, S, mask)
    guess = np.diag(np.cbrt(np.diagonal(target)) / np.cbrt(np.where(np.diagonal(S) == 0, 1.0, np.diagonal(S))))
    # Where attention is hidden coordinates are zero: a token that sees itself alone keeps to its own direction.
    for attempt in range(INVERSE_STARTS):
        spread = 0.0 if attempt == 0 else 0.5 * np.linalg.norm(guess)
        N = _newton(guess + spread * rng.standard_normal((2, 2)) * mask, target, S, mask)
        if N is not None:
            return N
    return None


def _newton(N: Array, target: Array, S: Array, mask: Array) -> Array | None:
    # Square and regular systems of size 4, thousands of them: damped least squares take nine times as long.
    scale = np.linalg.norm(target)
    error = N @ ((N.T @ S @ N) * mask) - target
    for _ in range(NEWTON_STEPS):
        size = np.linalg.norm(error)
        if size <= 1e-15 * scale:
            break
        try:
            step = lapack.solve(_derivative(N, S, mask), error.ravel()).reshape(2, 2)
        except SingularError:
            return None
        damping = 1.0
        while damping > 1e-4:
            trial = N - damping * step
            trial_error = trial @ ((trial.T @ S @ trial) * mask) - target
            if np.linalg.norm(trial_error) < size:
                break
            damping /= 2
        else:
            break
        N, error = trial, trial_error
    return N if np.linalg.norm(error) <= INVERSE_ACCEPTED * scale else None


def refine_inverse(N: Array, target: Array, S: Array, rule: Attention, domain: Domain) -> Array:
    """The float solution N improved to the precision of balls: residuals in balls, corrections in floats."""
    if domain.rounds:
        return N
    inverse = lapack.inv(_derivative(N, to_float(S), rule.hide(np.ones((2, 2)))))
    precision = getattr(domain, "precision", 53)
    current = domain.convert(N)
    last = np.inf
    for _ in range(precision // 8):
        error = midpoints(virtual_layer(S, current, rule, domain) - target)
        largest = max(abs(x) for x in error.ravel())
        if largest == 0:
            break
        # Scaled so that residuals far below the range of floats can still be corrected in floats.
        mantissa, exponent = largest.man_exp()
        size = int(mantissa).bit_length() + int(exponent)
        if size < -precision + 16 or size >= last:
            break
        last = size
        shift = domain.convert([2])[0] ** (-size)
        correction = inverse @ to_float(error * shift).ravel()
        current = midpoints(current - domain.convert(correction.reshape(2, 2)) / shift)
    return current
