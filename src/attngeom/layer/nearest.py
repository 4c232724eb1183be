"""The attention layer nearest to float coefficients: bilinear least squares in (K, Q, V), A = Kᵀ Q of bounded rank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array
from attngeom.exact.fitting import fit
from attngeom.exact.multisets import pair_index, pair_orbits, splits
from attngeom.layer.coefficients import Coefficients, quadric_table, symmetrize
from attngeom.layer.float_splitting import alternate
from attngeom.layer.splitting import LayerMatrices
from attngeom.limits.memory import NEAREST_JACOBIAN
from attngeom.limits.rounding import UNIT_ROUNDOFF
from attngeom.limits.trials import NEAREST_ALTERNATIONS, NEAREST_STARTS, NEAREST_STEPS

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


@dataclass(frozen=True, eq=False)
class Problem:
    """min over (A, V) of w_s ‖s − S(A, V)‖² + w_c ‖c − C(A, V)‖² + rest²: the copies enter through their means."""

    d: int
    single: Array
    cross: Array
    single_weight: float
    cross_weight: float
    rest: float

    @classmethod
    def of(cls, coefficients: Coefficients) -> Problem:
        t, (single, cross) = coefficients.t, coefficients.means()
        return cls(coefficients.d, single, cross, float(t), float(t * (t - 1)), coefficients.distance(single, cross))

    def flatten(self, single: Array, cross: Array) -> Array:
        """Coefficients, weighted, as one vector, over leading axes."""
        parts = [np.sqrt(self.single_weight) * single.reshape(*single.shape[:-2], -1)]
        if self.cross_weight:
            parts.append(np.sqrt(self.cross_weight) * cross.reshape(*cross.shape[:-3], -1))
        return np.concatenate(parts, axis=-1)

    def bilinear(self, A: Array, V: Array) -> Array:
        """The weighted coefficients of (A, V), over broadcast leading axes."""
        cross = swap(quadric_table(A, V, RR))
        return self.flatten(symmetrize(cross, self.d, RR), cross)

    @cached_property
    def data(self) -> Array:
        """The weighted coefficients that are given."""
        return self.flatten(self.single, self.cross)

    def differences(self, A: Array, V: Array) -> Array:
        """The weighted differences as one vector, without the constant rest."""
        return np.asarray(self.bilinear(A, V) - self.data)

    def distance(self, A: Array, V: Array) -> float:
        return float(np.hypot(np.linalg.norm(self.differences(A, V)), self.rest))

    def gradient_tensor(self, r: Array) -> Array:
        """The tensor G with ⟨r, differences(A, V)'s bilinear part⟩ = Σ G_{nklm} V_nk A_lm."""
        size = self.single.size
        single = np.sqrt(self.single_weight) * r[:size].reshape(self.single.shape)
        cross = np.zeros(self.cross.shape)
        if self.cross_weight:
            cross += np.sqrt(self.cross_weight) * r[size:].reshape(self.cross.shape)
        rows, parts, ends = splits(self.d)
        cross[:, parts, ends] += single[:, rows]
        return cross[:, pair_index(self.d), :]


def _start(problem: Problem, rng: np.random.Generator, number: int) -> tuple[Array, Array]:
    """Top singular pair number ``number`` of the matrix (n, k) × (l, m) of the symmetrized table, or random weights."""
    d, d_out = problem.d, len(problem.single)
    if problem.cross_weight and number < 3:
        tensor = (problem.cross / pair_orbits(d)[:, None])[:, pair_index(d), :]
        left, values, right = lapack.svd(tensor.reshape(d_out * d, d * d), full_matrices=False)
        if number < len(values):
            return right[number].reshape(d, d) * values[number], left[:, number].reshape(d_out, d)
    return rng.standard_normal((d, d)), rng.standard_normal((d_out, d))


def _truncate(A: Array, attention: int) -> tuple[Array, Array]:
    """K, Q with Kᵀ Q the nearest matrix of rank ≤ attention."""
    left, values, right = lapack.svd(A)
    root = np.sqrt(values[:attention])
    return (left[:, :attention] * root).T, root[:, None] * right[:attention]


