"""The attention layer nearest to float coefficients: bilinear least squares in (K, Q, V), A = Kᵀ Q of bounded rank.

Lower bounds on the distance from float coefficients to every real attention layer:
The cross-column table y_{n,(k,l),m} = sym(ν_n ⊗ α_m) is a tensor whose Frobenius norm is at most that of the ordinary
coefficients, and contracting it with unit vectors does not increase norms. So a contraction of a layer has small rank
or signature, and the distance of the given contraction from those matrices bounds the distance of the tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array
from attngeom.exact.fitting import fit
from attngeom.exact.multisets import pair_index, pair_orbits, splits, triples
from attngeom.layer.coefficients import Coefficients, quadric_table, symmetrize
from attngeom.layer.float_splitting import alternate, conjugate_pair
from attngeom.layer.splitting import LayerMatrices
from attngeom.limits.memory import NEAREST_JACOBIAN
from attngeom.limits.rounding import UNIT_ROUNDOFF
from attngeom.limits.trials import NEAREST_ALTERNATIONS, NEAREST_STARTS, NEAREST_STEPS, NORM_SAMPLES

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


def lower_bound(coefficients: Coefficients, attention: int | None = None) -> float:
    """A number that no layer of this attention width comes nearer than, rounding errors included.

    The largest coefficient should be of size one. Copies that differ, terms outside the support and the symmetrization
    relations are a distance from a linear space;
    for t ≥ 2 the bounds for the mean cross-column table come on top. For t = 1 only terms outside the support count.
    """
    t = coefficients.t
    single, cross = coefficients.means()
    spread = coefficients.distance(single, cross)
    if t == 1:
        return spread * (1 - 1e-12)
    tensor = (cross / pair_orbits(coefficients.d)[:, None])[:, pair_index(coefficients.d), :]
    table = max(
        _signature_bound(tensor),
        _rank_one_bound(tensor),
        _resultant_bound(tensor),
        _attention_bound(cross, coefficients.d, attention),
    )
    most = max(t * (t - 1) * table**2, _symmetrization_distance(single, cross, coefficients.d, t))
    bound = np.sqrt(spread**2 + most) - _rounding(coefficients.d, coefficients.d_out, t) * coefficients.norm
    return max(float(bound), 0.0)


def _rounding(d: int, d_out: int, t: int) -> float:
    """What rounding can add to a bound, relative to the norm of the coefficients; generous in every constant.

    Means of t² copies, contractions over d² entries, and singular or eigenvalues, whose backward error is a small
    multiple of the size of the matrix in units of the last place.
    """
    return 2.0**-53 * 8 * (4 * d * d + 4 * t * t + 40 * max(d, d_out) + 100)


def _symmetrization_distance(single: Array, cross: Array, d: int, t: int) -> float:
    """The squared distance of the means from s = symmetrize(c), weighted as in the full array: t for s, t(t−1) for c.

    Each relation s_R = Σ c_{S,m} has its own coordinates, so the distances add: δ² / (1/t + number/(t(t−1))).
    """
    difference = single - symmetrize(cross, d, RR)
    numbers = np.array([len(set(R)) for R in triples(d)])
    return float(np.sum(difference**2 / (1 / t + numbers / (t * (t - 1)))))


def _directions(size: int) -> Array:
    """Unit vectors: the basis, then fixed pseudo-random ones."""
    rng = np.random.default_rng(20240817)
    random = rng.standard_normal((NORM_SAMPLES, size))
    return np.concatenate([np.eye(size), random / np.linalg.norm(random, axis=1, keepdims=True)])


def _signature_bound(tensor: Array) -> float:
    """ν_n·sym(α_m) contracted over n or m with unit vectors: at most one positive and one negative eigenvalue.

    By Weyl's inequality (in Mirsky's form) the further ones bound the distance.
    """
    return max(_excess(np.einsum("cm,klm->ckl", _directions(y.shape[-1]), y)) for y in _slices(tensor))


def _slices(tensor: Array) -> list[Array]:
    """y_{k,l,·} for each output over targets, then for each target over outputs."""
    return [*tensor, *np.moveaxis(tensor, 3, 0).transpose(0, 2, 3, 1)]


def _excess(matrices: Array) -> float:
    values = lapack.eigvalsh(matrices)
    above, below = np.sort(np.maximum(values, 0), axis=1)[:, :-1], np.sort(np.maximum(-values, 0), axis=1)[:, :-1]
    return float(np.sqrt((above**2).sum(axis=1) + (below**2).sum(axis=1)).max(initial=0.0))


def _rank_one_bound(tensor: Array) -> float:
    """For a unit vector z the matrix α_m(z) ν_n(z) has rank one: the further singular values bound the distance."""
    z = _directions(tensor.shape[1])
    matrices = np.einsum("cl,cnlm->cnm", z, np.tensordot(z, tensor, (1, 1)))
    values = lapack.svdvals(matrices)
    return float(np.sqrt((values[:, 1:] ** 2).sum(axis=1)).max(initial=0.0))


def _resultant_bound(tensor: Array) -> float:
    """Resultants of two unit combinations on a plane with orthonormal basis: |Res| ≤ 5 ‖T‖³ distance.

    Res = [PR]² − 4[PB][BR] is a quartic form f with |f| ≤ 5/4 on unit pairs of symmetric 2×2 matrices, so its polar
    form has the same bound (Banach) and |f(x) − f(y)| ≤ 4·(5/4)·max(‖x‖, ‖y‖)³ ‖x − y‖. The nearest layer is not longer
    than T because layers form a cone.
    """
    size = float(np.linalg.norm(tensor))
    if size == 0.0:
        return 0.0
    rng = np.random.default_rng(20240818)
    best = 0.0
    for y in _slices(tensor):
        d, number = y.shape[1:]
        if number < 2 or d < 2:
            continue
        frames = lapack.qr(rng.standard_normal((NORM_SAMPLES, d, 2)))[0]
        mixes = lapack.qr(rng.standard_normal((NORM_SAMPLES, number, 2)))[0]
        mixed = np.tensordot(mixes, y, (1, 2))
        b = np.swapaxes(frames, 1, 2)[:, None] @ mixed @ frames[:, None]
        p, q, r = b[:, :, 0, 0], b[:, :, 0, 1], b[:, :, 1, 1]

        def minor(u: Array, w: Array) -> Array:
            area: Array = u[:, 0] * w[:, 1] - u[:, 1] * w[:, 0]
            return area

        values = np.abs(minor(p, r) ** 2 - 4 * minor(p, q) * minor(q, r))
        # Arrays so small that the cube underflows give no bound here.
        if 5 * size**3 > 0:
            best = max(best, float(values.max()) / (5 * size**3))
    return best


def _attention_bound(cross: Array, d: int, attention: int | None) -> float:
    """The flattening of all rows has rank ≤ a: its further singular values bound the distance (Eckart-Young)."""
    if attention is None or attention >= d:
        return 0.0
    values = lapack.svdvals(cross.reshape(-1, d))
    return float(np.sqrt(np.sum(values[attention:] ** 2)))


def conjugate_pair_distance(coefficients: Coefficients) -> float:
    """A distance to h ⊗ q ⊗ B, B definite of rank 2: the maps with conjugate factors; inf if B is not definite."""
    pair = conjugate_pair(swap(coefficients.means()[1]))
    if pair is None:
        return float("inf")
    near, d = swap(pair), coefficients.d
    distance = coefficients.distance(symmetrize(near, d, RR), near)
    return distance + _rounding(d, coefficients.d_out, coefficients.t) * float(np.linalg.norm(coefficients.cross))
