"""Cubic maps that are read one coefficient at a time: a given one, or a random attention layer mod 2^61 − 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mpoly, fmpz, fmpz_mat, nmod, nmod_mat

from attngeom.exact.modular import laplace_expansion
from attngeom.exact.multisets import pair_index, pair_orbits, triple_index, triple_orbits
from attngeom.exact.numbers import BIG_PRIME
from attngeom.layer.coefficients import Coefficients, Entry, Monomial
from attngeom.verification.budget import afford_elimination


@dataclass(frozen=True)
class Accessor:
    """Scaled coefficients of a cubic map: ``cross(i, j, n, k, l, m)``, ``single(i, j, k, l, m)``, ``outside(…)``.

    i is the output row, j the target column, n ≠ j the context column, (k, l) and m context and target rows. Sums of
    coefficients start at ``zero``.
    """

    d: int
    d_out: int
    t: int
    cross: Callable[[int, int, int, int, int, int], Any]
    single: Callable[[int, int, int, int, int], Any]
    outside: Callable[[Entry, Monomial], Any]
    zero: Any

    def y(self, i: int, k: int, l: int, m: int) -> Any:
        """y_{(k,l),m} of row i at target column 0 and context column 1."""
        return self.cross(i, 0, 1, min(k, l), max(k, l), m)


def accessor_of(coefficients: Coefficients) -> Accessor:
    """The scaled coefficients of a cubic map."""
    d = coefficients.d
    pair, pair_size, triple_size = pair_index(d), pair_orbits(d), triple_orbits(d)

    def cross(i: int, j: int, n: int, k: int, l: int, m: int) -> Any:
        s = pair[k, l]
        return coefficients.cross[i, j, n - (n > j), s, m] / int(pair_size[s])

    def single(i: int, j: int, k: int, l: int, m: int) -> Any:
        r = triple_index((k, l, m), d)
        return coefficients.single[i, j, r] / int(triple_size[r])

    return Accessor(d, coefficients.d_out, coefficients.t, cross, single, coefficients.coefficient, fmpq(0))


def random_layer(d: int, d_out: int, t: int, width: int, seed: int) -> Accessor:
    """A random layer mod 2^61 − 1 with rank A ≤ width, its scaled coefficients computed one by one from (A, V)."""
    rng = np.random.default_rng([seed, d, d_out, width])

    def draw(rows: int, columns: int) -> nmod_mat:
        return nmod_mat(rows, columns, rng.integers(0, BIG_PRIME, rows * columns).tolist(), BIG_PRIME)

    K, Q, V = draw(width, d), draw(width, d), draw(d_out, d).tolist()
    zero, half, third = nmod(0, BIG_PRIME), 1 / nmod(2, BIG_PRIME), 1 / nmod(3, BIG_PRIME)
    A = (K.transpose() * Q).tolist()

    def cross(i: int, j: int, n: int, k: int, l: int, m: int) -> nmod:
        return (V[i][k] * A[l][m] + V[i][l] * A[k][m]) * half

    def single(i: int, j: int, k: int, l: int, m: int) -> nmod:
        return (cross(i, j, j, k, l, m) + cross(i, j, j, k, m, l) + cross(i, j, j, l, m, k)) * third

    def outside(output: Entry, monomial: Monomial) -> nmod:
        return zero

    return Accessor(d, d_out, t, cross, single, outside, zero)


def determinant(matrix: Sequence[Sequence[Any]]) -> Any:
    """The determinant of a nonempty square matrix over Q, GF(2^61 − 1) or polynomials; SizeError beyond the budget.

    >>> determinant([[fmpq(1, 2), fmpq(1)], [fmpq(1), fmpq(3)]])
    1/2
    """
    size = len(matrix)
    if isinstance(matrix[0][0], fmpq_mpoly):
        return laplace_expansion(matrix)
    if isinstance(matrix[0][0], nmod):
        residues = [int(x) for row in matrix for x in row]
        return nmod(int(nmod_mat(size, size, residues, BIG_PRIME).det()), BIG_PRIME)
    scale = fmpz(1)
    entries: list[fmpz] = []
    for row in matrix:
        common = fmpz(1)
        for x in row:
            common = common.lcm(x.q)
        scale *= common
        entries += [(x * common).p for x in row]
    afford_elimination(size, max(max(int(x).bit_length() for x in entries), 1))
    return fmpq(fmpz_mat(size, size, entries).det(), scale)
