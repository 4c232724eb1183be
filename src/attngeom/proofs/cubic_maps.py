"""A cubic map with integer terms over a denominator, evaluated at integer inputs, as the theorems of Attn.v do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from random import Random
from typing import Any, TypeVar

from flint import fmpq, fmpz_mat

from attngeom.errors import SizeError
from attngeom.limits.trials import INTEGER_POINTS
from attngeom.proofs.coq_text import Matrix, Vector, listed

T = TypeVar("T")
Entry = tuple[int, int]
Relation = list[tuple[int, list[list[int]], int]]
"""(c, X, j): c times the output column j at the input X."""


@dataclass(frozen=True)
class CubicMap:
    """den · F is the sum of integer terms, in output (row, column) on a monomial of entries (row, column)."""

    d: int
    d_out: int
    t: int
    den: int
    terms: tuple[tuple[Entry, tuple[Entry, ...], int], ...]

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> CubicMap:
        """The coefficients of a claim."""
        values = [Fraction(term["value"]) for term in record["terms"]]
        den = lcm(1, *(value.denominator for value in values))
        terms = []
        for term, value in zip(record["terms"], values):
            i, j = term["output"]
            terms.append(((i, j), tuple((k, s) for k, s in term["monomial"]), int(value * den)))
        return cls(record["d"], record["d_out"], record["t"], den, tuple(terms))

    def value(self, X: Matrix, i: int, j: int) -> int:
        """den · F(X)_ij."""
        total = 0
        for output, monomial, value in self.terms:
            if output == (i, j):
                for k, s in monomial:
                    value *= X[k][s]
                total += value
        return total

    def table(self, w: Vector, u: Vector, z: Vector) -> int:
        """Target u in column 0, context z in column 1, outputs of column 0 contracted with w, less the same at 0."""
        columns, total = (u, z), 0
        for (i, j), monomial, value in self.terms:
            if j == 0 and w[i] and any(s == 1 for _, s in monomial) and all(s < 2 for _, s in monomial):
                for k, s in monomial:
                    value *= columns[s][k]
                total += w[i] * value
        return total

    def polar(self, w: Vector, u: Vector, y: Vector, z: Vector) -> int:
        """Twice the polar form of the quadric."""
        both = [a + b for a, b in zip(y, z)]
        return self.table(w, u, both) - self.table(w, u, y) - self.table(w, u, z)

    def one(self, w: Vector, x: Vector) -> int:
        """One token: outputs contracted with w at x."""
        return sum(w[i] * self.value([[entry] for entry in x], i, 0) for i in range(self.d_out) if w[i])

    def text(self) -> str:
        """The definitions ``den`` and ``ts``."""
        written = []
        for (i, j), monomial, value in self.terms:
            places = ";".join(f"({k},{s})" for k, s in monomial)
            written.append(f"Term {i} {j} [{places}] ({value})%Z")
        return f"Definition den : Z := {self.den}%Z.\nDefinition ts : list term := {listed(written)}.\n"


def unit(place: int, size: int) -> list[int]:
    return [int(k == place) for k in range(size)]


def small_vectors(size: int, rng: Random, places: list[int] | None = None) -> Iterator[list[int]]:
    """Integer vectors, small ones first, with entries at some places only."""
    for tries in range(INTEGER_POINTS):
        most = 1 + tries // 40
        vector = [0] * size
        for place in range(size) if places is None else places:
            vector[place] = rng.randint(-most, most)
        yield vector


def search(candidates: Iterator[T], accept: Callable[[T], bool]) -> T:
    """The first candidate that is accepted; SizeError if none is."""
    for candidate in candidates:
        if accept(candidate):
            return candidate
    raise SizeError(f"no integer point among {INTEGER_POINTS:,} shows the refutation; give smaller coefficients")


def polarised(d: int, t: int, entries: list[Entry], j: int, factor: int) -> Relation:
    """factor · 3! times the symmetric form of output column j at three units: the coefficient, up to repetitions."""
    products = []
    for chosen in range(1, 8):
        X = [[0] * t for _ in range(d)]
        size = 0
        for place, (k, s) in enumerate(entries):
            if chosen >> place & 1:
                X[k][s] += 1
                size += 1
        products.append((factor * (-1) ** (3 - size), X, j))
    return products


def integer_inverse(M: list[list[int]]) -> tuple[Matrix, int] | None:
    """N and e with N M = e · 1, e ≠ 0; None if M is singular."""
    square = fmpz_mat(M)
    det = int(square.det())
    if det == 0:
        return None
    solved, scale = square.solve(fmpz_mat([[det * int(i == j) for j in range(len(M))] for i in range(len(M))])), det
    return [[int(fmpq(x).p) for x in row] for row in solved.tolist()], scale
