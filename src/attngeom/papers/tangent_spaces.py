"""Tangent spaces of the variety of one layer, t ≥ 2, at given weights: bounded below by curves, above by equations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import Literal

import numpy as np

from attngeom.equations import Points, Variety, families
from attngeom.equations.families.cross_rows import SegreQuadrics
from attngeom.equations.family import Family
from attngeom.equations.variety import cross_coordinates
from attngeom.exact import GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array
from attngeom.exact.multisets import pairs
from attngeom.layer.coefficients import expand_matrices, quadric_table
from attngeom.layer.splitting import LayerMatrices, split_layer
from attngeom.limits.trials import TANGENT_COMBINATIONS

FIELD = GF(WORD_PRIME)
MAX_DEGREE = 4
SEVERAL_ROWS = (8, 10, 11)
"""Families that add nothing to the others here, or that are treated apart."""


def random_rank(rows: int, columns: int, size: int, rng: np.random.Generator) -> Array:
    """A rational matrix of exactly this rank, by rejection."""
    while True:
        matrix = QQ.matmul(QQ.random((rows, size), rng), QQ.random((size, columns), rng))
        if QQ.rank(matrix) == size:
            return matrix


def units(rows: int, columns: int) -> Iterator[Array]:
    """The elementary matrices of a shape, over Q."""
    for i, j in np.ndindex(rows, columns):
        matrix = QQ.zeros((rows, columns))
        matrix[i, j] += 1
        yield matrix


Kind = Literal["generic", "swap", "boundary", "zero"]


def samples(d: int, d_out: int, a: int, rng: np.random.Generator) -> Iterator[tuple[Kind, LayerMatrices]]:
    """One random point for every type of point of the layer d → d_out with attention width a; swap has two weights."""
    for size_A, size_V in product(range(min(a, d) + 1), range(min(d, d_out) + 1)):
        A, V = random_rank(d, d, size_A, rng), random_rank(d_out, d, size_V, rng)
        if 0 in (size_A, size_V):
            yield "zero", LayerMatrices(A, V, QQ)
        elif (size_A, size_V) == (1, 1):
            yield "swap", swap_sample(d, d_out, rng)
            k, q, h = random_rank(d, 1, 1, rng), random_rank(1, d, 1, rng), random_rank(d_out, 1, 1, rng)
            yield "boundary", LayerMatrices(QQ.matmul(k, q), QQ.matmul(h, k.T), QQ)
        else:
            yield "generic", LayerMatrices(A, V, QQ)


def swap_sample(d: int, d_out: int, rng: np.random.Generator) -> LayerMatrices:
    """Weights (k qᵀ, h vᵀ) with k and v independent, d ≥ 2."""
    k, v = random_rank(2, d, 2, rng)
    q, h = random_rank(1, d, 1, rng), random_rank(d_out, 1, 1, rng)
    return LayerMatrices(QQ.matmul(k[:, None], q), QQ.matmul(h, v[None, :]), QQ)


def cross_vector(A: Array, V: Array) -> Array:
    """The cross-column coefficients of a layer over Q as one vector; they determine the function for t ≥ 2."""
    return expand_matrices(A, V, QQ)[1].ravel()


def differential(A: Array, V: Array, a: int | None = None) -> Array:
    """Rows: the derivatives of φ along all V̇, and along the span of tangent vectors Ȧ of curves of rank ≤ a at A.

    If rk A < a these span all matrices, because A + s E has rank ≤ a for E of rank one; else they are A E and E A.
    """
    d = A.shape[0]
    moves = list(units(d, d))
    if a is not None and QQ.rank(A) == a < d:
        moves = [QQ.matmul(A, E) for E in moves] + [QQ.matmul(E, A) for E in moves]
    return np.stack([cross_vector(A, E) for E in units(*V.shape)] + [cross_vector(E, V) for E in moves])


def tangent_lower_bound(kind: Kind, point: LayerMatrices, a: int) -> int:
    """A lower bound for the dimension of the Zariski tangent space, exact over Q.

    Tangent vectors of curves, at both points of a two-point fiber. At 0 the variety is a cone, so its points are
    tangent vectors. A boundary point (k qᵀ, h kᵀ) is a limit of (k qᵀ, h (k + s w)ᵀ), and the dimension of the tangent
    space can only jump up in a limit.
    """
    A, V, d = point.A, point.V, len(point.A)
    rng = np.random.default_rng(0)
    if kind == "zero":
        number = V.shape[0] * d * len(pairs(d)) + 3
        points = [cross_vector(random_rank(d, d, min(a, d), rng), QQ.random(V.shape, rng)) for _ in range(number)]
        return QQ.rank(np.stack(points))
    if kind == "generic":
        return QQ.rank(differential(A, V, a))
    if kind == "boundary":
        row = next(row for row in V if any(row != 0))
        w = next(e for e in QQ.eye(d) if QQ.rank(np.stack([row, e])) == 2)
        V = V + V[:, [next(i for i in range(d) if row[i] != 0)]] * w
    fiber = split_layer(quadric_table(A, V, QQ), QQ).points
    return QQ.rank(np.concatenate([differential(other.A, other.V, a) for other in fiber]))


@cache
def row_equations(d: int, a: int, targets: int) -> list[Family]:
    """Equations of degree ≤ 4 of one output row, in the coordinates y_{S,m}."""
    known = families(Variety(d, a, targets=targets))
    return [f for f in known if f.degree <= MAX_DEGREE and f.number >= 5 and f.number not in SEVERAL_ROWS]


def gradients(equations: Iterable[Family], y: Array) -> Array:
    """The gradients of all members of families of degree ≤ 4 at a point y (rows, D, targets) mod p, as rows.

    A derivative is the coefficient of s in f(y + s e), by interpolation at s = 0 … 4.
    """
    nodes = np.arange(MAX_DEGREE + 1)
    weights = FIELD.inverse(FIELD.convert([[int(s) ** k for k in nodes] for s in nodes]))[1]
    moved = y + nodes[:, None, None, None, None] * np.eye(y.size, dtype=np.int64).reshape(y.size, *y.shape)
    points = Points(None, FIELD.reduce(moved)[..., None, None, :, :], FIELD)
    values = [FIELD.matmul(weights[None], f.evaluate(points).reshape(len(nodes), -1)) for f in equations]
    return np.concatenate([FIELD.zeros((0, y.size)), *(x.reshape(y.size, -1).T for x in values)])


def tangent_upper_bound(point: LayerMatrices, a: int) -> int:
    """Coordinates minus the rank mod p of the gradients of equations at the point: at least dim T, exactly.

    Equations of one row hold for every combination of rows, and with the roles of A and Vᵀ exchanged for every
    combination of targets; the flattening with all rows has rank ≤ a.
    """
    d, d_out, p = len(point.A), len(point.V), WORD_PRIME
    y = cross_coordinates(FIELD.convert(point.A), FIELD.convert(point.V), FIELD)
    rng = np.random.default_rng(1)
    rows = [gradients([SegreQuadrics(Variety(d, d, d_out=d_out))], y)]
    for _ in range(TANGENT_COMBINATIONS):
        c = FIELD.random((d_out,), rng)
        inner = gradients(row_equations(d, a, d), (y * c[:, None, None] % p).sum(axis=0, keepdims=True) % p)
        rows.append((inner[:, None, :] * c[None, :, None] % p).reshape(len(inner), y.size))
        e = FIELD.random((d,), rng)
        swapped = (y * e % p).sum(axis=2).T % p
        inner = gradients(row_equations(d, min(d, d_out), d_out), swapped[None]).reshape(-1, len(pairs(d)), d_out)
        swapped = np.moveaxis(inner, 2, 1)[..., None] * e % p
        rows.append(swapped.reshape(len(inner), y.size))
    flat = y.reshape(-1, d)
    if rank_mod_p(flat, p) == a < d:
        left, right = FIELD.nullspace(flat.T), FIELD.nullspace(flat)
        rows.append((left[:, None, :, None] * right[None, :, None, :] % p).reshape(len(left) * len(right), y.size))
    return y.size - rank_mod_p(np.concatenate(rows), p)
