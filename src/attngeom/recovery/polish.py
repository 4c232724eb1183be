"""Least squares refinement of float weights to the values of a function."""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.network import Weights, forward
from attngeom.network.tangent import jacobian


def relative_residual(weights: Weights, X: Array, Y: Array) -> Array:
    """(φ(X) − Y) / ‖Y‖ for each input, flattened."""
    sizes = np.linalg.norm(Y, axis=(1, 2), keepdims=True)
    return ((forward(weights, X) - Y) / np.where(sizes > 0, sizes, 1.0)).ravel()


def _tensor_norms(weights: Weights) -> Array:
    """For each parameter the norm of the tensor to which it belongs."""
    return np.concatenate([np.full(tensor.size, np.linalg.norm(tensor)) for _, tensor in weights.tensors()])


def polish(weights: Weights, X: Array, Y: Array, steps: int = 40) -> Weights:
    """Levenberg–Marquardt steps that fit φ(X) to Y, relative to the size of each Y; never worse than the start.

    Steps are measured relative to the norm of each tensor, so that it does not matter where the scale of the function
    sits. Directions along the fiber are not moved: the steps have least norm.

    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 2), RR, seed=0)
    >>> X = np.random.default_rng(0).standard_normal((20, 2, 2))
    >>> near = Weights.from_vector(w.architecture, w.vector() + 1e-3, RR)
    >>> bool(np.abs(relative_residual(polish(near, X, forward(w, X)), X, forward(w, X))).max() < 1e-13)
    True
    """
    sizes = np.linalg.norm(Y, axis=(1, 2))
    keep = sizes > 0
    X, Y, sizes = X[keep], Y[keep], sizes[keep]
    scale = np.repeat(1 / sizes, Y.shape[1] * Y.shape[2])
    error = relative_residual(weights, X, Y)
    damping = 1e-4
    quiet = 0
    for _ in range(steps):
        units = _tensor_norms(weights)
        J = (jacobian(weights, X) * scale).T * units
        left, values, right = lapack.svd(J, full_matrices=False)
        projected = left.T @ error
        improved = False
        for _ in range(8):
            gains = values / (values**2 + (damping * values[0]) ** 2)
            gains[values < 1e-11 * values[0]] = 0.0
            step = units * (right.T @ (gains * projected))
            trial = Weights.from_vector(weights.architecture, weights.vector() - step, RR)
            trial_error = relative_residual(trial, X, Y)
            if np.linalg.norm(trial_error) < np.linalg.norm(error):
                improved = True
                break
            damping *= 8
        if not improved:
            break
        quiet = quiet + 1 if np.linalg.norm(trial_error) > 0.5 * np.linalg.norm(error) else 0
        weights, error = trial, trial_error
        damping = max(damping / 30, 1e-15)
        if quiet == 3 and np.linalg.norm(error) < 1e-12:
            break
    return weights
