"""Moves along the fiber: to the least weight norm, and to a large gradient within a budget of weight norm.

The least norm on an orbit of the symmetry group is found with each factor in turn at its optimum.

The group acts linearly on weight space. A gradient of a loss of the function transforms by the inverse transpose, so it
is known on the whole orbit once it is known at one point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.errors import DomainError, InputError, RangeError, SingularError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.exact.numbers import join_scale, split_scale
from attngeom.limits.rounding import NORM_GRAM, NORM_LEAST, NORM_NEAR, NORM_PROGRESS, NORM_RELAXATION, NORM_ROUGH
from attngeom.limits.trials import GRADIENT_STEPS, NORM_PATIENCE, NORM_SWEEPS, ROUGH_NORM_SWEEPS
from attngeom.network import Symmetry, Weights, forward, identity_symmetry
from attngeom.network.symmetry import linear_factors, tensors_of, weights_of
from attngeom.network.symmetry.element import exponential, inner, moments
from attngeom.network.symmetry.factor import GroupFactor, LinearFactor, Tensors
from attngeom.network.tangent import gradient as network_gradient


@dataclass(frozen=True, eq=False)
class LeastNorm:
    """Weights of least norm in the closure of an orbit.

    ``symmetry`` leads there; None if the infimum is not attained on the orbit. ``imbalance`` is the largest moment
    relative to the tensors that it balances: 0 at the minimum.
    """

    weights: Weights
    symmetry: Symmetry | None
    imbalance: float


def least_norm(weights: Weights) -> LeastNorm:
    """The point of the closure of the orbit with the least Euclidean norm of all weights; it has the same function.

    The norm is convex along one-parameter groups, so that the minimum over one factor at a time, the balanced factors
    of the product on which the function depends, descends to the global minimum; there all moments vanish, and it is
    unique up to orthogonal changes of basis (Kempf and Ness). Where a product has lower rank than its factors the
    infimum is attained in the closure only: what the function does not see becomes zero.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1), 1), np.array([4.0, 1.0, 2.0]), RR)
    >>> least_norm(w).weights.vector().round(6).tolist()
    [2.0, 2.0, 2.0]
    """
    if not weights.domain.rounds:
        raise DomainError(f"weights over {weights.domain.name} given; norms are minimised over floats")
    architecture = weights.architecture
    tensors = tensors_of(weights)
    symmetry: Symmetry | None = identity_symmetry(architecture, RR)
    best: list[float] = []
    for _ in range(NORM_SWEEPS):
        imbalance = 0.0
        step: dict[GroupFactor, Array] = {}
        for factor in linear_factors(architecture):
            imbalance = max(imbalance, _imbalance(factor, tensors))
            element, moved = factor.fix(tensors)
            tensors |= moved
            if element.element is None:
                symmetry = None
            else:
                step[factor] = element.element
        if symmetry is not None:
            symmetry = Symmetry(architecture, RR, step).compose(symmetry)
        best.append(min([imbalance, *best[-1:]]))
        if imbalance < NORM_LEAST or (
            len(best) > NORM_PATIENCE and best[-1] > NORM_PROGRESS * best[-1 - NORM_PATIENCE]
        ):
            break
    worst = max(_imbalance(factor, tensors) for factor in linear_factors(architecture))
    return LeastNorm(weights_of(architecture, tensors, RR), symmetry, worst)


def rough_gauge(weights: Weights) -> Symmetry | None:
    """A group element that leads to about the least norm on the orbit; None if none is least or floats are too few.

    The sweeps are those of :func:`least_norm`, by Gram matrices where these are well conditioned, and in no particular
    basis among those that rotations relate.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1), 1), np.array([4.0, 1.0, 2.0]), RR)
    >>> rough_gauge(w).apply(w).vector().round(2).tolist()
    [2.0, 2.0, 2.0]
    """
    architecture = weights.architecture
    tensors = tensors_of(weights)
    elements: dict[GroupFactor, Array] = {}
    for _ in range(ROUGH_NORM_SWEEPS):
        imbalance = 0.0
        for factor in linear_factors(architecture):
            T, S, e, f = _units(factor, tensors)
            G, H = T @ T.T, S @ S.T
            difference = _difference(G, H, 2 * (e - f))
            imbalance = max(imbalance, difference)
            element = _balancing(G, H)
            if element is None:
                step, moved = factor.fix(tensors)
                if step.element is None:
                    return None
                element = step.element
            else:
                element = join_scale(element, (f - e) // 2)
                if difference < NORM_NEAR:
                    element = _lengthened(element)
                try:
                    moved = factor.act(element, tensors, RR)
                except (SingularError, RangeError):
                    return None
            tensors |= moved
            elements[factor] = element @ elements[factor] if factor in elements else element
        if imbalance < NORM_ROUGH:
            break
    return Symmetry(architecture, RR, elements)


def _balancing(G: Array, H: Array) -> Array | None:
    """The g with g G gᵀ = g^{-T} H g^{-1} diagonal, for positive definite G and H; None where floats are too few."""
    try:
        C = lapack.cholesky(G)
        pivots = np.diagonal(C)
        values, vectors = lapack.eigh(C.T @ H @ C)
        if pivots.min() ** 2 < NORM_GRAM * pivots.max() ** 2 or values[0] < NORM_GRAM * values[-1]:
            return None
        return np.asarray(lapack.solve(C.T, vectors * values**0.25).T)
    except (SingularError, RangeError):
        return None


def _lengthened(g: Array) -> Array:
    """The power NORM_RELAXATION of g, seen as a positive matrix: rotations from the left do not matter."""
    values, vectors = lapack.eigh(g.T @ g)
    return np.asarray((vectors * values ** (NORM_RELAXATION / 2)).T)


def _imbalance(factor: LinearFactor, tensors: Tensors) -> float:
    """‖Σ T Tᵀ − Σ S Sᵀ‖ / ‖Σ T Tᵀ + Σ S Sᵀ‖, without overflow."""
    T, S, e, f = _units(factor, tensors)
    return _difference(T @ T.T, S @ S.T, 2 * (e - f))


def _units(factor: LinearFactor, tensors: Tensors) -> tuple[Array, Array, int, int]:
    """(T', S', e, f) with T = T' 2^e and S = S' 2^f of moderate size, e + f even."""
    T, S = factor.stacks(tensors)
    (T_unit, e), (S_unit, f) = split_scale(T), split_scale(S)
    return (T_unit / 2, S_unit, e + 1, f) if (e + f) % 2 else (T_unit, S_unit, e, f)


def _difference(G: Array, H: Array, exponent: int) -> float:
    """‖2^exponent G − H‖ / ‖2^exponent G + H‖ for Gram matrices of moderate size, 0 if both vanish."""
    if not G.any() or not H.any():
        return 1.0 if G.any() or H.any() else 0.0
    G, H = join_scale(G, min(exponent, 0)), join_scale(H, min(-exponent, 0))
    return float(np.linalg.norm(G - H) / np.linalg.norm(G + H))


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
