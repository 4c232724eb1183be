"""Joint refinement of a float symmetry: Gauss–Newton steps on all its factors, for all relations of all layers at once.

The least squares problem for a direction of the Lie algebra at g · W is solved by conjugate gradients; each factor
alone gives a Sylvester equation, the preconditioner.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact import lapack
from attngeom.exact.domains import RR, Array
from attngeom.limits.rounding import GRADIENT_PROGRESS, GRADIENT_ROUGH, GRADIENT_ROUNDING, NOISE_EXCLUDED
from attngeom.limits.trials import GRADIENT_ITERATIONS, GRADIENT_PATIENCE, MANY_GRADIENT_ITERATIONS, REFINEMENT_STEPS
from attngeom.network import Architecture, Symmetry, Weights
from attngeom.network.symmetry import linear_factors, tensors_of
from attngeom.network.symmetry.element import Direction, retraction
from attngeom.network.symmetry.factor import LinearFactor, Place, Slot, Tensors

Scales = dict[Place, float]


def refine(symmetry: Symmetry, first: Weights, second: Weights, errors: Tensors | None = None) -> Symmetry:
    """A group element near the given one at which g · first misses second least, tensors relative to their size.

    If the errors of the entries of second are given and nearly explain what is missed, the search is patient until they
    do, for the residual may rest for long before it falls.

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
    moved, error = _residual(symmetry, first, target, scales)
    for _ in range(REFINEMENT_STEPS):
        if moved is None:
            break
        size = _norm(error)
        is_in_sight = _is_in_sight(error, goal)
        # A step that is far from the end need not be exact.
        accuracy = min(GRADIENT_ROUGH, size / entries)
        direction = _solve(_scaled(moved, scales), error, goal, architecture, accuracy)
        rate = 1.0
        while rate > 0.05:
            trial = retraction(direction, rate, architecture).compose(symmetry)
            trial_moved, trial_error = _residual(trial, first, target, scales)
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


def _residual(g: Symmetry, first: Weights, target: Tensors, scales: Scales) -> tuple[Weights | None, Tensors]:
    """g · first, or None if it is not finite, and what it lacks to the target."""
    try:
        moved = g.apply(first)
    except SingularError:
        return None, {}
    error = {place: target[place] - array for place, array in _scaled(moved, scales).items()}
    return (moved if np.isfinite(_norm(error)) else None), error


def is_explained(missed: Tensors, errors: Tensors, within: float = 1.0) -> bool:
    """Whether root mean squares of missed / errors are at most 1, tensor by tensor, and entries at most NOISE_EXCLUDED.

    >>> x = {(0, 0, "Q"): np.ones(2)}
    >>> is_explained({(0, 0, "Q"): np.array([0.5, 1.0])}, x), is_explained({(0, 0, "Q"): np.array([0.5, 2.0])}, x)
    (True, False)
    """
    ratios = [
        np.divide(x, a, out=np.zeros_like(x), where=x != 0) for place, a in errors.items() if (x := missed[place]).size
    ]
    return all(bool(np.mean(a**2) <= within**2 and np.max(np.abs(a)) <= NOISE_EXCLUDED * within) for a in ratios)


def _is_in_sight(missed: Tensors, errors: Tensors) -> bool:
    """Whether the errors do not explain what is missed, but would if they were NOISE_EXCLUDED times larger."""
    return bool(errors) and is_explained(missed, errors, NOISE_EXCLUDED) and not is_explained(missed, errors)


def _norm(arrays: Tensors) -> float:
    return float(np.sqrt(sum(np.vdot(a, a) for a in arrays.values())))


class _Side(NamedTuple):
    """The carried or the dual tensors of a factor side by side, and their parts of error and image."""

    stack: Array
    lacking: list[Array]
    changes: list[Array]


