"""Polynomials as a coefficient domain: the library runs on generic weights, and its identities become proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from flint import fmpq_mpoly

from attngeom.errors import DomainError
from attngeom.exact import Domain, polynomial_ring
from attngeom.exact.domains import Array, as_fmpq


@dataclass(frozen=True)
class PolynomialDomain(Domain):
    """The ring Q[names]; entries are FLINT polynomials, so an equality of arrays is an identity of polynomials.

    >>> ring = PolynomialDomain.of(x=(1, 2))
    >>> x = ring.matrix("x", 1, 2)
    >>> ring.matmul(x, x.T)[0, 0]
    x_1_1^2 + x_1_2^2
    """

    names: tuple[str, ...]
    name: ClassVar[str] = "polynomials"
    is_exact: ClassVar[bool] = True

    @classmethod
    def of(cls, **shapes: tuple[int, int]) -> PolynomialDomain:
        """The ring whose variables are the entries of generic matrices of these shapes, counted from 1."""
        names = [f"{letter}_{i + 1}_{j + 1}" for letter, (m, n) in shapes.items() for i in range(m) for j in range(n)]
        return cls(tuple(names))

    @property
    def ring(self) -> Any:
        return polynomial_ring(self.names)

    def matrix(self, letter: str, rows: int, columns: int) -> Array:
        """The generic matrix with entries letter_i_j."""
        ring = self.ring
        out = np.empty((rows, columns), dtype=object)
        for i, j in np.ndindex(rows, columns):
            out[i, j] = ring.gen(ring.variable_to_index(f"{letter}_{i + 1}_{j + 1}"))
        return out

    @staticmethod
    def _convert(x: Any) -> Any:
        """Constants stay numbers: a constant polynomial alone would look like a sequence of terms to NumPy."""
        return x if isinstance(x, fmpq_mpoly) else as_fmpq(x)

    def array(self, data: Any) -> Array:
        source = data if isinstance(data, np.ndarray) else _nested(data)
        flat = np.empty(source.size, dtype=object)
        for index, entry in enumerate(source.ravel()):
            flat[index] = self._convert(entry)
        return flat.reshape(source.shape)

    def matmul(self, a: Array, b: Array) -> Array:
        return np.matmul(a, b)

    def inverse(self, a: Array) -> Array:
        raise DomainError("inverse over a polynomial ring asked for; use Q or GF(p)")

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.array(rng.integers(-9, 10, size=shape))

    def is_zero(self, a: Array) -> bool:
        return all(x == 0 for x in a.ravel())


def _nested(data: Any) -> Array:
    """Nested lists as an object array; FLINT polynomials inside would look like sequences to NumPy."""
    shape: list[int] = []
    level = data
    while isinstance(level, (list, tuple)):
        shape.append(len(level))
        level = level[0] if level else None
    out = np.empty(tuple(shape), dtype=object)
    for index in np.ndindex(*shape):
        entry = data
        for place in index:
            entry = entry[place]
        out[index] = entry
    return out


def monomials(f: Any) -> frozenset[tuple[int, ...]]:
    """The exponents of the monomials that occur in a polynomial."""
    return frozenset(tuple(int(e) for e in exponents) for exponents in f.monoms())


def support_in(f: Any, names: Sequence[str]) -> frozenset[tuple[int, ...]]:
    """The monomials of f in some of its variables, the others taken as coefficients.

    >>> x, c = polynomial_ring(("x", "c")).gens()
    >>> sorted(support_in(c * x**2 + x * c + x, ("x",)))
    [(1,), (2,)]
    """
    places = [f.context().variable_to_index(name) for name in names]
    return frozenset(tuple(exponents[place] for place in places) for exponents in monomials(f))


def collect(f: Any, names: Sequence[str]) -> dict[tuple[int, ...], Any]:
    """The coefficients of f as a polynomial in some of its variables: exponents ↦ polynomial in the others."""
    ring = f.context()
    places = [ring.variable_to_index(name) for name in names]
    parts: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {}
    for exponents, c in f.terms():
        key = tuple(int(exponents[place]) for place in places)
        rest = tuple(0 if index in places else int(e) for index, e in enumerate(exponents))
        parts.setdefault(key, {})[rest] = c
    return {key: ring.from_dict(terms) for key, terms in parts.items()}
