"""Least squares in floats: damped steps, and the refinement of weights to the values of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.network import Weights, forward
from attngeom.network.tangent import jacobian

Moved = TypeVar("Moved")
STEPS = 40


def relative_error(weights: Weights, X: Array, Y: Array) -> Array:
    """(φ(X) − Y) / ‖Y‖ for each input, flattened."""
    sizes = np.linalg.norm(Y, axis=(1, 2), keepdims=True)
    return ((forward(weights, X) - Y) / np.where(sizes > 0, sizes, 1.0)).ravel()


def largest_error(weights: Weights, X: Array, Y: Array) -> float:
    """The largest ‖φ(X) − Y‖ / ‖Y‖ of all inputs, infinite if an output is not finite."""
    error = float(np.linalg.norm(relative_error(weights, X, Y).reshape(len(X), -1), axis=1).max())
    return error if np.isfinite(error) else float("inf")


def _tensor_norms(weights: Weights) -> Array:
    """For each parameter the norm of the tensor to which it belongs."""
    return np.concatenate([np.full(tensor.size, np.linalg.norm(tensor)) for _, tensor in weights.tensors()])


def damped_step(
    J: Array, error: Array, damping: float, move: Callable[[Array], tuple[Array, Moved]], cut: float = 0.0
) -> tuple[Array, Moved, float] | None:
    """The first of eight Levenberg–Marquardt steps, more and more damped, that lowers ‖error‖; None if none does.

    ``move`` takes a step and says what the error is then, and where that is. Directions with singular values below
    ``cut`` times the largest are not moved. The last number is the damping to go on with.
    """
    left, values, right = lapack.svd(J, full_matrices=False)
    projected = left.T @ error
    for _ in range(8):
        gains = values / (values**2 + (damping * values[0]) ** 2)
        gains[values < cut * values[0]] = 0.0
        moved_error, moved = move(right.T @ (gains * projected))
        if np.linalg.norm(moved_error) < np.linalg.norm(error):
            return moved_error, moved, max(damping / 30, 1e-15)
        damping *= 8
    return None


def polish(weights: Weights, X: Array, Y: Array) -> Weights:
    """Levenberg–Marquardt steps that fit φ(X) to Y, relative to the size of each Y; never worse than the start.

    Steps are measured relative to the norm of each tensor, so that it does not matter where the scale of the function
    sits. Directions along the fiber are not moved: the steps have least norm.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 2), RR, seed=0)
    >>> X = np.random.default_rng(0).standard_normal((20, 2, 2))
    >>> near = Weights.from_vector(w.architecture, w.vector() + 1e-3, RR)
    >>> bool(np.abs(relative_error(polish(near, X, forward(w, X)), X, forward(w, X))).max() < 1e-13)
    True
    """
    sizes = np.linalg.norm(Y, axis=(1, 2))
    keep = sizes > 0
    X, Y, sizes = X[keep], Y[keep], sizes[keep]
    scale = np.repeat(1 / sizes, Y.shape[1] * Y.shape[2])
    error = relative_error(weights, X, Y)
    damping = 1e-4
    quiet = 0
    for _ in range(STEPS):
        units, size = _tensor_norms(weights), np.linalg.norm(error)

        def move(step: Array, start: Weights = weights, units: Array = units) -> tuple[Array, Weights]:
            trial = Weights.from_vector(start.architecture, start.vector() - units * step, RR)
            return relative_error(trial, X, Y), trial

        found = damped_step((jacobian(weights, X) * scale).T * units, error, damping, move, cut=1e-11)
        if found is None:
            break
        error, weights, damping = found
        quiet = quiet + 1 if np.linalg.norm(error) > 0.5 * size else 0
        if quiet == 3 and np.linalg.norm(error) < 1e-12:
            break
    return weights
