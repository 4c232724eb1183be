"""Overdetermined linear systems in floats or balls: the floats choose the equations, the balls solve them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb

from attngeom.errors import SingularError
from attngeom.exact.domains import Array, Domain
from attngeom.exact.lapack import lstsq, pivoted_qr, svd


def midpoints(array: Array) -> Array:
    """Balls without their radii; floats as they are."""
    return array if array.dtype != object else np.frompyfunc(lambda x: x.mid(), 1, 1)(array)


def to_float(array: Array) -> Array:
    """Balls, rationals or floats as float64."""
    if array.dtype != object:
        return array
    flat = [float(x.mid()) if isinstance(x, arb) else float(x) for x in array.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def dyadic(array: Array) -> Array:
    """The midpoints of balls as exact rational numbers."""
    exact: Array = np.frompyfunc(lambda x: x.mid().fmpq(), 1, 1)(array)
    return exact


@dataclass(frozen=True, eq=False)
class NullVector:
    """The solution of a homogeneous system up to scale, its largest entry 1.

    ``separation`` is σ_{n-1}/σ_1 of the equations at unit length: near 0 the solution is not unique.
    """

    vector: Array
    separation: float


def unit_rows(rows: Array) -> Array:
    """Nonzero rows as floats of length one, the others as they are."""
    values = to_float(rows)
    sizes = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(sizes > 0, sizes, 1.0)


def null_vector(rows: Array, domain: Domain) -> NullVector:
    """The vector v ≠ 0 with rows · v ≈ 0.

    Floats: the last right singular vector. Balls: n − 1 well conditioned equations, chosen in floats, are solved.

    >>> from attngeom.exact import RR
    >>> null_vector(np.array([[2.0, -1.0, 0.0], [0.0, 1.0, -1.0]]), RR).vector.round(9).tolist()
    [0.5, 1.0, 1.0]
    """
    scaled = unit_rows(rows)
    _, values, right = svd(scaled, full_matrices=True)
    n = rows.shape[1]
    if len(values) < n - 1 or values[0] == 0:
        return NullVector(rows[0], 0.0)
    separation = float(values[n - 2] / values[0]) if n > 1 else 1.0
    approximate = right[-1]
    lead = int(np.argmax(np.abs(approximate)))
    if domain.rounds or n == 1:
        vector = approximate / approximate[lead]
        return NullVector(vector if domain.rounds else domain.convert(vector), separation)
    others = [column for column in range(n) if column != lead]
    chosen = pivoted_qr(scaled[:, others].T)[1][: n - 1]
    system = rows[chosen]
    try:
        solution = midpoints(domain.matmul(domain.inverse(system[:, others]), -system[:, [lead]]))
    except SingularError:
        return NullVector(domain.convert(approximate / approximate[lead]), 0.0)
    vector = domain.zeros((n,))
    vector[others] = solution[:, 0]
    vector[lead] = domain.one
    return NullVector(vector, separation)


def least_squares(rows: Array, right: Array, domain: Domain) -> Array:
    """The x with rows · x ≈ right (a matrix): least squares in floats, n chosen equations in balls."""
    if domain.rounds:
        return lstsq(rows, right)
    sizes = np.linalg.norm(to_float(rows), axis=1)
    keep = sizes > 1e-6 * sizes.max()
    rows, right = rows[keep], right[keep]
    chosen = pivoted_qr(unit_rows(rows).T)[1][: rows.shape[1]]
    return midpoints(domain.matmul(domain.inverse(rows[chosen]), right[chosen]))
