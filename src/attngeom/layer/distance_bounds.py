"""Lower bounds on the distance from float coefficients to every real attention layer.

The cross-column table y_{n,(k,l),m} = sym(ν_n ⊗ α_m) is a tensor whose Frobenius norm is at most that of the ordinary
coefficients, and contracting it with unit vectors does not increase norms. So a contraction of a layer has small rank
or signature, and the distance of the given contraction from those matrices bounds the distance of the tensors.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import swap
from attngeom.exact.domains import RR, Array
from attngeom.exact.multisets import pair_index, pair_orbits, triples
from attngeom.layer.coefficients import Coefficients, symmetrize
from attngeom.layer.float_splitting import conjugate_pair
from attngeom.limits.trials import NORM_SAMPLES


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
