"""Group elements from equations between matrices over Q."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import add

import numpy as np
from flint import fmpz, fmpz_mat

from attngeom.exact.domains import QQ, Array
from attngeom.exact.numbers import ClearedMatrix
from attngeom.limits.trials import COMPLETIONS


@lru_cache(maxsize=64)
def random_matrix(rows: int, columns: int, seed: int = 0) -> ClearedMatrix:
    """Random integers from 1 to 99."""
    rng = np.random.default_rng(seed)
    return ClearedMatrix(fmpz_mat(rows, columns, rng.integers(1, 100, size=rows * columns).tolist()), fmpz(1))


def solve_left(left: Sequence[ClearedMatrix], right: Sequence[ClearedMatrix]) -> ClearedMatrix | None:
    """The matrix X with X left_h = right_h for all h, if there is one; None if [left_1 … left_H] lacks full row rank.

    Whether X left_h = right_h holds is left to the caller. Solved is the square system X Σ left_h R_h = Σ right_h R_h
    with random R_h, or, should it be singular, the one of a basis of columns, which FLINT cannot select.

    >>> solve_left([QQ.clear(QQ.convert([[0, 1, 1]]))], [QQ.clear(QQ.convert([[0, 3, 3]]))]).to_array().tolist()
    [[3]]
    """
    rows = left[0].matrix.nrows()
    is_square = len(left) == 1 and left[0].matrix.ncols() == rows
    S, T = (left[0], right[0]) if is_square else (_mix(left, rows), _mix(right, rows))
    solved = S.solve_left(T)
    if solved is not None or is_square:
        return solved
    columns, images = (np.concatenate([x.to_array() for x in side], axis=1) for side in (left, right))
    pivots = list(QQ.rref(columns).pivots)
    return QQ.clear(columns[:, pivots]).solve_left(QQ.clear(images[:, pivots])) if len(pivots) == rows else None


def _mix(matrices: Sequence[ClearedMatrix], columns: int) -> ClearedMatrix:
    """Σ M_h R_h, with so many columns."""
    parts = (M * random_matrix(M.matrix.ncols(), columns, seed) for seed, M in enumerate(matrices))
    return reduce(add, parts).reduced()


def solve_gauge(
    P: ClearedMatrix, P_moved: ClearedMatrix, R: ClearedMatrix, R_moved: ClearedMatrix
) -> ClearedMatrix | None:
    """An invertible B with B P = P_moved and R_moved B = R, or None if none was found.

    P is b×n and R is m×b. B is unique if P has full row rank or R_moved full column rank; otherwise it is completed by
    small random matrices. The result satisfies both equations.

    >>> P, R = QQ.convert([[1], [0]]), QQ.convert([[1, 0]])
    >>> solve_gauge(*map(QQ.clear, (P, P * 2, R * 2, R))).to_array()[0, 0]
    2
    """
    B = solve_left([P], [P_moved])
    if B is None and (transposed := solve_left([R_moved.transpose()], [R.transpose()])) is not None:
        B = transposed.transpose()
    elif B is None:
        B = _complete(P.to_array(), P_moved.to_array(), R.to_array(), R_moved.to_array())
    is_solution = B is not None and (B * P).equals(P_moved) and (R_moved * B).equals(R) and B.is_invertible()
    return B if is_solution else None


def _complete(P: Array, P_moved: Array, R: Array, R_moved: Array) -> ClearedMatrix | None:
    """B on the column space of P as given, on a complement so that R_moved B = R, random in what is left."""
    size = P.shape[0]
    span = list(QQ.rref(P).pivots)
    basis = np.concatenate([P[:, span], QQ.eye(size)], axis=1)
    basis = basis[:, list(QQ.rref(basis).pivots)]
    complement = basis[:, len(span) :]
    images = QQ.solve(R_moved, QQ.matmul(R, complement))
    if images is None:
        return None
    kernel = QQ.nullspace(R_moved).T
    rng = np.random.default_rng(0)
    for _ in range(COMPLETIONS):
        shift = QQ.matmul(kernel, QQ.convert(rng.integers(-1, 2, size=(kernel.shape[1], complement.shape[1]))))
        moved = np.concatenate([P_moved[:, span], images + shift], axis=1)
        if QQ.rank(moved) == size:
            return QQ.clear(QQ.matmul(moved, QQ.inverse(basis)))
    return None
