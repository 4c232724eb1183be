"""Linear algebra that says how sure it is: ranks with gaps, systems in floats or balls, certified invertibility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat

from attngeom.errors import DomainError, SingularError
from attngeom.exact.arrays import Array, check_matrix, check_square
from attngeom.exact.domains import Balls, Domain
from attngeom.exact.lapack import inv, lstsq, pivoted_qr, svd, svdvals
from attngeom.exact.modular import Pivots
from attngeom.limits.rounding import CLEAR_GAP

EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Rank:
    """A rank: exact, or numerical with singular values and the gap σ_r / σ_{r+1} behind it.

    ``is_clear`` is False when the singular values do not show a gap of 1000 at the cut: ``value`` is then a guess.
    """

    value: int
    is_exact: bool
    singular_values: tuple[float, ...] = ()
    gap: float | None = None

    @property
    def is_clear(self) -> bool:
        return self.is_exact or self.gap is None or self.gap >= CLEAR_GAP

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"value": self.value, "exact": self.is_exact}
        if not self.is_exact:
            record |= {"singular_values": list(self.singular_values), "gap": self.gap, "clear": self.is_clear}
        return record


def measured_rank(a: Array, domain: Domain, noise: float = 0.0) -> Rank:
    """The rank of a matrix; over floats the singular values above max(size·ε, noise)·σ_1 are counted.

    ``noise`` is the relative error of the entries. The gap tells how well the cut is determined; it is None when
    nothing lies below the cut.

    >>> from attngeom.exact import RR
    >>> measured_rank(np.array([[1.0, 2.0], [2.0, 4.0]]), RR).value
    1
    """
    if domain.is_exact:
        return Rank(domain.rank(a), True)
    if not domain.rounds:
        raise DomainError(f"rank over {domain.name} was asked for; exact or float weights are required")
    values = svdvals(a)
    if values.size == 0 or values[0] == 0:
        return Rank(0, False, tuple(values.tolist()), None)
    return count_above(values, max(a.shape) * max(8 * EPSILON, noise), values[0])


def count_above(values: Array, share: float, size: float) -> Rank:
    """The number of singular values above share · size, with the gap there.

    Rounding resolves nothing below ε times the size of what they were computed from: a smaller tail must not
    exaggerate the gap.
    """
    rank = int(np.sum(values > share * size))
    gap = None
    if rank < len(values):
        gap = float((values[rank - 1] if rank else size) / max(values[rank], EPSILON * size))
    return Rank(rank, False, tuple(values.tolist()), gap)


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


def certify_invertible(a: Array, precision: int = 64) -> bool:
    """Whether every real matrix in a (floats or balls) is invertible: True is a proof, False is not one.

    Floats are taken as exact numbers: to speak of a matrix that was rounded, give balls that enclose it. With a
    float approximation R of the inverse, ‖I − R a‖ < 1 in the row sum norm, enclosed by balls, proves it; what is
    too ill-conditioned for a float inverse is eliminated in ball arithmetic of ``precision`` bits.

    >>> certify_invertible(np.array([[1.0, 2.0], [3.0, 4.0]])), certify_invertible(np.ones((2, 2)))
    (True, False)
    """
    check_square(a)
    middle = to_float(a)
    if not np.all(np.isfinite(middle)):
        return False
    with Balls(precision).working():
        balls = arb_mat(a.shape[0], a.shape[1], a.ravel().tolist())
        if _is_near_identity(middle, balls):
            return True
        try:
            balls.inv()
        except ZeroDivisionError:
            return False
        return True


def _is_near_identity(middle: Array, balls: arb_mat) -> bool:
    """Whether ‖I − R a‖ < 1 is certain for the float inverse R of the midpoints."""
    n = len(middle)
    try:
        inverse = inv(middle)
    except SingularError:
        return False
    if not np.all(np.isfinite(inverse)):
        return False
    rest = arb_mat(n, n, np.eye(n).ravel().tolist()) - arb_mat(n, n, inverse.ravel().tolist()) * balls
    return all(sum((abs(x) for x in row), arb(0)) < 1 for row in rest.table())


def certify_rank(a: Array, precision: int = 64) -> Pivots:
    """A part that is invertible for every real matrix in a (floats or balls): its rank bounds theirs from below.

    Rows and columns come from pivoted QR factorizations; the largest leading part that can be certified is kept.

    >>> certify_rank(np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 1.0]])).rank
    2
    """
    check_matrix(a)
    middle = to_float(a)
    if 0 in a.shape or not np.all(np.isfinite(middle)):
        return Pivots((), ())
    triangle, order = pivoted_qr(middle)
    diagonal = np.abs(np.diagonal(triangle))
    candidate = int(np.sum(diagonal > max(a.shape) * np.finfo(float).eps * diagonal[0]))
    while candidate > 0:
        columns = np.sort(order[:candidate])
        chosen = pivoted_qr(middle[:, columns].T)[1]
        rows = np.sort(chosen[:candidate])
        if certify_invertible(a[np.ix_(rows, columns)], precision):
            return Pivots(tuple(rows.tolist()), tuple(columns.tolist()))
        candidate -= max(1, candidate // 16)
    return Pivots((), ())
