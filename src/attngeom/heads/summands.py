"""A layer over Q as a direct sum: idempotents of its commutant from factors of characteristic polynomials.

Every summand is then split into (A, V), if it is a head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from flint import fmpq_poly

from attngeom.exact.arrays import from_flint
from attngeom.exact.domains import QQ, Array
from attngeom.heads.pencil import Endomorphism, Pencil, commutant, compress, sandwich, trace_form
from attngeom.layer.splitting import LayerSplitting, split_layer

TRIES = 40
"""Elements that are tried before a summand counts as not split."""

SummandKind = Literal["brick", "local", "field", "unknown"]


@dataclass(frozen=True, eq=False)
class Summand:
    """A direct summand: columns E (n×r), F (m×s) and rows E⁻ (r×n), F⁻ (s×m) with E⁻ E = 1, F⁻ F = 1.

    ``kind``: "brick" (only scalars commute: indecomposable over every field), "local" (indecomposable over every
    field, but more than scalars commute), "field" (a number field commutes, of degree ``degree``: over C it splits
    into conjugates), "unknown" (it may split further).
    """

    E: Array
    F: Array
    E_inverse: Array
    F_inverse: Array
    kind: SummandKind
    degree: int = 1
    modulus: fmpq_poly | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        """(r, s): its part of the two flattening ranks."""
        return int(self.E.shape[1]), int(self.F.shape[1])

    def table(self, C: Array) -> Array:
        """The summand of C itself, in the coordinates of C."""
        return sandwich(QQ.matmul(self.E, self.E_inverse), C, QQ.matmul(self.F, self.F_inverse))


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A nonzero table over Q as a direct sum: its pencil, a basis of its commutant, its summands and their splittings.

    ``splittings[k]`` says whether summand k is a head (over Q, a quadratic field, C, or not at all).
    """

    pencil: Pencil
    basis: list[Endomorphism]
    summands: list[Summand]
    tables: list[Array]
    splittings: list[LayerSplitting]


def decompose(table: Array, seed: int = 0) -> Decomposition | None:
    """A table of quadrics over Q, not zero, as a direct sum; None if the numbers of its commutant are too long."""
    pencil = compress(table)
    basis = commutant(pencil.C, seed)
    if basis is None:
        return None
    n, m = pencil.shape
    summands = _split(basis, QQ.eye(n), QQ.eye(m), QQ.eye(n), QQ.eye(m), np.random.default_rng(seed))
    tables = [sandwich(pencil.U, summand.table(pencil.C), pencil.R) for summand in summands]
    return Decomposition(pencil, basis, summands, tables, [split_layer(part, QQ) for part in tables])


def _split(
    basis: list[Endomorphism], E: Array, F: Array, E_inverse: Array, F_inverse: Array, rng: np.random.Generator
) -> list[Summand]:
    """Summands that are as small as was found, from a basis of the algebra of endomorphisms."""
    if len(basis) == 1:
        return [Summand(E, F, E_inverse, F_inverse, "brick")]
    modulus: fmpq_poly | None = None
    for X, Y in _elements(basis, rng):
        factors = _factors(X, Y)
        if len(factors) == 1:
            base = factors[0][0]
            if base.degree() == len(basis):
                # Q[e] has the dimension of the whole algebra, which therefore is the field Q[x]/(base).
                modulus = base
                break
            continue
        found = []
        for part in _kernels(X, Y, factors):
            inner = _restrict(basis, *part)
            moved = (
                QQ.matmul(E, part[0]), QQ.matmul(F, part[1]),
                QQ.matmul(part[2], E_inverse), QQ.matmul(part[3], F_inverse),
            )  # fmt: skip
            found += _split(inner, *moved, rng)
        return found
    if modulus is not None:
        return [Summand(E, F, E_inverse, F_inverse, "field", len(basis), modulus)]
    kind: SummandKind = "local" if QQ.rank(trace_form(basis)) == 1 else "unknown"
    return [Summand(E, F, E_inverse, F_inverse, kind)]


def _elements(basis: list[Endomorphism], rng: np.random.Generator) -> Iterator[Endomorphism]:
    """Random elements, generic ones first: those split most; then elements with few nonzero coefficients."""
    for attempt in range(TRIES):
        size = (9, 99, 999)[attempt] if attempt < 3 else 2
        coefficients = rng.integers(-size, size + 1, size=len(basis))
        if attempt >= 3:
            coefficients *= rng.random(len(basis)) < 0.5
        yield _combine(basis, coefficients)
    yield from basis


def _combine(basis: list[Endomorphism], coefficients: Array) -> Endomorphism:
    numbers = QQ.convert(coefficients)
    X = sum((x * c for (x, _), c in zip(basis[1:], numbers[1:])), start=basis[0][0] * numbers[0])
    Y = sum((y * c for (_, y), c in zip(basis[1:], numbers[1:])), start=basis[0][1] * numbers[0])
    return X, Y


def _factors(X: Array, Y: Array) -> list[tuple[fmpq_poly, int]]:
    """The irreducible factors of the characteristic polynomials of X and Y, with multiplicities that kill both."""
    powers: dict[tuple[str, ...], tuple[fmpq_poly, int]] = {}
    for matrix in (X, Y):
        for base, power in QQ.to_flint(matrix).charpoly().factor()[1]:
            monic = base / base[base.degree()]
            key = tuple(str(c) for c in monic.coeffs())
            known = powers.get(key, (monic, 0))[1]
            powers[key] = monic, max(power, known)
    return list(powers.values())


def _kernels(X: Array, Y: Array, factors: list[tuple[fmpq_poly, int]]) -> Iterator[tuple[Array, Array, Array, Array]]:
    """For each factor f^k the kernels of f^k(X) and f^k(Y), as columns, with the rows that project onto them."""
    spaces = []
    for base, power in factors:
        spaces.append([QQ.nullspace(_evaluate(base**power, matrix)).T for matrix in (X, Y)])
    inverses = [QQ.inverse(np.concatenate([space[side] for space in spaces], axis=1)) for side in (0, 1)]
    start = [0, 0]
    for E, F in spaces:
        stop = [start[0] + E.shape[1], start[1] + F.shape[1]]
        yield E, F, inverses[0][start[0] : stop[0]], inverses[1][start[1] : stop[1]]
        start = stop


def _evaluate(polynomial: fmpq_poly, matrix: Array) -> Array:
    value = QQ.to_flint(QQ.zeros(matrix.shape))
    given, unit = QQ.to_flint(matrix), QQ.to_flint(QQ.eye(len(matrix)))
    for coefficient in reversed(polynomial.coeffs()):
        value = value * given + unit * coefficient
    return from_flint(value)


def _restrict(basis: list[Endomorphism], E: Array, F: Array, E_inverse: Array, F_inverse: Array) -> list[Endomorphism]:
    """A basis of the endomorphisms of a summand: those of the whole, restricted and projected."""
    r, s = E.shape[1], F.shape[1]
    pairs = [(QQ.matmul(E_inverse, QQ.matmul(X, E)), QQ.matmul(F_inverse, QQ.matmul(Y, F))) for X, Y in basis]
    flat = np.stack([np.concatenate([X.ravel(), Y.ravel()]) for X, Y in pairs])
    rows = QQ.rref(flat).matrix
    return [(row[: r * r].reshape(r, r), row[r * r :].reshape(s, s)) for row in rows]
