"""Numerical algebraic geometry with the generators: membership, local codimension, Euclidean distance degree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import nmod_poly

from attngeom.equations.ideal.export import module_spaces
from attngeom.equations.ideal.generators import HighestWeightVector
from attngeom.equations.ideal.models import Model
from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.partitions import Weight
from attngeom.exact.primes import WORD_PRIME


@dataclass(frozen=True)
class Membership:
    """Whether all generators vanish at a point. ``module``, ``weight`` and ``value`` name the first that does not."""

    is_member: bool
    evaluated: int
    module: int | None = None
    weight: Weight | None = None
    value: Fraction | None = None


def check_membership(model: Model, vectors: Sequence[HighestWeightVector], point: Sequence[Any]) -> Membership:
    """Whether a rational point satisfies all equations of the modules: exact. No is a proof that it is off the variety.

    Yes says that it satisfies these equations; it lies on the variety if they generate the ideal. ``point`` is in
    the scaled coordinates of the model.

    >>> from attngeom.equations.ideal.generators import highest_weight_vectors
    >>> from attngeom.equations.ideal.models import CrossColumn
    >>> model = CrossColumn(2, 1)
    >>> vectors = highest_weight_vectors(model, 2, ((3, 1), (1, 1)), 1)
    >>> check_membership(model, vectors, [1, 0, 0, 0, 0, 1]).is_member
    False
    """
    if len(point) != len(model.coordinates):
        raise InputError(f"{len(point)} numbers given; the model has {len(model.coordinates)} coordinates")
    values = np.array([Fraction(str(x)) for x in point], dtype=object)
    evaluated = 0
    for number, space in module_spaces(model, vectors, whole=True):
        monomials = np.prod(values[space.factors], axis=1)
        results = space.coefficients.astype(object) @ monomials
        for result in results:
            evaluated += 1
            if result != 0:
                return Membership(False, evaluated, number, space.weight, Fraction(result))
    return Membership(True, evaluated)


@dataclass(frozen=True)
class LocalCodimension:
    """The rank of the Jacobian of the generators at a point, and the codimension of the variety.

    ``cuts_out_locally``: equal, so near the point the generators define the variety, as a scheme.
    """

    rank: int
    codimension: int
    prime: int

    @property
    def cuts_out_locally(self) -> bool:
        return self.rank == self.codimension


def local_codimension(
    model: Model,
    vectors: Sequence[HighestWeightVector],
    dimension: int,
    point: Array | None = None,
    prime: int = WORD_PRIME,
    seed: int = 0,
) -> LocalCodimension:
    """The Jacobian rank mod p of all generators at a point mod p (a random point of the variety by default).

    ``dimension`` is that of the affine cone. At any point of the variety the rank is at most the codimension; at a
    generic point equality says that the list of generators cuts out the variety there.

    >>> from attngeom.equations.ideal.generators import highest_weight_vectors
    >>> from attngeom.equations.ideal.models import CrossColumn
    >>> model = CrossColumn(2, 1)
    >>> local_codimension(model, highest_weight_vectors(model, 2, ((3, 1), (1, 1)), 1), dimension=4).rank
    2
    """
    size = len(model.coordinates)
    y = model.sample(1, prime, np.random.default_rng(seed))[0] if point is None else np.asarray(point) % prime
    rows = []
    for _, space in module_spaces(model, vectors, whole=True):
        gradient = np.zeros((len(space.factors), size), dtype=np.int64)
        for place in range(space.degree):
            others = np.delete(space.factors, place, axis=1)
            product = np.ones(len(others), dtype=np.int64)
            for column in others.T:
                product = product * y[column] % prime
            np.add.at(gradient, (np.arange(len(others)), space.factors[:, place]), product)
        coefficients = space.coefficients % prime
        block = np.zeros((len(coefficients), size), dtype=np.int64)
        for column in range(size):
            used = np.flatnonzero(gradient[:, column])
            block[:, column] = (coefficients[:, used] * (gradient[used, column] % prime) % prime).sum(axis=1) % prime
        rows.append(block)
    rank = rank_mod_p(np.concatenate(rows), prime) if rows else 0
    return LocalCodimension(rank, size - dimension, prime)


@dataclass(frozen=True)
class EuclideanDistanceDegree:
    """The number of complex critical points of the squared distance from a random point to the smooth part."""

    value: int
    metric: str
    method: str
    prime: int
    seed: int


def euclidean_distance_degree(
    a: int, metric: str = "scaled", prime: int = WORD_PRIME, seed: int = 0
) -> EuclideanDistanceDegree:
    """The Euclidean distance degree for d = 2 = targets, counted exactly mod p for a random point u mod p.

    ``metric`` weights the coordinates y_11, y_12, y_22 by 1, 1, 1 ("scaled") or 1, 2, 1 ("invariant").
    a = 1: the variety is all 3×2 matrices of rank ≤ 1, critical points are singular pairs of u. a ≥ 2: for fixed v
    the best A solves a linear system, which leaves a rational function of v ∈ P¹; its critical points are counted.

    >>> euclidean_distance_degree(1).value
    2
    """
    if a < 1 or metric not in ("scaled", "invariant"):
        raise InputError(f"a = {a}, metric {metric!r} given; a ≥ 1 and 'scaled' or 'invariant' are required")
    weights = [1, 1, 1] if metric == "scaled" else [1, 2, 1]
    rng = np.random.default_rng(seed)
    u = rng.integers(1, prime, (3, 2)).tolist()
    if a == 1:
        gram = [[sum(w * row[i] * row[j] for w, row in zip(weights, u)) for j in range(2)] for i in range(2)]
        determinant = gram[0][0] * gram[1][1] - gram[0][1] * gram[1][0]
        polynomial = nmod_poly([determinant, -(gram[0][0] + gram[1][1]), 1], prime)
        method = "distinct eigenvalues of uᵀ u"
    else:
        polynomial = _critical_polynomial(u, weights, rng.integers(1, prime, 4).tolist(), prime)
        method = "roots of the derivative of the projected distance along v"
    return EuclideanDistanceDegree(_count_roots(polynomial, prime), metric, method, prime, seed)


def _critical_polynomial(u: list[list[int]], weights: list[int], line: list[int], p: int) -> nmod_poly:
    """The numerator of g'(s), g(s) = Σ_k uᵀ W Φ (Φᵀ W Φ)⁻¹ Φᵀ W u along the line v(s), coprime to its denominator."""
    v1, v2 = nmod_poly(line[:2], p), nmod_poly(line[2:], p)
    zero = nmod_poly([0], p)
    # Rows of 2 Φ(v): y = Φ(v) A with y_11 = v_1 A_1, y_12 = (v_1 A_2 + v_2 A_1)/2, y_22 = v_2 A_2.
    phi = [[2 * v1, zero], [v2, v1], [zero, 2 * v2]]
    M = [[sum((w * r[i] * r[j] for w, r in zip(weights, phi)), zero) for j in range(2)] for i in range(2)]
    denominator = M[0][0] * M[1][1] - M[0][1] * M[1][0]
    numerator = zero
    for k in range(2):
        b = [sum((w * row[k] * r[i] for w, row, r in zip(weights, u, phi)), zero) for i in range(2)]
        numerator += b[0] * b[0] * M[1][1] - 2 * b[0] * b[1] * M[0][1] + b[1] * b[1] * M[0][0]
    critical = numerator.derivative() * denominator - numerator * denominator.derivative()
    while (common := critical.gcd(denominator)).degree() > 0:
        critical = critical // common
    return critical


def _count_roots(f: nmod_poly, p: int) -> int:
    """The number of distinct roots in the algebraic closure."""
    return int(f.degree() - f.gcd(f.derivative()).degree())
