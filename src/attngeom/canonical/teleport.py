"""Moving along the fiber: to the smallest weights, or to the largest gradient within a budget of weight norm.

The group acts linearly on weight space. A gradient of a loss of the function transforms by the inverse transpose, so it
is known on the whole orbit once it is known at one point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import RR, Array
from attngeom.network import Architecture, Symmetry, Weights, identity_symmetry
from attngeom.network.symmetries import HeadSymmetry

Objective = Literal["norm", "gradient"]
MAX_SWEEPS = 2000
MAX_STEPS = 500


@dataclass(frozen=True, eq=False)
class Teleport:
    """A group element, the weights it leads to, and the objective (a norm) before and after."""

    symmetry: Symmetry
    weights: Weights
    before: float
    after: float


def minimise_norm(weights: Weights, tolerance: float = 1e-13) -> Teleport:
    """The point of the orbit with the least Euclidean norm of all weights.

    The norm is convex along one-parameter groups, so the minimum over one factor at a time, a geometric mean of two
    Gram matrices, descends to the global minimum. Factors with a singular Gram matrix are left as they are: there the
    infimum is not attained on the orbit.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1), 1), np.array([4.0, 1.0, 2.0]), RR)
    >>> minimise_norm(w).weights.vector().round(6).tolist()
    [2.0, 2.0, 2.0]
    """
    _check_floats(weights)
    symmetry = identity_symmetry(weights.architecture, RR)
    moved = weights
    size = float(np.linalg.norm(weights.vector()))
    for _ in range(MAX_SWEEPS):
        step = _balance(moved)
        symmetry = step.compose(symmetry)
        moved = step.apply(moved)
        now = float(np.linalg.norm(moved.vector()))
        if now >= size * (1 - tolerance):
            break
        size = now
    return Teleport(symmetry, moved, float(np.linalg.norm(weights.vector())), float(np.linalg.norm(moved.vector())))


def _check_floats(weights: Weights) -> None:
    if weights.domain != RR:
        raise DomainError(f"weights over {weights.domain.name} given; norms are minimised over floats")


def _power(S: Array, exponent: float) -> Array:
    """A power of a symmetric positive definite matrix."""
    values, vectors = np.linalg.eigh(S)
    return (vectors * values**exponent) @ vectors.T


def _mean_root(P: Array, R: Array) -> Array:
    """The C that minimises tr(CᵀC P) + tr((CᵀC)^{-1} R): CᵀC = P^{-1} # R; the identity if one is singular."""
    if min(np.linalg.cond(P), 1e30) > 1e12 or min(np.linalg.cond(R), 1e30) > 1e12:
        return np.eye(len(P))
    root, inverse = _power(P, 0.5), _power(P, -0.5)
    return _power(inverse @ _power(root @ R @ root, 0.5) @ inverse, 0.5)


def _balance(weights: Weights) -> Symmetry:
    """One sweep: every factor of the group at its optimum for the others, one after another."""
    architecture = weights.architecture
    total = identity_symmetry(architecture, RR)
    moved = weights
    for part in ("heads", "scales", *(range(len(total.between)))):
        identity = identity_symmetry(architecture, RR)
        if part == "heads":
            layers = tuple(
                tuple(
                    HeadSymmetry(
                        _mean_root(head.K @ head.K.T, head.Q @ head.Q.T),
                        np.eye(1),
                        None if head.O is None else _mean_root(head.V @ head.V.T, head.O.T @ head.O),
                    )
                    for head in heads
                )
                for heads in moved.layers
            )
            step = Symmetry(architecture, RR, layers, identity.between, identity.permutations)
        elif part == "scales":
            if architecture.kind == "softmax":
                continue
            layers = tuple(
                tuple(HeadSymmetry(g.C, np.array([[_scale(head.Q, head.V)]]), g.B) for head, g in zip(heads, elements))
                for heads, elements in zip(moved.layers, identity.heads)
            )
            step = Symmetry(architecture, RR, layers, identity.between, identity.permutations)
        else:
            place = int(part)
            outputs = [head.V if head.O is None else head.O for head in moved.layers[place]]
            inputs = [matrix for head in moved.layers[place + 1] for matrix in (head.Q, head.K, head.V)]
            D = _mean_root(np.sum([x @ x.T for x in outputs], axis=0), np.sum([x.T @ x for x in inputs], axis=0))
            between = tuple(D if index == place else E for index, E in enumerate(identity.between))
            step = Symmetry(architecture, RR, identity.heads, between, identity.permutations)
        total = step.compose(total)
        moved = step.apply(moved)
    return total


def _scale(Q: Array, V: Array) -> float:
    """The λ that minimises ‖λ Q‖² + ‖V / λ‖²."""
    top, bottom = float(np.linalg.norm(V)), float(np.linalg.norm(Q))
    return (top / bottom) ** 0.5 if top and bottom else 1.0