@dataclass(frozen=True, eq=False)
class HeadFactors:
    """A point (K, Q, V) with A = Kᵀ Q, and the derivative of the coefficients there."""

    problem: Problem
    K: Array
    Q: Array
    V: Array

    @property
    def A(self) -> Array:
        return self.K.T @ self.Q

    @property
    def size(self) -> int:
        return self.K.size + self.Q.size + self.V.size

    def split(self, x: Array) -> tuple[Array, Array, Array]:
        """Directions (n, size) as arrays dK, dQ, dV with n in front."""
        parts = np.split(x, [self.K.size, self.K.size + self.Q.size], axis=1)
        dK, dQ, dV = (part.reshape(len(x), *array.shape) for part, array in zip(parts, (self.K, self.Q, self.V)))
        return dK, dQ, dV

    def move(self, step: Array) -> HeadFactors:
        dK, dQ, dV = self.split(step[None])
        return HeadFactors(self.problem, self.K + dK[0], self.Q + dQ[0], self.V + dV[0])

    def differences(self) -> Array:
        return self.problem.differences(self.A, self.V)

    def derivative(self, x: Array) -> Array:
        """The changes (n, …) of the coefficients along directions (n, size)."""
        dK, dQ, dV = self.split(x)
        dA = np.swapaxes(dK, 1, 2) @ self.Q + self.K.T @ dQ
        return np.asarray(self.problem.bilinear(dA, self.V) + self.problem.bilinear(self.A, dV))

    def adjoint(self, y: Array) -> Array:
        """The transpose of :meth:`derivative`, applied to one vector."""
        G = self.problem.gradient_tensor(y)
        gA, gV = np.einsum("nk,nklm->lm", self.V, G), np.einsum("lm,nklm->nk", self.A, G)
        return np.concatenate([(self.Q @ gA.T).ravel(), (self.K @ gA).ravel(), gV.ravel()])

    @property
    def matrix(self) -> Array | LinearOperator:
        """The derivative as a matrix, or as an operator if that would be large."""
        shape = self.problem.data.size, self.size
        if shape[0] * shape[1] <= NEAREST_JACOBIAN:
            return self.derivative(np.eye(self.size)).T
        from scipy.sparse.linalg import LinearOperator  # slow to load

        def along(x: Array) -> Array:
            return np.asarray(self.derivative(x.reshape(1, -1))[0])

        return LinearOperator(shape, matvec=along, rmatvec=self.adjoint, dtype=np.float64)


def _refine(problem: Problem, A: Array, V: Array, attention: int) -> tuple[Array, Array]:
    """The least squares fit in (K, Q, V) that starts at (A, V)."""
    start = HeadFactors(problem, *_truncate(A, attention), V)

    def derivative(x: Array) -> tuple[Array | LinearOperator, Array]:
        here = start.move(x)
        scale = max(1e-150, *(float(np.linalg.norm(part)) for part in (here.K, here.Q, here.V)))
        return here.matrix * (1 / scale), np.full(here.size, 1 / scale)

    # Steps with operators only are expensive; after the alternation few are needed.
    steps = NEAREST_STEPS if start.size * problem.data.size <= NEAREST_JACOBIAN else NEAREST_STEPS // 6
    rest = 1e-14 * float(np.linalg.norm(problem.data))
    moved = start.move(
        fit(np.zeros(start.size), lambda x: start.move(x).differences(), derivative, steps=steps, rest=rest)
    )
    return moved.A, moved.V


@dataclass(frozen=True, eq=False)
class Nearest:
    """A layer near given coefficients; ``distance`` is an upper bound on its distance, rounding errors included."""

    point: LayerMatrices
    distance: float


def enclose_distance(problem: Problem, A: Array, V: Array, t: int) -> float:
    """An upper bound on the distance of (A, V): what is computed, and the most that rounding can have hidden.

    Each coefficient is a sum of at most six products, so it is off by a few units in the last place of the same sum of
    absolute values; the means over copies are off by their number of units.
    """
    rounding = 16 * np.linalg.norm(problem.bilinear(np.abs(A), np.abs(V)))
    rounding += 4 * (t * t + 8) * np.hypot(np.linalg.norm(problem.data), problem.rest)
    return float(problem.distance(A, V) * (1 + 1e-12) + UNIT_ROUNDOFF * rounding)


def nearest_layer(
    coefficients: Coefficients,
    attention: int | None = None,
    seed: int = 0,
    goal: float = 0.0,
    starts: int = NEAREST_STARTS,
) -> Nearest:
    """The best layer found by bilinear least squares from singular and random starts; stops at distance ≤ ``goal``.

    The largest coefficient should be of size one, see :func:`attngeom.layer.coefficients.scale_to_one`.
    """
    problem = Problem.of(coefficients)
    rng = np.random.default_rng(seed)
    d, t = problem.d, coefficients.t
    width = d if attention is None else min(attention, d)
    zero = LayerMatrices.zero(d, len(problem.single), RR)
    best = Nearest(zero, enclose_distance(problem, zero.A, zero.V, t))
    for number in range(starts):
        if best.distance <= goal:
            break
        A, V = _start(problem, rng, number)
        if problem.cross_weight:
            A, V = alternate(swap(problem.cross), A, V, NEAREST_ALTERNATIONS, 0.0)
            scale = np.sqrt(max(1e-150, float(np.linalg.norm(A))) / max(1e-150, float(np.linalg.norm(V))))
            A, V = A / scale, V * scale
        A, V = _balance(*_refine(problem, A, V, width))
        nearest = Nearest(LayerMatrices(A, V, RR), enclose_distance(problem, A, V, t))
        if nearest.distance < best.distance:
            best = nearest
    return best


def _balance(A: Array, V: Array) -> tuple[Array, Array]:
    """(λA, V/λ) with factors of like size, λ a power of two so that nothing is rounded."""
    sizes = np.abs(A).max(initial=0.0), np.abs(V).max(initial=0.0)
    if 0.0 in sizes:
        return A, V
    shift = (np.frexp(sizes[1])[1] - np.frexp(sizes[0])[1]) // 2
    return np.ldexp(A, shift), np.ldexp(V, -shift)
