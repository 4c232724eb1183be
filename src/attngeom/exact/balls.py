"""Certified statements about real matrices by ball arithmetic: invertibility and lower bounds for the rank."""

from __future__ import annotations

import numpy as np
from flint import arb, arb_mat

from attngeom.errors import SingularError
from attngeom.exact.arrays import Array, check_matrix, check_square
from attngeom.exact.domains import Balls
from attngeom.exact.lapack import inv, pivoted_qr
from attngeom.exact.modular import Pivots
from attngeom.exact.precise import to_float


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