def transported_gradient(symmetry: Symmetry, gradient: Array) -> Array:
    """The gradient at g · w of a loss of the function, from its gradient at w: the inverse transpose of the action.

    G_K → C^{-T} G_K Dᵀ and so on: it is the action of the element with every matrix replaced by its inverse transpose.
    """
    architecture = symmetry.architecture
    dual = Symmetry(
        architecture,
        RR,
        tuple(
            tuple(
                HeadSymmetry(np.linalg.inv(g.C).T, 1 / g.scale, None if g.B is None else np.linalg.inv(g.B).T)
                for g in heads
            )
            for heads in symmetry.heads
        ),
        tuple(np.linalg.inv(D).T for D in symmetry.between),
        symmetry.permutations,
    )
    return dual.apply(Weights.from_vector(architecture, gradient, RR)).vector()


def _moments(weights: Weights) -> list[Array]:
    """The gradient of ½‖exp(ξ) · w‖² at ξ = 0: one symmetric matrix for each factor of the group, in a fixed order."""
    architecture = weights.architecture
    found: list[Array] = []
    for heads in weights.layers:
        for head in heads:
            found.append(head.K @ head.K.T - head.Q @ head.Q.T)
            if architecture.kind == "lightning":
                found.append(np.array([[np.sum(head.Q**2) - np.sum(head.V**2)]]))
            if head.O is not None:
                found.append(head.V @ head.V.T - head.O.T @ head.O)
    for place in range(0 if architecture.residual else architecture.num_layers - 1):
        outputs = [head.V if head.O is None else head.O for head in weights.layers[place]]
        inputs = [matrix for head in weights.layers[place + 1] for matrix in (head.Q, head.K, head.V)]
        found.append(np.asarray(sum(x @ x.T for x in outputs) - sum(x.T @ x for x in inputs)))
    return found


def _exponential(direction: list[Array], rate: float, architecture: Architecture) -> Symmetry:
    """exp(rate · direction), for symmetric matrices in the order of :func:`_moments`."""
    matrices = []
    for matrix in direction:
        values, vectors = np.linalg.eigh(rate * matrix)
        matrices.append((vectors * np.exp(values)) @ vectors.T)
    remaining = iter(matrices)
    layers = tuple(
        tuple(
            HeadSymmetry(
                next(remaining),
                next(remaining) if architecture.kind == "lightning" else np.eye(1),
                None if layer.value_width is None else next(remaining),
            )
            for _ in range(layer.heads)
        )
        for layer in architecture.layers
    )
    return Symmetry(architecture, RR, layers, tuple(remaining), identity_symmetry(architecture, RR).permutations)


def _inner(first: list[Array], second: list[Array]) -> float:
    return float(sum(np.sum(x * y) for x, y in zip(first, second)))


def maximise_gradient(weights: Weights, gradient: Array, budget: float = 1.0, steps: int = MAX_STEPS) -> Teleport:
    """A point of the orbit with a larger gradient, among weights of norm at most ``budget`` times the present norm.

    ``gradient`` is the gradient of any loss of the function at ``weights``. Without a budget the supremum is infinite:
    scales run away. Ascent of log ‖∇‖ by moment maps, tangent to the sphere of the budget once it is reached, finds a
    local maximum.
    """
    _check_floats(weights)
    architecture = weights.architecture
    if gradient.shape != (architecture.num_parameters,) or not np.any(gradient):
        raise InputError("a zero gradient, or one of another size, was given; a nonzero gradient vector is required")
    if not budget >= 1:
        raise InputError(f"budget {budget} given; at least 1 is required, for the start must be allowed")
    limit = budget * float(np.linalg.norm(weights.vector()))
    symmetry, moved, dual = identity_symmetry(architecture, RR), weights, gradient
    rate = 0.1
    for _ in range(steps):
        size = float(dual @ dual)
        ascent = [-x / size for x in _moments(Weights.from_vector(architecture, dual, RR))]
        outward = _moments(moved)
        pressure = _inner(ascent, outward)
        if pressure > 0 and np.linalg.norm(moved.vector()) > limit * (1 - 1e-6):
            share = pressure / _inner(outward, outward)
            ascent = [x - share * y for x, y in zip(ascent, outward)]
        accepted = False
        while rate > 1e-12 and not accepted:
            step = _retract(_exponential(ascent, rate, architecture), moved, limit)
            trial = transported_gradient(step, dual)
            within = bool(np.linalg.norm(step.apply(moved).vector()) <= limit * (1 + 1e-9))
            accepted = within and float(trial @ trial) > size
            rate = rate * 1.5 if accepted else rate / 2
        if not accepted:
            break
        moved, symmetry, dual = step.apply(moved), step.compose(symmetry), trial
        if float(trial @ trial) < size * (1 + 1e-10):
            break
    return Teleport(symmetry, moved, float(np.linalg.norm(gradient)), float(np.linalg.norm(dual)))


def _retract(step: Symmetry, weights: Weights, limit: float) -> Symmetry:
    """The step followed by a few Newton steps down the norm of the weights, until it is within the limit."""
    for _ in range(5):
        moved = step.apply(weights)
        size = float(np.linalg.norm(moved.vector()))
        if size <= limit * (1 + 1e-10):
            break
        outward = _moments(moved)
        slope = _inner(outward, outward)
        if slope == 0:
            break
        back = _exponential(outward, -size * (size - limit) / slope, weights.architecture)
        step = back.compose(step)
    return step
