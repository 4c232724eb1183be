"""Group elements from equations between matrices over an exact field."""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact.domains import Array, Domain

COMPLETION_TRIALS = 16


def solve_left(S: Array, T: Array, domain: Domain) -> Array | None:
    """The matrix X with X S = T, from a basis of columns of S; None if S lacks full row rank.

    Whether X S = T holds on the other columns is left to the caller.

    >>> from attngeom.exact import QQ
    >>> solve_left(QQ.convert([[0, 1, 1]]), QQ.convert([[0, 3, 3]]), QQ).tolist()
    [[3]]
    """
    pivots = domain.rref(S).pivots
    if len(pivots) < S.shape[0]:
        return None
    columns = list(pivots)
    return domain.matmul(T[:, columns], domain.inverse(S[:, columns]))


def solve_gauge(P: Array, P_moved: Array, R: Array, R_moved: Array, domain: Domain) -> Array | None:
    """An invertible B with B P = P_moved and R_moved B = R, or None if none was found.

    P is b×n and R is m×b. B is unique if P has full row rank or R_moved full column rank; otherwise it is completed by
    small random matrices. The result satisfies both equations.

    >>> from attngeom.exact import QQ
    >>> P, R = QQ.convert([[1], [0]]), QQ.convert([[1, 0]])
    >>> solve_gauge(P, P * 2, R * 2, R, QQ)[0, 0]
    2
    """
    if P.shape[0] == 0:
        return domain.eye(0)
    B = solve_left(P, P_moved, domain)
    if B is None:
        transposed = solve_left(R_moved.T, R.T, domain)
        B = _complete(P, P_moved, R, R_moved, domain) if transposed is None else transposed.T
    if B is None or not domain.equal(domain.matmul(B, P), P_moved) or not domain.equal(domain.matmul(R_moved, B), R):
        return None
    return B if is_invertible(B, domain) else None


def is_invertible(B: Array, domain: Domain) -> bool:
    """Whether a square matrix over a field is invertible."""
    return bool(domain.rref(B).rank == B.shape[0])


def _complete(P: Array, P_moved: Array, R: Array, R_moved: Array, domain: Domain) -> Array | None:
    """B on the column space of P as given, on a complement so that R_moved B = R, random in what is left."""
    size = P.shape[0]
    span = list(domain.rref(P).pivots)
    basis = np.concatenate([P[:, span], domain.eye(size)], axis=1)
    kept = list(domain.rref(basis).pivots)
    basis = basis[:, kept]
    complement = basis[:, len(span) :]
    images = domain.solve(R_moved, domain.matmul(R, complement))
    if images is None:
        return None
    kernel = domain.nullspace(R_moved).T
    rng = np.random.default_rng(0)
    for _ in range(COMPLETION_TRIALS):
        shift = domain.matmul(kernel, domain.convert(rng.integers(-1, 2, size=(kernel.shape[1], complement.shape[1]))))
        moved = np.concatenate([P_moved[:, span], domain.reduce(images + shift)], axis=1)
        if is_invertible(moved, domain):
            return domain.matmul(moved, domain.inverse(basis))
    return None


def ratio(first: Array, second: Array, domain: Domain) -> Any | None:
    """The scalar λ ≠ 0 with second = λ first at the first nonzero entry of first; None if there is none.

    >>> from attngeom.exact import QQ
    >>> ratio(QQ.convert([0, 2]), QQ.convert([0, 3]), QQ)
    3/2
    """
    for x, y in zip(first.ravel().tolist(), second.ravel().tolist()):
        if x:
            if not y:
                return None
            try:
                return domain.times(y, domain.invert(x))
            except SingularError:
                return None
    return None
