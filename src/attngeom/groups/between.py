"""Elements that bring pairs of rows together with both sides counted alike, for averages.

Least squares of carried rows alone (`Group.match`) shrink them where two pairs have little in common, and dual rows
grow as much. Here both pairs are first balanced, T T* = S S*, then turned by Procrustes over both sides: equal pairs
meet exactly, others keep their sizes.
"""

from __future__ import annotations

import numpy as np

from attngeom.exact import lapack
from attngeom.exact.arrays import Array
from attngeom.groups.group import Diagonal, Group, beside
from attngeom.limits.rounding import GRAM_DEPENDENT


def between(group: Group, goal: tuple[Array, Array], pair: tuple[Array, Array]) -> Array | None:
    """Elements g with g T near T' and g⁻* S near S' for pairs (T, S); None where the group keeps lengths anyway.

    >>> from attngeom.groups import GeneralLinear
    >>> one = np.eye(2)[None], 100 * np.eye(2)[None]
    >>> between(GeneralLinear(2), (10 * one[0], one[1] / 10), one).round(9).tolist()
    [[[10.0, 0.0], [0.0, 10.0]]]
    """
    if group.keeps_lengths:
        return None
    if isinstance(group, Diagonal):
        return _numbers(*goal, *pair)
    copies = len(goal[0])
    sides = ((rows, [beside(dual, copy, copies) for copy in range(copies)]) for rows, dual in (goal, pair))
    return np.stack([_matrix(*each) for each in zip(*(part for side in sides for part in side))])


def _numbers(goal: Array, dual_goal: Array, rows: Array, dual: Array) -> Array:
    """A number for each row: sizes meet in the middle, phases are those of both sides."""
    copies = len(goal)

    def inner(one: Array, other: Array) -> Array:
        sums = (one.conj() * other).sum(axis=-1)
        return np.asarray(sums.reshape(copies, -1, sums.shape[-1]).sum(axis=1))

    t, s, own, other = (np.sqrt(inner(x, x).real) for x in (goal, dual_goal, rows, dual))
    good = (t > 0) & (s > 0) & (own > 0) & (other > 0)
    t, s, own, other = (np.where(good, x, 1.0) for x in (t, s, own, other))
    turn = inner(rows, goal) / (own * t) + inner(dual, dual_goal) / (other * s)
    size = np.abs(turn)
    turn = np.where(size > 0, turn / np.where(size > 0, size, 1.0), 1.0)
    return np.where(good, np.sqrt(t / own) * np.sqrt(other / s) * turn, 1.0)


def _matrix(goal: Array, dual_goal: Array, rows: Array, dual: Array) -> Array:
    first, second = _balance(goal, dual_goal), _balance(rows, dual)
    if first is None or second is None:
        return np.eye(len(goal))
    sides = (first[0] @ goal) @ (second[0] @ rows).T + (first[1] @ dual_goal) @ (second[1] @ dual).T
    u, _, w = lapack.svd(sides)
    return np.asarray(first[1].T @ (u @ w) @ second[0])


def _balance(rows: Array, dual: Array) -> tuple[Array, Array] | None:
    """P and P⁻ᵀ with P T and P⁻ᵀ S of one Gram matrix; None where T or S has dependent rows."""
    grams = [x @ x.T for x in (rows, dual)]
    if not rows.size or any(lapack.cond(gram) > GRAM_DEPENDENT for gram in grams):
        return None
    lower = lapack.cholesky(grams[0])
    values, vectors = lapack.eigh(lower.T @ grams[1] @ lower)
    if not values[0] > values[-1] / GRAM_DEPENDENT:
        return None
    roots = values[:, None] ** 0.25
    return roots * lapack.solve(lower.T, vectors).T, (lower @ vectors).T / roots
