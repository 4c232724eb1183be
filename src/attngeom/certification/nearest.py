"""Float coefficients: the nearest attention layer, a lower bound on its distance, and a verdict if they are clear."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, lsmr

from attngeom.certification.results import Certification, LayerVerdict, Point
from attngeom.exact.domains import RR, Array
from attngeom.exact.multisets import pair_index, pair_orbits, splits
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.distance_bounds import conjugate_pair_distance, lower_bound

STARTS = 12
ITERATIONS = 60
ALTERNATIONS = 50
MAX_DENSE = 2 * 10**6


@lru_cache(maxsize=16)
def _symmetrization(d: int) -> csr_array:
    """The matrix that sends c(S, m) to c(R) = Σ c(S, m), from the right."""
    rows, parts, ends = splits(d)
    return csr_array((np.ones(len(rows)), (parts * d + ends, rows)), shape=(d * d * (d + 1) // 2, rows.max() + 1))


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
        t = coefficients.t
        single = coefficients.single.mean(axis=1)
        cross = np.zeros((coefficients.d_out, *coefficients.cross.shape[3:]))
        spread = float(np.sum((coefficients.single - single[:, None]) ** 2))
        if t > 1:
            cross = coefficients.cross.mean(axis=(1, 2))
            spread += float(np.sum((coefficients.cross - cross[:, None, None]) ** 2))
        spread += sum(float(term.value) ** 2 for term in coefficients.outside)
        return cls(coefficients.d, single, cross, float(t), float(t * (t - 1)), float(np.sqrt(spread)))

    def bilinear(self, A: Array, V: Array) -> Array:
        """The weighted coefficients of (A, V) as one vector, over broadcast leading axes."""
        k, l = np.triu_indices(self.d)
        swapped = V[..., :, l, None] * A[..., None, k, :] * (k != l)[:, None]
        cross = V[..., :, k, None] * A[..., None, l, :] + swapped
        flat = cross.reshape(*cross.shape[:-2], -1)
        single = (flat.reshape(-1, flat.shape[-1]) @ _symmetrization(self.d)).reshape(*flat.shape[:-1], -1)
        batch = cross.shape[:-3]
        parts = [np.sqrt(self.single_weight) * single.reshape(*batch, -1)]
        if self.cross_weight:
            parts.append(np.sqrt(self.cross_weight) * flat.reshape(*batch, -1))
        return np.concatenate(parts, axis=-1)

    def residuals(self, A: Array, V: Array) -> Array:
        """The weighted differences as one vector, without the constant rest."""
        data = [np.sqrt(self.single_weight) * self.single.ravel()]
        if self.cross_weight:
            data.append(np.sqrt(self.cross_weight) * self.cross.ravel())
        return np.asarray(self.bilinear(A, V) - np.concatenate(data))

    def distance(self, A: Array, V: Array) -> float:
        return float(np.hypot(np.linalg.norm(self.residuals(A, V)), self.rest))

    def gradient_tensor(self, r: Array) -> Array:
        """The tensor G with ⟨r, residuals(A, V)'s bilinear part⟩ = Σ G_{nklm} V_nk A_lm."""
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
        left, values, right = np.linalg.svd(tensor.reshape(d_out * d, d * d), full_matrices=False)
        if number < len(values):
            return right[number].reshape(d, d) * values[number], left[:, number].reshape(d_out, d)
    return rng.standard_normal((d, d)), rng.standard_normal((d_out, d))


def _alternate(problem: Problem, A: Array, V: Array) -> tuple[Array, Array]:
    """Alternating least squares on the cross-column coefficients, in closed form.

    For fixed V the squared length of the quadrics of column a is aᵀ(tr(S) I + S − diag S)a with S = VᵀV, and the same
    holds with the roles exchanged: one d×d system for all columns, or all rows, at once.
    """
    G = problem.cross[:, pair_index(problem.d), :]

    def normal(S: Array) -> Array:
        return np.trace(S) * np.eye(len(S)) + S - np.diag(np.diag(S))

    for _ in range(ALTERNATIONS):
        A = np.linalg.lstsq(normal(V.T @ V), np.tensordot(V, G, axes=((0, 1), (0, 1))), rcond=None)[0]
        V = np.linalg.lstsq(normal(A @ A.T), np.tensordot(G, A, axes=((2, 3), (0, 1))).T, rcond=None)[0].T
        scale = np.sqrt(max(float(np.linalg.norm(A)), 1e-150) / max(float(np.linalg.norm(V)), 1e-150))
        A, V = A / scale, V * scale
    return A, V


def _truncate(A: Array, attention: int) -> tuple[Array, Array]:
    """K, Q with Kᵀ Q the nearest matrix of rank ≤ attention."""
    left, values, right = np.linalg.svd(A)
    root = np.sqrt(values[:attention])
    return (left[:, :attention] * root).T, root[:, None] * right[:attention]


@dataclass(frozen=True, eq=False)
class Factors:
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

    def move(self, step: Array) -> Factors:
        dK, dQ, dV = self.split(step[None])
        return Factors(self.problem, self.K + dK[0], self.Q + dQ[0], self.V + dV[0])

    def residuals(self) -> Array:
        return self.problem.residuals(self.A, self.V)

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

    def step(self, r: Array, damping: float) -> Array:
        """The damped least squares step: dense if the matrix is small, else with the operators only."""
        if self.size * len(r) <= MAX_DENSE:
            padded = np.concatenate([self.derivative(np.eye(self.size)).T, damping * np.eye(self.size)])
            return np.asarray(np.linalg.lstsq(padded, np.concatenate([-r, np.zeros(self.size)]), rcond=None)[0])
        operator = LinearOperator(
            (len(r), self.size),
            matvec=lambda x: self.derivative(x.reshape(1, -1))[0],
            rmatvec=self.adjoint,
            dtype=np.float64,
        )
        return np.asarray(lsmr(operator, -r, damp=damping, atol=1e-6, btol=1e-6, maxiter=100)[0])