class Equations:
    """The derivative of the action at given tensors, Ṫ = E T and Ṡ = −Eᵀ S, against what the tensors lack.

    Each factor alone gives the equation E G + H E = R with G = Σ T Tᵀ, H = Σ S Sᵀ. In the bases U, W of their
    eigenvectors, E = W X Uᵀ, it is diagonal. All tensors are written in these bases, and all X, like all tensors, are
    one vector: an iteration costs a product with the tensors for each factor and side, and one with their transposes.
    """

    def __init__(self, tensors: Tensors, error: Tensors, architecture: Architecture) -> None:
        factors = linear_factors(architecture)
        self.bases: dict[LinearFactor, tuple[Array, Array]] = {}
        diagonals = []
        for factor in factors:
            (g, U), (h, W) = map(lapack.eigh, factor.grams(tensors, RR))
            diagonal = h[:, None] + g[None, :]
            # Directions that nothing determines are not moved.
            diagonal[diagonal <= 1e-13 * (h[-1] + g[-1])] = np.inf
            diagonals.append(diagonal.ravel())
            self.bases[factor] = U, W
        self.diagonal = np.concatenate(diagonals)
        self.turns: dict[Place, list[tuple[Slot, Array]]] = {place: [] for place in tensors}
        for factor, (U, W) in self.bases.items():
            for slots, basis in ((factor.carried(tensors), W), (factor.dual(tensors), U)):
                for slot in slots:
                    self.turns[slot.place].append((slot, basis))
        self.error, self.lacking = _joined(self._in_eigenbases(error))
        self.image, changes = _joined({place: np.zeros_like(array) for place, array in tensors.items()})
        self.parts: list[tuple[slice, int, _Side, _Side]] = []
        place = 0
        for factor, (U, W) in self.bases.items():
            sides = []
            for slots, basis in ((factor.carried(tensors), U), (factor.dual(tensors), W)):
                stack = np.concatenate([self._seen(tensors, slot, basis) for slot in slots], axis=1)
                lacks, moves = ([slot.see(x[slot.place]) for slot in slots] for x in (self.lacking, changes))
                sides.append(_Side(stack, lacks, moves))
            self.parts.append((slice(place, place + factor.size**2), factor.size, sides[0], sides[1]))
            place += factor.size**2

    def _in_eigenbases(self, tensors: Tensors, back: bool = False) -> Tensors:
        """Tensors in the bases of the eigenvectors, or back from these."""
        moved = dict(tensors)
        for place, turns in self.turns.items():
            for slot, basis in turns:
                moved[place] = slot.multiply(basis if back else basis.T, moved[place], RR)
        return moved

    def _seen(self, tensors: Tensors, seen: Slot, inner: Array) -> Array:
        """A tensor as a factor acts on it: in the inner basis of this side, the outer ones of the others."""
        product = tensors[seen.place]
        for slot, basis in self.turns[seen.place]:
            product = slot.multiply((inner if slot == seen else basis).T, product, RR)
        return seen.see(product)

    def push(self, x: Array) -> Array:
        """The changes of all tensors along x, overwritten by the next call."""
        self.image.fill(0.0)
        for place, size, carried, dual in self.parts:
            X = x[place].reshape(size, size)
            _scatter(X @ carried.stack, carried.changes, np.add)
            _scatter(X.T @ dual.stack, dual.changes, np.subtract)
        return self.image

    def pull(self) -> Array:
        """The transpose of :meth:`push` at the error."""
        gradient = np.empty(len(self.diagonal))
        for place, _, carried, dual in self.parts:
            total = np.concatenate(carried.lacking, axis=1) @ carried.stack.T
            total -= dual.stack @ np.concatenate(dual.lacking, axis=1).T
            gradient[place] = total.ravel()
        return gradient

    def missed(self) -> Tensors:
        """The error in the given bases."""
        return self._in_eigenbases(self.lacking, back=True)

    def direction(self, x: Array) -> Direction:
        """E = W X Uᵀ for each factor."""
        blocks = (x[place].reshape(size, size) for place, size, *_ in self.parts)
        return {factor: W @ X @ U.T for (factor, (U, W)), X in zip(self.bases.items(), blocks)}


def _joined(tensors: Tensors) -> tuple[Array, Tensors]:
    """All tensors one after another in a vector, and each as a part of it."""
    joined = np.concatenate([array.ravel() for array in tensors.values()])
    ends = np.cumsum([array.size for array in tensors.values()])[:-1]
    parts = zip(tensors.items(), np.split(joined, ends))
    return joined, {place: part.reshape(array.shape) for (place, array), part in parts}


def _scatter(stack: Array, parts: list[Array], add: np.ufunc) -> None:
    """Add the columns of a matrix to its parts."""
    place = 0
    for part in parts:
        add(part, stack[:, place : place + part.shape[1]], out=part)
        place += part.shape[1]


def _solve(tensors: Tensors, error: Tensors, goal: Tensors, architecture: Architecture, accuracy: float) -> Direction:
    """The direction whose push is closest to the error up to ``accuracy``, by preconditioned conjugate gradients."""
    equations = Equations(tensors, error, architecture)
    gradient = equations.pull()
    direction = gradient / equations.diagonal
    solution = np.zeros(len(gradient))
    slope = float(gradient @ direction)
    last = float(np.linalg.norm(equations.error))
    enough = max((GRADIENT_ROUNDING * last) ** 2, accuracy**2 * slope)
    most = max(GRADIENT_ITERATIONS, min(MANY_GRADIENT_ITERATIONS, 2 * len(gradient))) if goal else GRADIENT_ITERATIONS
    for iteration in range(1, most + 1):
        if not slope > enough:
            break
        image = equations.push(direction)
        rate = slope / float(image @ image)
        solution += rate * direction
        image *= rate
        equations.error -= image
        gradient = equations.pull()
        step = gradient / equations.diagonal
        previous, slope = slope, float(gradient @ step)
        direction *= slope / previous
        direction += step
        if iteration % GRADIENT_PATIENCE == 0:
            size = float(np.linalg.norm(equations.error))
            if size > GRADIENT_PROGRESS * last and not (goal and _is_in_sight(equations.missed(), goal)):
                break
            last = size
    return equations.direction(solution)
