"""Joint refinement of a float symmetry: Gauss–Newton steps on all its factors, for all relations of all layers at once.

At g · W the derivative of the action along (c, s, b, e), s = 0 for softmax, is

    δK = c K − K e_{i-1},  δQ = (s − cᵀ) Q − Q e_{i-1},  δV = e_i V − s V − V e_{i-1}          (one matrix), or
                                                       δV = b V − s V − V e_{i-1},  δO = e_i O − O b   (factored).

The least squares problem is solved by conjugate gradients; each factor alone gives a Sylvester equation, the
preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact.domains import RR, Array
from attngeom.network import Symmetry, Weights
from attngeom.network.symmetries import HeadSymmetry

MAX_STEPS = 10
MAX_ITERATIONS = 300
PATIENCE = 20
WORTHWHILE = 0.95
ROUNDING = 1e-15
"""Conjugate gradients stop when so many iterations do not lower the misfit by this factor, or at rounding errors."""

Tangent = list[Array]
"""For every layer and head c, s (1×1) and, if factored, b; then e_1 … e_{l-1}."""


def refine(symmetry: Symmetry, first: Weights, second: Weights) -> Symmetry:
    """A group element near the given one at which g · first misses second least, tensors relative to their size.

    >>> from attngeom.network import Architecture, random_symmetry, random_weights
    >>> w = random_weights(Architecture((2, 2, 2), 2), RR, seed=0)
    >>> g = random_symmetry(w.architecture, RR, seed=1)
    >>> near = Symmetry(g.architecture, RR, g.heads, tuple(D * 1.01 for D in g.between), g.permutations)
    >>> bool(np.allclose(refine(near, w, w.act(g)).between[0], g.between[0]))
    True
    """
    scales = [np.sqrt(b.size) / (float(np.linalg.norm(b)) or 1.0) for _, b in second.tensors()]
    target = [b * scale for scale, (_, b) in zip(scales, second.tensors())]
    moved, error = _misfit(symmetry, first, target, scales)
    for _ in range(MAX_STEPS):
        if moved is None:
            break
        size = _norm(error)
        tangent = _solve(_Action(moved, scales), error)
        rate = 1.0
        while rate > 0.05:
            trial = _exponential(tangent, rate, symmetry).compose(symmetry)
            trial_moved, trial_error = _misfit(trial, first, target, scales)
            if trial_moved is not None and _norm(trial_error) < size:
                break
            rate /= 2
        else:
            break
        symmetry, moved, error = trial, trial_moved, trial_error
        if rate == 1.0 and _norm(error) > 0.8 * size:
            break
    return symmetry


def _misfit(
    g: Symmetry, first: Weights, target: list[Array], scales: list[float]
) -> tuple[Weights | None, list[Array]]:
    """g · first, or None if it is not finite, and what it lacks to the target."""
    try:
        moved = g.apply(first)
    except SingularError:
        return None, []
    error = [b - a * scale for b, scale, (_, a) in zip(target, scales, moved.tensors())]
    return (moved if np.isfinite(_norm(error)) else None), error


def _norm(arrays: list[Array]) -> float:
    return float(np.sqrt(_inner(arrays, arrays)))


def _inner(first: list[Array], second: list[Array]) -> float:
    return float(sum(np.vdot(a, b) for a, b in zip(first, second)))


@dataclass(frozen=True)
class _Sylvester:
    """The solution of X G + H X = R for positive semidefinite G, H, where it is determined."""

    G: tuple[Array, Array]
    H: tuple[Array, Array]

    @classmethod
    def of(cls, G: Array, H: Array) -> _Sylvester:
        return cls(np.linalg.eigh(G), np.linalg.eigh(H))

    def solve(self, R: Array) -> Array:
        (g, U), (h, W) = self.G, self.H
        denominators = h[:, None] + g[None, :]
        # Directions that nothing determines are not moved.
        denominators[denominators <= 1e-13 * (h[-1] + g[-1])] = np.inf
        return np.asarray(W @ ((W.T @ R @ U) / denominators) @ U.T)


class _Action:
    """The derivative of the action at given weights, tensors multiplied by their scales; its transpose and blocks."""

    def __init__(self, weights: Weights, scales: list[float]) -> None:
        architecture = weights.architecture
        self.has_scale = architecture.kind == "lightning"
        self.widths = () if architecture.residual else architecture.widths[1:-1]
        remaining = iter(scales)
        self.layers = [
            [{name: array * next(remaining) for name, array in head.tensors.items()} for head in heads]
            for heads in weights.layers
        ]
        self.blocks = self._blocks()

    def _bases(self, tangent: Tangent, index: int) -> tuple[Array | None, Array | None]:
        """e_{i-1} and e_i around a layer, None where they are fixed."""
        between = tangent[len(tangent) - len(self.widths) :]
        before = between[index - 1] if index > 0 and between else None
        after = between[index] if index < len(between) else None
        return before, after

    def push(self, tangent: Tangent) -> list[Array]:
        """The changes of all tensors along a tangent vector."""
        changes: list[Array] = []
        remaining = iter(tangent)
        for index, heads in enumerate(self.layers):
            before, after = self._bases(tangent, index)
            for head in heads:
                c, s = next(remaining), next(remaining)
                Q, K, V = head["Q"], head["K"], head["V"]
                change = {"Q": s * Q - c.T @ Q, "K": c @ K, "V": -s * V}
                if "O" in head:
                    b = next(remaining)
                    change["V"] += b @ V
                    change["O"] = -head["O"] @ b
                if after is not None:
                    name = "O" if "O" in head else "V"
                    change[name] += after @ head[name]
                if before is not None:
                    for name in "QKV":
                        change[name] -= head[name] @ before
                changes += change.values()
        return changes

    def pull(self, changes: list[Array]) -> Tangent:
        """The transpose of :meth:`push`."""
        tangent: Tangent = []
        between = [np.zeros((width, width)) for width in self.widths]
        remaining = iter(changes)
        for index, heads in enumerate(self.layers):
            for head in heads:
                change = {name: next(remaining) for name in head}
                Q, K, V = head["Q"], head["K"], head["V"]
                scale = np.vdot(Q, change["Q"]) - np.vdot(V, change["V"]) if self.has_scale else 0.0
                tangent += [change["K"] @ K.T - Q @ change["Q"].T, np.array([[scale]])]
                name = "O" if "O" in head else "V"
                if "O" in head:
                    tangent.append(change["V"] @ V.T - head["O"].T @ change["O"])
                if index < len(between):
                    between[index] += change[name] @ head[name].T
                if index > 0 and between:
                    between[index - 1] -= sum(head[x].T @ change[x] for x in "QKV")
        return tangent + between

    def _blocks(self) -> list[_Sylvester | float]:
        blocks: list[_Sylvester | float] = []
        for heads in self.layers:
            for head in heads:
                Q, K, V = head["Q"], head["K"], head["V"]
                blocks += [_Sylvester.of(K @ K.T, Q @ Q.T), float(np.sum(Q**2) + np.sum(V**2)) or 1.0]
                if "O" in head:
                    blocks.append(_Sylvester.of(V @ V.T, head["O"].T @ head["O"]))
        for index in range(len(self.widths)):
            outputs = sum(x @ x.T for x in (head.get("O", head["V"]) for head in self.layers[index]))
            inputs = sum(head[name].T @ head[name] for head in self.layers[index + 1] for name in "QKV")
            blocks.append(_Sylvester.of(np.asarray(outputs), np.asarray(inputs)))
        return blocks

    def precondition(self, tangent: Tangent) -> Tangent:
        """Every block of the normal equations solved alone."""
        return [x / block if isinstance(block, float) else block.solve(x) for x, block in zip(tangent, self.blocks)]


def _solve(action: _Action, error: list[Array]) -> Tangent:
    """The tangent vector whose push is closest to the error, by preconditioned conjugate gradients."""
    gradient = action.pull(error)
    direction = action.precondition(gradient)
    solution = [np.zeros_like(x) for x in gradient]
    slope = _inner(gradient, direction)
    start = last = _norm(error)
    for iteration in range(1, MAX_ITERATIONS + 1):
        if not slope > (ROUNDING * start) ** 2:
            break
        image = action.push(direction)
        rate = slope / _inner(image, image)
        solution = [x + rate * y for x, y in zip(solution, direction)]
        error = [x - rate * y for x, y in zip(error, image)]
        gradient = action.pull(error)
        step = action.precondition(gradient)
        previous, slope = slope, _inner(gradient, step)
        direction = [x + slope / previous * y for x, y in zip(step, direction)]
        if iteration % PATIENCE == 0:
            if _norm(error) > WORTHWHILE * last:
                break
            last = _norm(error)
    return solution


def _exponential(tangent: Tangent, rate: float, symmetry: Symmetry) -> Symmetry:
    """The group element 1 + rate · tangent, heads at the places to which the symmetry moves them."""
    remaining = iter(tangent)
    layers = []
    for heads in symmetry.heads:
        elements = []
        for head in heads:
            C, scale = next(remaining), next(remaining)
            B = None if head.B is None else np.eye(len(head.B)) + rate * next(remaining)
            elements.append(HeadSymmetry(np.eye(len(C)) + rate * C, 1 + rate * scale, B))
        layers.append(tuple(elements))
    between = tuple(np.eye(len(e)) + rate * e for e in remaining)
    identity = tuple(tuple(range(len(heads))) for heads in layers)
    return Symmetry(symmetry.architecture, RR, tuple(layers), between, identity)
