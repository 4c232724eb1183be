"""Joint refinement of a float symmetry: Gauss–Newton steps on all its factors, for all relations of all layers at once.

The least squares problem for a direction of the Lie algebra at g · W is solved by conjugate gradients; each factor
alone gives a Sylvester equation, the preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.comparison.samples import FAR
from attngeom.errors import SingularError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.network import Architecture, Symmetry, Weights
from attngeom.network.symmetry import linear_factors, tensors_of
from attngeom.network.symmetry.algebra import Derivative, Direction, inner, retraction
from attngeom.network.symmetry.factor import Place, Tensors

MAX_STEPS = 10
MAX_ITERATIONS, MANY_ITERATIONS = 300, 1500
PATIENCE = 20
WORTHWHILE = 0.95
ROUNDING = 1e-15
"""Conjugate gradients stop when so many iterations do not lower the misfit by this factor, or at rounding errors."""
ROUGH = 1e-2
"""The largest relative error of a step; steps become exact as the misfit becomes small."""

Scales = dict[Place, float]


def refine(symmetry: Symmetry, first: Weights, second: Weights, errors: Tensors | None = None) -> Symmetry:
    """A group element near the given one at which g · first misses second least, tensors relative to their size.

    If the errors of the entries of second are given and nearly explain what is missed, the search is patient until they
    do, for the misfit may rest for long before it falls.

    >>> from attngeom.network import random_symmetry, random_weights
    >>> w = random_weights(Architecture((2, 2, 2), 2), RR, seed=0)
    >>> g = random_symmetry(w.architecture, RR, seed=1)
    >>> near = retraction({x: np.ones((x.size, x.size)) for x in linear_factors(w.architecture)}, 0.01, w.architecture)
    >>> bool(np.allclose(refine(near.compose(g), w, g.apply(w)).between[0], g.between[0]))
    True
    """
    architecture = first.architecture
    scales = {
        place: np.sqrt(array.size) / (float(np.linalg.norm(array)) or 1.0)
        for place, array in tensors_of(second).items()
    }
    target = _scaled(second, scales)
    goal = {} if errors is None else {place: np.where(a > 0, scales[place] * a, np.inf) for place, a in errors.items()}
    entries = np.sqrt(sum(array.size for array in target.values()))
    moved, error = _misfit(symmetry, first, target, scales)
    for _ in range(MAX_STEPS):
        if moved is None:
            break
        size = _norm(error)
        is_in_sight = _is_in_sight(error, goal)
        # A step that is far from the end need not be exact.
        accuracy = min(ROUGH, size / entries)
        direction = _solve(_scaled(moved, scales), error, goal, architecture, accuracy)
        rate = 1.0
        while rate > 0.05:
            trial = retraction(direction, rate, architecture).compose(symmetry)
            trial_moved, trial_error = _misfit(trial, first, target, scales)
            if trial_moved is not None and _norm(trial_error) < size:
                break
            rate /= 2
        else:
            break
        symmetry, moved, error = trial, trial_moved, trial_error
        if rate == 1.0 and (_norm(error) > 0.8 * size or is_in_sight):
            break
    return symmetry


def _scaled(weights: Weights, scales: Scales) -> Tensors:
    return {place: array * scales[place] for place, array in tensors_of(weights).items()}


def _misfit(g: Symmetry, first: Weights, target: Tensors, scales: Scales) -> tuple[Weights | None, Tensors]:
    """g · first, or None if it is not finite, and what it lacks to the target."""
    try:
        moved = g.apply(first)
    except SingularError:
        return None, {}
    error = {place: target[place] - array for place, array in _scaled(moved, scales).items()}
    return (moved if np.isfinite(_norm(error)) else None), error


def is_explained(missed: Tensors, errors: Tensors, within: float = 1.0) -> bool:
    """Whether root mean squares of missed / errors are at most 1, tensor by tensor, and single entries at most FAR.

    >>> x = {(0, 0, "Q"): np.ones(2)}
    >>> is_explained({(0, 0, "Q"): np.array([0.5, 1.0])}, x), is_explained({(0, 0, "Q"): np.array([0.5, 2.0])}, x)
    (True, False)
    """
    ratios = [
        np.divide(x, a, out=np.zeros_like(x), where=x != 0) for place, a in errors.items() if (x := missed[place]).size
    ]
    return all(bool(np.mean(a**2) <= within**2 and np.max(np.abs(a)) <= FAR * within) for a in ratios)


def _is_in_sight(missed: Tensors, errors: Tensors) -> bool:
    """Whether the errors do not explain what is missed, but would if they were FAR times larger."""
    return bool(errors) and is_explained(missed, errors, FAR) and not is_explained(missed, errors)


def _norm(arrays: Tensors) -> float:
    return float(np.sqrt(sum(np.vdot(a, a) for a in arrays.values())))


@dataclass(frozen=True)
class _Sylvester:
    """The solution of X G + H X = R for positive semidefinite G, H, where it is determined."""

    U: Array
    W: Array
    denominators: Array

    @classmethod
    def of(cls, G: Array, H: Array) -> _Sylvester:
        (g, U), (h, W) = lapack.eigh(G), lapack.eigh(H)
        denominators = h[:, None] + g[None, :]
        # Directions that nothing determines are not moved.
        denominators[denominators <= 1e-13 * (h[-1] + g[-1])] = np.inf
        return cls(U, W, denominators)

    def solve(self, R: Array) -> Array:
        return np.asarray(self.W @ ((self.W.T @ R @ self.U) / self.denominators) @ self.U.T)


def _solve(tensors: Tensors, error: Tensors, goal: Tensors, architecture: Architecture, accuracy: float) -> Direction:
    """The direction whose push is closest to the error up to ``accuracy``, by preconditioned conjugate gradients."""
    derivative = Derivative(tensors, architecture)
    blocks = {factor: _Sylvester.of(*factor.grams(tensors, RR)) for factor in linear_factors(architecture)}

    def precondition(direction: Direction) -> Direction:
        return {factor: blocks[factor].solve(matrix) for factor, matrix in direction.items()}

    gradient = derivative.pull(error)
    direction = precondition(gradient)
    solution = {factor: np.zeros_like(matrix) for factor, matrix in gradient.items()}
    slope = inner(gradient, direction)
    last = _norm(error)
    enough = max((ROUNDING * last) ** 2, accuracy**2 * slope)
    unknowns = sum(matrix.size for matrix in gradient.values())
    most = max(MAX_ITERATIONS, min(MANY_ITERATIONS, 2 * unknowns)) if goal else MAX_ITERATIONS
    for iteration in range(1, most + 1):
        if not slope > enough:
            break
        image = derivative.push(direction)
        rate = slope / _norm(image) ** 2
        solution = {factor: matrix + rate * direction[factor] for factor, matrix in solution.items()}
        error = {place: array - rate * image[place] for place, array in error.items()}
        gradient = derivative.pull(error)
        step = precondition(gradient)
        previous, slope = slope, inner(gradient, step)
        direction = {factor: matrix + slope / previous * direction[factor] for factor, matrix in step.items()}
        if iteration % PATIENCE == 0:
            if _norm(error) > WORTHWHILE * last and not _is_in_sight(error, goal):
                break
            last = _norm(error)
    return solution
