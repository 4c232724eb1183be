"""The refinement of weights to the values of a function, in floats."""

from __future__ import annotations

import numpy as np

from attngeom.exact.domains import RR, Array
from attngeom.exact.fitting import fit
from attngeom.limits.rounding import FIT_FIBER, FIT_REST
from attngeom.limits.trials import POLISH_STEPS
from attngeom.network import Weights, forward
from attngeom.network.tangent import jacobian


def relative_error(weights: Weights, X: Array, Y: Array) -> Array:
    """(φ(X) − Y) / ‖Y‖ for each input, flattened."""
    sizes = np.linalg.norm(Y, axis=(1, 2), keepdims=True)
    return ((forward(weights, X) - Y) / np.where(sizes > 0, sizes, 1.0)).ravel()


def largest_error(weights: Weights, X: Array, Y: Array) -> float:
    """The largest ‖φ(X) − Y‖ / ‖Y‖ of all inputs, infinite if an output is not finite."""
    error = float(np.linalg.norm(relative_error(weights, X, Y).reshape(len(X), -1), axis=1).max())
    return error if np.isfinite(error) else float("inf")


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

    def at(vector: Array) -> Weights:
        return Weights.from_vector(weights.architecture, vector, RR)

    def derivative(vector: Array) -> tuple[Array, Array]:
        here = at(vector)
        units = np.concatenate([np.full(tensor.size, np.linalg.norm(tensor)) for _, tensor in here.tensors()])
        return (jacobian(here, X) * scale).T * units, units

    return at(
        fit(
            weights.vector(),
            lambda x: relative_error(at(x), X, Y),
            derivative,
            steps=POLISH_STEPS,
            cut=FIT_FIBER,
            rest=FIT_REST,
        )
    )
