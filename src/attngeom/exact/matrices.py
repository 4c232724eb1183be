"""Exact linear algebra over a field: rank, reduced echelon form, nullspace, solutions, determinant."""

from __future__ import annotations

from typing import Any

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import QQ, Domain, PrimeField, Rationals
from attngeom.exact.modular import Echelon, determinant_mod_p, nullspace_mod_p, rank_mod_p, rref_mod_p, solve_mod_p
from attngeom.exact.quadratic import QuadraticField

Array = np.ndarray


def _check_matrix(a: Array) -> None:
    if a.ndim != 2:
        raise InputError(f"array of shape {a.shape} given; a matrix is required")


def _unsupported(domain: Domain) -> DomainError:
    return DomainError(f"domain {domain.name} given; exact linear algebra needs QQ, GF(p) or a quadratic field")


def rank(a: Array, domain: Domain) -> int:
    """The rank of a matrix over its field, exactly.

    >>> from attngeom.exact.domains import QQ
    >>> rank(QQ.array([[1, 2], ["1/2", 1]]), QQ)
    1
    """
    _check_matrix(a)
    if isinstance(domain, PrimeField):
        return rank_mod_p(a, domain.p)
    if isinstance(domain, Rationals):
        return int(domain.to_flint(a).rank())
    if isinstance(domain, QuadraticField):
        return rank(domain.to_rational(a), QQ) // 2
    raise _unsupported(domain)


def rref(a: Array, domain: Domain) -> Echelon:
    """The reduced row echelon form over the field, without its zero rows.

    >>> from attngeom.exact.domains import QQ
    >>> rref(QQ.array([[2, 4, 1], [1, 2, 0]]), QQ)
    Echelon(matrix=array([[1, 2, 0], [0, 0, 1]], dtype=object), pivots=(0, 2))
    """
    _check_matrix(a)
    if isinstance(domain, PrimeField):
        return rref_mod_p(a, domain.p)
    if isinstance(domain, Rationals):
        reduced, size = domain.to_flint(a).rref()
        matrix = np.empty(a.size, dtype=object)
        matrix[:] = reduced.entries()
        matrix = matrix.reshape(a.shape)[:size]
        return Echelon(matrix, tuple(next(j for j, x in enumerate(row) if x != 0) for row in matrix))
    if isinstance(domain, QuadraticField):
        image = rref(domain.to_rational(a), QQ)
        return Echelon(domain.from_rational(image.matrix), tuple(j // 2 for j in image.pivots[::2]))
    raise _unsupported(domain)


def row_space(a: Array, domain: Domain) -> Array:
    """The canonical basis of the row space, as rows: equal row spaces give equal arrays.

    >>> from attngeom.exact.domains import QQ
    >>> row_space(QQ.array([[2, 4], [3, 6]]), QQ).tolist()
    [[1, 2]]
    """
    return rref(a, domain).matrix


def nullspace(a: Array, domain: Domain) -> Array:
    """A basis of {x : a x = 0} as rows, with an identity matrix in the non-pivot columns.

    >>> from attngeom.exact.domains import QQ
    >>> nullspace(QQ.array([[1, 2, 3]]), QQ).tolist()
    [[-2, 1, 0], [-3, 0, 1]]
    """
    if isinstance(domain, PrimeField):
        return nullspace_mod_p(a, domain.p)
    echelon = rref(a, domain)
    free = np.setdiff1d(np.arange(a.shape[1]), echelon.pivots)
    basis = domain.zeros((len(free), a.shape[1]))
    basis[:, list(echelon.pivots)] = domain.reduce(-echelon.matrix[:, free].T)
    basis[:, free] = domain.eye(len(free))
    return basis


def solve(a: Array, b: Array, domain: Domain) -> Array | None:
    """A solution x of a x = b with zeros in the non-pivot variables, or None if there is none.

    a is m×n; b has m rows and is a vector or a matrix. The solution is unique if and only if rank(a) = n.

    >>> from attngeom.exact.domains import QQ
    >>> solve(QQ.array([[1, 1], [2, 2]]), QQ.array([3, 6]), QQ).tolist()
    [3, 0]
    """
    _check_matrix(a)
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise InputError(f"right side of shape {b.shape} given; {a.shape[0]} rows are required")
    if isinstance(domain, PrimeField):
        return solve_mod_p(a, b, domain.p)
    n = a.shape[1]
    right = b.reshape(b.shape[0], b.shape[1] if b.ndim == 2 else 1)
    echelon = rref(np.concatenate([a, right], axis=1), domain)
    if echelon.pivots and echelon.pivots[-1] >= n:
        return None
    x = domain.zeros((n, right.shape[1]))
    x[list(echelon.pivots)] = echelon.matrix[:, n:]
    return x.reshape((n, *b.shape[1:]))


def determinant(a: Array, domain: Domain) -> Any:
    """The determinant of a square matrix over the field; 1 for the 0×0 matrix.

    >>> from attngeom.exact.domains import QQ
    >>> determinant(QQ.array([[1, 2], [3, 4]]), QQ)
    -2
    """
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise InputError(f"array of shape {a.shape} given; a square matrix is required")
    if isinstance(domain, PrimeField):
        return determinant_mod_p(a, domain.p)
    if isinstance(domain, Rationals):
        return domain.to_flint(a).det()
    if isinstance(domain, QuadraticField):
        return _eliminated_determinant(a, domain)
    raise _unsupported(domain)


def _eliminated_determinant(a: Array, field: Domain) -> Any:
    """The determinant by elimination with the operators of the entries."""
    a = a.copy()
    result = field.eye(1)[0, 0]
    for k in range(len(a)):
        pivot = next((i for i in range(k, len(a)) if a[i, k]), None)
        if pivot is None:
            return field.zeros((1,))[0]
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            result = -result
        result = result * a[k, k]
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] = a[k + 1 :, k:] - factors[:, None] * a[k, k:]
    return result
