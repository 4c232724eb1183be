"""Balanced factors of a matrix: of least norm, in a basis that does not depend on the start.

Choices between numbers that may be equal are made so that equal numbers, which are common, are no close call: the
first candidate that reaches ``CHOICE_SHARE`` of the largest is taken, and singular values closer than
``SINGULAR_VALUES_EQUAL`` count as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.exact.numbers import join_scale, split_scale
from attngeom.groups.pivots import choose_pivots, first_large_of_rows, tall_qr
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

    ``triangles`` of the two given matrices, and ``onto``, ``image``, from which the way there follows.
    """

    T: Array
    S: Array
    rank: int
    triangles: tuple[Array, Array]
    onto: Array
    image: Array
    exponent: int

    @cached_property
    def element(self) -> Array | None:
        """The g that leads there; None if the pair lies in the closure only: then no point of the orbit is least."""
        ranks = {lapack.matrix_rank(factor, factor.shape[1] * BALANCED_RANK) for factor in self.triangles}
        return join_scale(_complete(self.onto, self.image), self.exponent) if ranks == {self.rank} else None


def _canonical_rotation(values: Array, rows: Array) -> tuple[Array, bool]:
    """The rotation that makes rows, orthogonal of sizes √values, a function of the spaces of equal values.

    In each such space the rows are triangular at the pivots, with a positive diagonal.
    """
    if not len(values):
        return np.eye(0), True
    gaps = (values[:-1] - values[1:]) / values[0]
    least, most = SINGULAR_VALUES_EQUAL / SINGULAR_VALUES_CLOSE, SINGULAR_VALUES_EQUAL * SINGULAR_VALUES_CLOSE
    is_clear = not bool(np.any((gaps > least) & (gaps < most)))
    # A single row is triangular at its pivot if that entry is positive.
    places, clear = first_large_of_rows(rows)
    signs = np.where(np.take_along_axis(rows, places[:, None], axis=1)[:, 0] < 0, -1.0, 1.0)
    rotation, is_clear = np.diag(signs), is_clear and bool(clear.all())
    for block in np.split(np.arange(len(values)), np.flatnonzero(gaps > SINGULAR_VALUES_EQUAL) + 1):
        if len(block) == 1:
            continue
        sizes = np.linalg.norm(rows[block], axis=1)[:, None]
        unit = rows[block] / np.where(sizes > 0, sizes, 1.0)
        columns, sure = choose_pivots(unit, share=CHOICE_SHARE, swap=None)
        turn, triangle = lapack.qr(unit[:, columns])
        rotation[np.ix_(block, block)] = (turn * np.where(np.diagonal(triangle) < 0, -1.0, 1.0)).T
        is_clear = is_clear and sure
    return rotation, is_clear


def balanced_factors(M: Array, rank: int) -> Factors:
    """T and S with ``rank`` rows, SᵀT = M up to its smaller singular values, T Tᵀ = S Sᵀ diagonal and decreasing.

    Equal singular values leave a rotation; it is chosen so that T is triangular at pivots of its row space. T and S
    then depend on M alone. Of all factors of M they have the least norm.

    >>> pair = balanced_factors(np.array([[4.0]]), 1)
    >>> pair.T.item(), pair.S.item()
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


def balance(T: Array, S: Array, cut: float | None = None) -> Balanced:
    """The pair of least norm in the closure of the orbit of (T, S) under T → g T, S → g^{-T} S.

    It is the balanced factorization of SᵀT, with zero rows beyond the rank. It lies on the orbit if and only if T, S
    and SᵀT have one rank. Singular values up to ``cut`` times the largest are zero; without it, those up to what
    rounding makes of factors of this size.

    >>> pair = balance(np.array([[4.0]]), np.array([[1.0]]))
    >>> pair.T.item(), pair.S.item(), pair.element.item()
    (2.0, 2.0, 0.5)
    """
    (T_unit, e), (S_unit, f) = split_scale(T), split_scale(S)
    if (e + f) % 2:
        T_unit, e = T_unit / 2, e + 1
    T_basis, T_factor = tall_qr(T_unit.T)
    S_basis, S_factor = tall_qr(S_unit.T)
    left, values, right = lapack.svd(S_factor @ T_factor.T, full_matrices=False)
    if cut is None:
        zero = len(T) * BALANCED_RANK * float(np.linalg.norm(T_factor) * np.linalg.norm(S_factor))
    else:
        zero = cut * float(values.max(initial=0.0))
    rank = int(np.sum(values > zero))
    left, values, right = left[:, :rank], values[:rank], right[:rank]
    root = np.sqrt(values)[:, None]
    rows = right @ T_basis.T
    rotation, _ = _canonical_rotation(values, rows)
    new_T, new_S = np.zeros(T.shape), np.zeros(S.shape)
    new_T[:rank] = join_scale(rotation @ (root * rows), (e + f) // 2)
    new_S[:rank] = join_scale(rotation @ (root * (left.T @ S_basis.T)), (e + f) // 2)
    onto = rotation @ ((left.T @ S_factor) / root)
    return Balanced(new_T, new_S, rank, (T_factor, S_factor), onto, T_factor.T @ right.T, (f - e) // 2)


def _complete(onto: Array, image: Array) -> Array:
    """The r×n matrix ``onto``, completed by an orthonormal basis of what vanishes on the n×r matrix ``image``."""
    rank, n = onto.shape
    if rank == n:
        return onto
    return np.concatenate([onto, lapack.svd(image)[0][:, rank:].T])
