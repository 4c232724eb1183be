"""Tangent spaces of the variety of one layer, t ≥ 2, at given weights: bounded below by curves, above by equations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

import numpy as np

from attngeom.equations import Variety, families
from attngeom.equations.families.cross_rows import SegreQuadrics
from attngeom.equations.family import Family
from attngeom.equations.points import cross_coordinates
from attngeom.exact import GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array
from attngeom.exact.multisets import pairs
from attngeom.layer.coefficients import expand_matrices, quadric_table
from attngeom.layer.matrices import LayerMatrices
from attngeom.layer.splitting import split_layer

FIELD = GF(WORD_PRIME)
MAX_DEGREE = 4
COMBINATIONS = 6
SEVERAL_ROWS = (8, 10, 11)
"""Families that add nothing to the others here, or that are treated apart."""


@dataclass(frozen=True, eq=False)
class Equations:
    """Polynomials mod p of degree at most four, term by term: its equation, its four places, its coefficient.

    A place beyond the coordinates stands for the constant 1.
    """

    count: int
    rows: Array
    places: Array
    coefficients: Array


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
    rows = [cross_vector(A, E) for E in units(*V.shape)]
    if a is None or a >= d or QQ.rank(A) < a:
        rows += [cross_vector(E, V) for E in units(d, d)]
    else:
        rows += [cross_vector(QQ.matmul(A, E), V) for E in units(d, d)]
        rows += [cross_vector(QQ.matmul(E, A), V) for E in units(d, d)]
    return np.stack(rows)


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


def _terms(families: Iterable[Family]) -> Equations:
    """The terms of all members of some families of one variety."""
    rows, places, coefficients, count = [], [], [], 0
    for polynomial in (family.flint_polynomial(index) for family in families for index in range(family.count)):
        for exponents, c in polynomial.terms():
            monomial = [place for place, e in enumerate(exponents) for _ in range(e)]
            rows.append(count)
            places.append(monomial + [len(exponents)] * (MAX_DEGREE - len(monomial)))
            coefficients.append(int(FIELD.convert([c])[0]))
        count += 1
    table = np.array(places, dtype=np.int64).reshape(-1, MAX_DEGREE)
    return Equations(count, np.array(rows, dtype=np.int64), table, np.array(coefficients, dtype=np.int64))


@cache
def row_equations(d: int, a: int, targets: int) -> Equations:
    """Equations of degree ≤ 4 of one output row, in the coordinates y_{S,m}."""
    known = families(Variety(d, a, targets=targets))
    return _terms(f for f in known if f.degree <= MAX_DEGREE and f.number >= 5 and f.number not in SEVERAL_ROWS)


@cache
def segre_equations(d: int, d_out: int) -> Equations:
    """The Segre quadrics across output rows, in the coordinates y_{n,S,m}."""
    return _terms([SegreQuadrics(Variety(d, d, d_out=d_out))])


def gradients(equations: Equations, y: Array) -> Array:
    """The gradients of equations at a point mod p, as rows."""
    p, values = WORD_PRIME, np.append(y, 1)
    table = np.zeros((equations.count, len(values)), dtype=np.int64)
    for i in range(MAX_DEGREE):
        slope = equations.coefficients
        for j in range(MAX_DEGREE):
            if i != j:
                slope = slope * values[equations.places[:, j]] % p
        np.add.at(table, (equations.rows, equations.places[:, i]), slope)
    return table[:, :-1] % p


def tangent_upper_bound(point: LayerMatrices, a: int) -> int:
    """Coordinates minus the rank mod p of the gradients of equations at the point: at least dim T, exactly.

    Equations of one row hold for every combination of rows, and with the roles of A and Vᵀ exchanged for every
    combination of targets; the flattening with all rows has rank ≤ a.
    """
    d, d_out, p = len(point.A), len(point.V), WORD_PRIME
    y = cross_coordinates(FIELD.convert(point.A), FIELD.convert(point.V), FIELD)
    rng = np.random.default_rng(1)
    rows = [gradients(segre_equations(d, d_out), y.ravel())]
    for _ in range(COMBINATIONS):
        c = FIELD.random((d_out,), rng)
        inner = gradients(row_equations(d, a, d), (y * c[:, None, None] % p).sum(axis=0).ravel() % p)
        rows.append((inner[:, None, :] * c[None, :, None] % p).reshape(len(inner), y.size))
        e = FIELD.random((d,), rng)
        swapped = (y * e % p).sum(axis=2).T % p
        inner = gradients(row_equations(d, min(d, d_out), d_out), swapped.ravel()).reshape(-1, len(pairs(d)), d_out)
        turned = np.moveaxis(inner, 2, 1)[..., None] * e % p
        rows.append(turned.reshape(len(inner), y.size))
    flat = y.reshape(-1, d)
    if rank_mod_p(flat, p) == a < d:
        left, right = FIELD.nullspace(flat.T), FIELD.nullspace(flat)
        rows.append((left[:, None, :, None] * right[None, :, None, :] % p).reshape(len(left) * len(right), y.size))
    return y.size - rank_mod_p(np.concatenate(rows), p)
