"""Generic matrices and layers over polynomial rings, and polynomials taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attngeom.exact import QQ
from attngeom.exact.domains import PolynomialDomain


def generic(**shapes: tuple[int, int]) -> tuple[Any, ...]:
    """The ring of polynomials in all entries of generic matrices of these shapes, and the matrices.

    >>> ring, k, q = generic(k=(1, 2), q=(1, 1))
    >>> ring.matmul(k.T, q).tolist()
    [[k_1_1*q_1_1], [k_1_2*q_1_1]]
    """
    ring = PolynomialDomain.of(**shapes)
    return ring, *(ring.matrix(letter, *shape) for letter, shape in shapes.items())


class GenericLayer:
    """F = V X Xᵀ A X with generic V (d_out×d), A (d×d) and X (d×t), over Q[v, A, x]."""

    def __init__(self, d: int, d_out: int, t: int) -> None:
        self.d, self.d_out, self.t = d, d_out, t
        self.ring, self.V, self.A, self.X = generic(v=(d_out, d), A=(d, d), x=(d, t))
        multiply = self.ring.matmul
        self.F = multiply(self.V, multiply(self.X, multiply(self.X.T, multiply(self.A, self.X))))
        self.label = f"d = {d}, d' = {d_out}, t = {t}"

    def coefficients(self, i: int, j: int) -> dict[tuple[int, ...], Any]:
        """F_ij as a polynomial in X: exponents of the entries of X, row by row, ↦ polynomial in V and A."""
        return collect(self.F[i, j], PolynomialDomain.of(x=(self.d, self.t)).variables)


def collect(f: Any, names: Sequence[str]) -> dict[tuple[int, ...], Any]:
    """The coefficients of f as a polynomial in some of its variables: exponents ↦ polynomial in the others.

    >>> ring, x, c = generic(x=(1, 1), c=(1, 1))
    >>> collect(c[0, 0] * x[0, 0] ** 2 + x[0, 0], ["x_1_1"])
    {(2,): c_1_1, (1,): 1}
    """
    ring = f.context()
    places = [ring.variable_to_index(name) for name in names]
    parts: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {}
    for exponents, c in f.terms():
        key = tuple(int(exponents[place]) for place in places)
        rest = tuple(0 if index in places else int(e) for index, e in enumerate(exponents))
        parts.setdefault(key, {})[rest] = c
    return {key: ring.from_dict(terms) for key, terms in parts.items()}


def span(polynomials: Sequence[Any]) -> int:
    """The dimension over Q of the span of polynomials of one ring."""
    terms = [{tuple(map(int, exponents)): c for exponents, c in f.terms()} for f in polynomials]
    keys = sorted({key for part in terms for key in part})
    return QQ.rank(QQ.convert([[part.get(key, 0) for key in keys] for part in terms])) if keys else 0
