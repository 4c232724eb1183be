"""Factors of a matrix; over floats balanced ones: of least norm, in a basis that does not depend on the start.

Choices between numbers that may be equal are made so that equal numbers, which are common, are no close call: the
first candidate that reaches ``CHOICE_SHARE`` of the largest is taken, and singular values closer than
``SINGULAR_VALUES_EQUAL`` count as one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.scaling import join_scale, split_scale
from attngeom.limits.rounding import BALANCED_RANK, CHOICE_SHARE, SINGULAR_VALUES_CLOSE, SINGULAR_VALUES_EQUAL


@dataclass(frozen=True, eq=False)
class Factors:
    """M = SᵀT with T Tᵀ = S Sᵀ diagonal and decreasing; not clear if the basis hangs on a close call."""

    T: Array
    S: Array
    is_clear: bool


@dataclass(frozen=True, eq=False)
class Balanced:
    """The pair (T, S) of least norm in the closure of the orbit of a pair under (g T, g^{-T} S).

    ``element`` is the g that leads there, None if it lies in the closure only: then no point of the orbit is least.
    """

    T: Array
    S: Array
    element: Array | None


def first_large(values: Array) -> tuple[int, bool]:
    """The first place where |value| reaches CHOICE_SHARE of the largest, and whether no other was about to be chosen.

    >>> first_large(np.array([0.1, -1.0, 1.0]))
    (1, True)
    """
    sizes = np.abs(values)
    largest = float(sizes.max())
    if not largest:
        return 0, True
    place = int(np.argmax(sizes >= CHOICE_SHARE * largest))
    near = np.abs(sizes[: place + 1] / largest - CHOICE_SHARE) < SINGULAR_VALUES_EQUAL
    return place, not bool(near.any())


def choose_pivots(rows: Array) -> tuple[list[int], bool]:
    """Pivots of a matrix with orthonormal rows that depend on its row space alone and leave it well conditioned.

    The columns, and whether no others were about to be chosen.

    >>> choose_pivots(np.array([[0.0, 0.6, 0.8]]))
    ([1], True)
    """
    if rows.shape[0] == rows.shape[1]:
        return list(range(len(rows))), True
    remaining = rows.copy()
    columns, is_clear = [], True
    for _ in range(len(rows)):
        sizes = np.linalg.norm(remaining, axis=0)
        place, clear = first_large(sizes)
        direction = remaining[:, place] / (sizes[place] or 1.0)
        remaining = remaining - np.outer(direction, direction @ remaining)
        remaining[:, place] = 0.0
        columns.append(place)
        is_clear = is_clear and clear
    return sorted(columns), is_clear


def _canonical_rotation(values: Array, rows: Array) -> tuple[Array, bool]:
    """The rotation that makes rows, orthogonal of sizes √values, a function of the spaces of equal values.

    In each such space the rows are triangular at the pivots, with a positive diagonal.
    """
    rotation, is_clear = np.eye(len(values)), True
    if not len(values):
        return rotation, is_clear
    gaps = (values[:-1] - values[1:]) / values[0]
    is_clear = not bool(
        np.any(
            (gaps > SINGULAR_VALUES_EQUAL / SINGULAR_VALUES_CLOSE)
            & (gaps < SINGULAR_VALUES_EQUAL * SINGULAR_VALUES_CLOSE)
        )
    )
    for block in np.split(np.arange(len(values)), np.flatnonzero(gaps > SINGULAR_VALUES_EQUAL) + 1):
        sizes = np.linalg.norm(rows[block], axis=1)[:, None]
        unit = rows[block] / np.where(sizes > 0, sizes, 1.0)
        columns, clear = choose_pivots(unit)
        turn, triangle = lapack.qr(unit[:, columns])
        signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
        rotation[np.ix_(block, block)] = (turn * signs).T
        is_clear = is_clear and clear
    return rotation, is_clear


def balanced_factors(M: Array, rank: int) -> Factors:
    """T and S with ``rank`` rows, SᵀT = M up to its smaller singular values, T Tᵀ = S Sᵀ diagonal and decreasing.

    Equal singular values leave a rotation; it is chosen so that T is triangular at pivots of its row space. T and S
    then depend on M alone. Of all factors of M they have the least norm.

    >>> found = balanced_factors(np.array([[4.0]]), 1)
    >>> found.T.item(), found.S.item()
    (2.0, 2.0)
    """
    unit, exponent = split_scale(M)
    if exponent % 2:
        unit, exponent = unit / 2, exponent + 1
    left, values, right = lapack.svd(unit, full_matrices=False)
    left, values, right = left[:, :rank], values[:rank], right[:rank]
    root = np.sqrt(values)[:, None]
    rotation, is_clear = _canonical_rotation(values, right)
    T, S = (join_scale(rotation @ (root * x), exponent // 2) for x in (right, left.T))
    return Factors(T, S, is_clear)


def balance(T: Array, S: Array) -> Balanced:
    """The pair of least norm in the closure of the orbit of (T, S) under T → g T, S → g^{-T} S.

    It is the balanced factorization of SᵀT, with zero rows beyond the rank. It lies on the orbit if and only if T, S
    and SᵀT have one rank.

    >>> found = balance(np.array([[4.0]]), np.array([[1.0]]))
    >>> found.T.item(), found.S.item(), found.element.item()
    (2.0, 2.0, 0.5)
    """
    n = len(T)
    (T_unit, e), (S_unit, f) = split_scale(T), split_scale(S)
    if (e + f) % 2:
        T_unit, e = T_unit / 2, e + 1
    T_basis, T_factor = lapack.qr(T_unit.T)
    S_basis, S_factor = lapack.qr(S_unit.T)
    left, values, right = lapack.svd(S_factor @ T_factor.T, full_matrices=False)
    cut = n * BALANCED_RANK * float(np.linalg.norm(T_factor) * np.linalg.norm(S_factor))
    rank = int(np.sum(values > cut))
    left, values, right = left[:, :rank], values[:rank], right[:rank]
    root = np.sqrt(values)[:, None]
    rotation, _ = _canonical_rotation(values, right @ T_basis.T)
    factors = [np.zeros(T.shape), np.zeros(S.shape)]
    for out, factor, basis in ((factors[0], right, T_basis), (factors[1], left.T, S_basis)):
        out[:rank] = join_scale(rotation @ (root * (factor @ basis.T)), (e + f) // 2)
    ranks = {lapack.matrix_rank(factor, factor.shape[1] * BALANCED_RANK) for factor in (T_factor, S_factor)}
    is_attained = ranks == {rank}
    element = None
    if is_attained:
        onto = rotation @ ((left.T @ S_factor) / root)
        element = join_scale(_complete(onto, T_factor.T @ right.T), (f - e) // 2)
    return Balanced(factors[0], factors[1], element)


def _complete(onto: Array, image: Array) -> Array:
    """The r×n matrix ``onto``, completed by an orthonormal basis of what vanishes on the n×r matrix ``image``."""
    rank, n = onto.shape
    if rank == n:
        return onto
    return np.concatenate([onto, lapack.svd(image)[0][:, rank:].T])


def factor_attention(A: Array, attention: int, domain: Domain) -> tuple[Array, Array]:
    """Q, K of shape a×d with Kᵀ Q = A, for a matrix A of rank at most a.

    Exact domains: Q holds the nonzero rows of the reduced echelon form and Kᵀ the pivot columns of A, so the factors
    are canonical. Floats: balanced factors from the singular value decomposition, K Kᵀ = Q Qᵀ; a rank above a is
    refused when the cut singular value exceeds 1e-10 times the largest.

    >>> from attngeom.exact import QQ
    >>> Q, K = factor_attention(QQ.convert([[2, 4], [1, 2]]), 1, QQ)
    >>> Q.tolist(), K.tolist()
    ([[1, 2]], [[2, 1]])
    """
    d = A.shape[0]
    if A.shape != (d, d):
        raise InputError(f"attention matrix of shape {A.shape} given; a square one is required")
    if domain.encloses:
        raise DomainError("a rank factorization over balls was asked for; use exact or float weights")
    if domain.is_exact:
        echelon = domain.rref(A)
        rank, T, S = echelon.rank, echelon.matrix, A[:, list(echelon.pivots)].T
    else:
        values = lapack.svdvals(split_scale(A)[0])
        factors = balanced_factors(A, attention)
        rank, T, S = int(np.sum(values > 1e-10 * values[0])), factors.T, factors.S
    if rank > attention:
        raise InputError(f"attention matrix of rank {rank} given; rank at most {attention} is required")
    Q, K = domain.zeros((attention, d)), domain.zeros((attention, d))
    Q[: len(T)], K[: len(S)] = T, S
    return Q, K