def _refine(problem: Problem, A: Array, V: Array, attention: int) -> tuple[Array, Array]:
    """Levenberg-Marquardt in (K, Q, V)."""
    here = Factors(problem, *_truncate(A, attention), V)
    r = here.residuals()
    size = float(np.linalg.norm(problem.residuals(np.zeros_like(A), V)))
    damping = 1e-3
    # Steps with operators only are expensive; after the alternation few are needed.
    rounds = ITERATIONS if here.size * len(r) <= MAX_DENSE else ITERATIONS // 6
    for _ in range(rounds):
        scale = max(float(np.linalg.norm(x)) for x in (here.K, here.Q, here.V))
        there = here.move(here.step(r, damping * max(scale, 1e-150)))
        new = there.residuals()
        before, after = float(np.linalg.norm(r)), float(np.linalg.norm(new))
        if after < before:
            here, r = there, new
            damping = max(damping / 10, 1e-15)
            if after <= 1e-15 * size or after > (1 - 1e-9) * before:
                break
        else:
            damping *= 10
            if damping > 1e3:
                break
    return here.A, here.V


@dataclass(frozen=True, eq=False)
class Nearest:
    """A layer near given coefficients; ``distance`` is an upper bound on the distance to the nearest one."""

    A: Array
    V: Array
    distance: float


def nearest_layer(
    coefficients: Coefficients, attention: int | None = None, seed: int = 0, goal: float = 0.0, starts: int = STARTS
) -> Nearest:
    """The best layer found by bilinear least squares from singular and random starts; stops at distance ≤ ``goal``."""
    problem = Problem.of(coefficients)
    rng = np.random.default_rng(seed)
    width = problem.d if attention is None else min(attention, problem.d)
    scale = float(max(np.abs(problem.single).max(initial=0.0), np.abs(problem.cross).max(initial=0.0)))
    if scale == 0.0:
        zero = np.zeros((problem.d, problem.d)), np.zeros((len(problem.single), problem.d))
        return Nearest(*zero, problem.distance(*zero))
    # A balanced problem of size one, so that huge and tiny coefficients behave alike.
    unit = Problem(
        problem.d, problem.single / scale, problem.cross / scale, problem.single_weight, problem.cross_weight, 0.0
    )
    best: Nearest | None = None
    for number in range(starts):
        A, V = _start(unit, rng, number)
        if unit.cross_weight:
            A, V = _alternate(unit, A, V)
        A, V = _refine(unit, A, V, width)
        found = Nearest(
            A * np.sqrt(scale), V * np.sqrt(scale), problem.distance(A * np.sqrt(scale), V * np.sqrt(scale))
        )
        if best is None or found.distance < best.distance:
            best = found
        if best.distance <= goal:
            break
    assert best is not None
    return best


def certify_float(coefficients: Coefficients, attention: int | None, seed: int, tolerance: float) -> Certification:
    """The verdict for float coefficients: distances relative to their norm, compared with ``tolerance``.

    "realizable" if a layer lies within the tolerance; "not_realizable" (or "closure_only", if complex weights lie
    within it) if a lower bound on the distance to every layer exceeds it; else "undecided" with both numbers.
    """
    outside = sum(float(term.value) ** 2 for term in coefficients.outside)
    norm = float(np.sqrt(np.sum(coefficients.single**2) + np.sum(coefficients.cross**2) + outside))
    if norm == 0.0:
        zero = Point(np.zeros((coefficients.d,) * 2), np.zeros((coefficients.d_out, coefficients.d)), RR)
        reason = "the zero function, which A = 0 computes"
        return _result("realizable", reason, coefficients, attention, seed, 0, zero, 0.0, tolerance)
    bound = lower_bound(coefficients, attention) / norm
    # With a bound above the tolerance more starts cannot change the verdict.
    starts = 3 if bound > 2 * tolerance else STARTS
    nearest = nearest_layer(coefficients, attention, seed, tolerance * norm / 2, starts)
    distance = nearest.distance / norm
    values = np.linalg.svd(nearest.A, compute_uv=False)
    size = int(np.sum(values > max(tolerance, 1e-12) * values[0])) if values[0] > 0 else 0
    if distance <= tolerance:
        point = Point(nearest.A, nearest.V, RR)
        reason = f"a layer lies at relative distance {distance:.2e}, within the tolerance"
        return _result("realizable", reason, coefficients, attention, seed, size, point, distance, tolerance)
    if bound > 2 * tolerance:
        if coefficients.t > 1 and conjugate_pair_distance(coefficients) <= tolerance * norm:
            reason = f"conjugate linear factors within the tolerance; every real layer is at distance ≥ {bound:.2e}"
            return _result("closure_only", reason, coefficients, attention, seed, 1, None, distance, tolerance)
        reason = f"every layer is at relative distance ≥ {bound:.2e}; the nearest found is at {distance:.2e}"
        return _result("not_realizable", reason, coefficients, attention, seed, None, None, distance, tolerance)
    reason = f"the nearest layer found is at relative distance {distance:.2e}, every layer at ≥ {bound:.2e}"
    return _result("undecided", reason, coefficients, attention, seed, None, None, distance, tolerance)


def _result(
    verdict: LayerVerdict,
    reason: str,
    coefficients: Coefficients,
    attention: int | None,
    seed: int,
    rank: int | None,
    point: Point | None,
    distance: float,
    tolerance: float,
) -> Certification:
    points = () if point is None else (point,)
    return Certification(
        verdict, reason, coefficients, attention, seed, rank, points, residual=distance, tolerance=tolerance
    )
