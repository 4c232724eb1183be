"""Polynomials taken apart: monomials, support in some of the variables, coefficients in the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def monomials(f: Any) -> frozenset[tuple[int, ...]]:
    """The exponents of the monomials that occur in a polynomial."""
    return frozenset(tuple(int(e) for e in exponents) for exponents in f.monoms())


def support_in(f: Any, names: Sequence[str]) -> frozenset[tuple[int, ...]]:
    """The monomials of f in some of its variables, the others taken as coefficients.

    >>> from attngeom.exact import polynomial_ring
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
