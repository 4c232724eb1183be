"""Losses and their gradients, and moves along the fiber to a large gradient within a budget of weight norm.

The group acts linearly on weight space. A gradient of a loss of the function transforms by the inverse transpose, so it
is known on the whole orbit once it is known at one point.
"""

from __future__ import annotations

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import RR, Array
from attngeom.limits.trials import GRADIENT_STEPS
from attngeom.network import Symmetry, Weights, forward
from attngeom.network.symmetry.element import exponential, inner, moments
from attngeom.network.tangent import gradient as network_gradient


def transported_gradient(symmetry: Symmetry, gradient: Array) -> Array:
    """The gradient at g · w of a loss of the function, from its gradient at w: the inverse transpose of the action."""
    moved = symmetry.transposed_inverse().apply(Weights.from_vector(symmetry.architecture, gradient, RR))
    return moved.vector()


def maximise_gradient(
    weights: Weights, gradient: Array, budget: float = 1.0, steps: int = GRADIENT_STEPS
) -> tuple[Weights, Array]:
    """A point of the orbit, of norm at most ``budget`` times the present one, with a larger gradient; and that one.

    ``gradient`` is the gradient of any loss of the function at ``weights``. Without a budget the supremum is infinite:
    scales run away. Ascent of log ‖∇‖ by moment maps, tangent to the sphere of the budget once it is reached, finds a
    local maximum.
    """
    if not weights.domain.rounds:
        raise DomainError(f"weights over {weights.domain.name} given; gradients are those of float weights")
    architecture = weights.architecture
    if gradient.shape != (architecture.num_parameters,) or not np.any(gradient):
        raise InputError("a zero gradient, or one of another size, was given; a nonzero gradient vector is required")
    if not budget >= 1:
        raise InputError(f"budget {budget} given; at least 1 is required, for the start must be allowed")
    limit = budget * float(np.linalg.norm(weights.vector()))
    moved, dual, rate = weights, gradient, 0.1
    for _ in range(steps):
        size = float(dual @ dual)
        ascent = {factor: -x / size for factor, x in moments(Weights.from_vector(architecture, dual, RR)).items()}
        outward = moments(moved)
        pressure = inner(ascent, outward)
        if pressure > 0 and np.linalg.norm(moved.vector()) > limit * (1 - 1e-6):
            share = pressure / inner(outward, outward)
            ascent = {factor: x - share * outward[factor] for factor, x in ascent.items()}
        accepted = False
        while rate > 1e-12 and not accepted:
            step, image = _retract(exponential(ascent, rate, architecture), moved, limit)
            trial = transported_gradient(step, dual)
            within = bool(np.linalg.norm(image.vector()) <= limit * (1 + 1e-9))
            accepted = within and float(trial @ trial) > size
            rate = rate * 1.5 if accepted else rate / 2
        if not accepted:
            break
        moved, dual = image, trial
        if float(trial @ trial) < size * (1 + 1e-10):
            break
    return moved, dual


def _retract(step: Symmetry, weights: Weights, limit: float) -> tuple[Symmetry, Weights]:
    """The step followed by a few Newton steps down the norm of the weights, until it is within the limit; its image."""
    moved = step.apply(weights)
    for _ in range(5):
        size = float(np.linalg.norm(moved.vector()))
        if size <= limit * (1 + 1e-10):
            break
        outward = moments(moved)
        slope = inner(outward, outward)
        if slope == 0:
            break
        back = exponential(outward, -size * (size - limit) / slope, weights.architecture)
        step = back.compose(step)
        moved = step.apply(weights)
    return step, moved


def loss(weights: Weights, X: Array, Y: Array) -> float:
    """The mean over N inputs X (N, d, t) of ‖φ(X) − Y‖²."""
    return float(np.sum((forward(weights, X) - Y) ** 2) / len(X))


def loss_gradient(weights: Weights, X: Array, Y: Array) -> Array:
    """The gradient of :func:`loss` in the weights, as a vector in storage order.

    >>> from attngeom.exact import RR
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1), RR, seed=0)
    >>> float(np.abs(loss_gradient(w, np.ones((1, 2, 2)), forward(w, np.ones((1, 2, 2))))).max())
    0.0
    """
    return 2 * network_gradient(weights, X, forward(weights, X) - Y) / len(X)
