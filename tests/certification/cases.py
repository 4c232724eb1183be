"""Cubic maps with known answers, for the tests of certify and verify and for the benchmark of their accuracy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from flint import fmpq

from attngeom.exact import QQ
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_index, triple_index
from attngeom.layer.coefficients import Coefficients, array_shapes, expand_matrices, symmetrize


def from_matrices(A: Array, V: Array, t: int, domain: Domain = QQ) -> Coefficients:
    """The coefficients of V X Xᵀ A X."""
    d, d_out = A.shape[0], V.shape[0]
    single, cross = expand_matrices(A, V, domain)
    shapes = array_shapes(d, d_out, t)
    all_single = np.broadcast_to(single[:, None], shapes[0]).copy()
    return Coefficients(d, d_out, t, all_single, np.broadcast_to(cross[:, None, None], shapes[1]).copy(), domain)


def from_table(cross: Array, t: int, domain: Domain = QQ) -> Coefficients:
    """A cubic map that satisfies the linear relations, with cross coefficients of shape (d_out, D, d) at every copy."""
    d_out, _, d = cross.shape
    shapes = array_shapes(d, d_out, t)
    single = symmetrize(cross, d, domain)
    all_single = np.broadcast_to(single[:, None], shapes[0]).copy()
    return Coefficients(d, d_out, t, all_single, np.broadcast_to(cross[:, None, None], shapes[1]).copy(), domain)


def table(d: int, d_out: int, entries: Mapping[tuple[int, int, int, int], int]) -> Array:
    """Cross coefficients {(row, k, l, m): value}, zero elsewhere."""
    cross = QQ.zeros((d_out, d * (d + 1) // 2, d))
    for (i, k, l, m), value in entries.items():
        cross[i, pair_index(d)[k, l], m] = fmpq(value)
    return cross


def cubics(d: int, rows: list[dict[tuple[int, int, int], int]]) -> Coefficients:
    """One token: the cubic of each row by its ordinary coefficients."""
    shapes = array_shapes(d, len(rows), 1)
    single = QQ.zeros(shapes[0])
    for i, row in enumerate(rows):
        for R, value in row.items():
            single[i, 0, triple_index(R, d)] = fmpq(value)
    return Coefficients(d, len(rows), 1, single, QQ.zeros(shapes[1]), QQ)


def random_layer(
    rng: np.random.Generator, largest: int = 5, tokens: tuple[int, ...] = (2, 3)
) -> tuple[Coefficients, int]:
    """A random layer of any rank, rank-one pairs and boundary points among them, sometimes huge or tiny; and rank A."""
    d, d_out, t = int(rng.integers(1, largest + 1)), int(rng.integers(1, 4)), int(rng.choice(tokens))
    kind = rng.random()
    if kind < 0.6:
        r = int(rng.integers(0, d + 1))
        A = QQ.matmul(QQ.random((d, r), rng), QQ.random((r, d), rng)) if r else QQ.zeros((d, d))
        V = QQ.random((d_out, d), rng)
    else:
        k = QQ.random((d, 1), rng)
        v = k.T if kind < 0.75 else QQ.random((1, d), rng)
        A, V = QQ.matmul(k, QQ.random((1, d), rng)), QQ.matmul(QQ.random((d_out, 1), rng), v)
    if rng.random() < 0.3:
        A = A * fmpq(10) ** int(rng.integers(-200, 200)) / int(rng.integers(1, 10**6))
    return from_matrices(A, V, t), int(QQ.to_flint(A).rank())


def change_one(coefficients: Coefficients, rng: np.random.Generator) -> Coefficients:
    """One coefficient changed by a nonzero rational, anywhere."""
    name = "cross" if coefficients.t > 1 and rng.random() < 0.8 else "single"
    array = getattr(coefficients, name).copy()
    place = tuple(int(rng.integers(0, n)) for n in array.shape)
    array[place] += fmpq(int(rng.integers(1, 10)), int(rng.integers(1, 10))) * (-1) ** int(rng.integers(0, 2))
    return dataclasses.replace(coefficients, **{name: array})


def change_table(coefficients: Coefficients, rng: np.random.Generator) -> Coefficients:
    """One cross coefficient changed at every copy, so that the linear relations still hold."""
    cross = coefficients.cross[:, 0, 0].copy()
    place = tuple(int(rng.integers(0, n)) for n in cross.shape)
    size = max((abs(x) for x in cross.ravel()), default=fmpq(0))
    cross[place] += (size if size else fmpq(1)) * fmpq(int(rng.integers(1, 10)), 7)
    return from_table(cross, coefficients.t)


def conjugate_pair(rng: np.random.Generator, largest: int = 5) -> Coefficients:
    """A = k qᵀ, V = h k̄ᵀ with k not proportional to a real vector: rational coefficients, no real weights."""
    d, d_out, t = int(rng.integers(2, largest + 1)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    real, imaginary = QQ.random((d,), rng), QQ.random((d,), rng)
    while QQ.to_flint(np.stack([real, imaginary])).rank() < 2:
        real, imaginary = QQ.random((d,), rng), QQ.random((d,), rng)
    D = int(rng.integers(1, 40))
    B = real[:, None] * real + imaginary[:, None] * imaginary * D
    h, q = QQ.random((d_out,), rng), QQ.random((d,), rng)
    h[0], q[0] = h[0] + (h[0] == 0), q[0] + (q[0] == 0)
    first, second = np.triu_indices(d)
    quadric = B[first, second] * np.where(first == second, 1, 2)
    return from_table(h[:, None, None] * quadric[:, None] * q, t)
