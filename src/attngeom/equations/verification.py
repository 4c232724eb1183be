"""Proof that a family vanishes on the parametrization, and that it is not identically zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.equations.family import Family
from attngeom.equations.terms import Monomial, Variable
from attngeom.equations.variety import Points, Variety, random_points
from attngeom.errors import InputError
from attngeom.exact.domains import GF, QQ
from attngeom.exact.polynomials import polynomial_ring
from attngeom.exact.primes import BIG_PRIME


@dataclass(frozen=True)
class Vanishing:
    """Whether members start … stop−1 of a family vanish on the parametrization, and how that is known.

    ``method`` is "substitution" (a polynomial identity over Q: a proof) or "random points" (at random weights mod
    ``prime``; if a member were nonzero this would be seen except with probability 2^``error_exponent``).
    """

    family: str
    start: int
    stop: int
    vanishes: bool
    method: str
    prime: int | None = None
    seed: int | None = None
    error_exponent: float | None = None


def _images(variety: Variety) -> tuple[Callable[[Variable], Any], Any]:
    """A function from variables to polynomials in K, Q, V, with A = Kᵀ Q, and their ring."""
    d, m, a = variety.d, variety.num_targets, variety.rank_bound
    sizes = {"K": (a, d), "Q": (a, m), "V": (variety.d_out, d)}
    names = [f"{name}_{i}_{k}" for name, (rows, columns) in sizes.items() for i in range(rows) for k in range(columns)]
    ring = polynomial_ring(names)
    cache: dict[Variable, Any] = {}
    x = ring.gens()
    K, Q, V = x[: a * d], x[a * d : a * d + a * m], x[a * d + a * m :]
    zero = ring.constant(0)
    A = [[sum((K[i * d + l] * Q[i * m + c] for i in range(a)), start=zero) for c in range(m)] for l in range(d)]

    def cross(row: int, k: int, l: int, c: int) -> Any:
        return (V[row * d + k] * A[l][c] + V[row * d + l] * A[k][c]) * fmpq(1, 2)

    def image(variable: Variable) -> Any:
        if variable not in cache:
            kind, row, *rest = variable
            k, l, c = rest[-3:]
            if kind in ("y", "yc"):
                cache[variable] = cross(row, k, l, c)
            else:
                total = cross(row, k, l, c) + cross(row, k, c, l) + cross(row, l, c, k)
                cache[variable] = total * fmpq(1, 3)
        return cache[variable]

    return image, ring


def prove_by_substitution(family: Family, start: int = 0, stop: int | None = None) -> Vanishing:
    """Substitute the parametrization into each member and expand over Q: zero is a proof.

    >>> from attngeom.equations.registry import family
    >>> prove_by_substitution(family(Variety(2, 1), "sylvester-resultant")).vanishes
    True
    """
    start, stop = family.check_range(start, stop)
    image, ring = _images(family.variety)
    products: dict[Monomial, Any] = {(): ring.constant(1)}

    def product(monomial: Monomial) -> Any:
        if monomial not in products:
            products[monomial] = product(monomial[:-1]) * image(monomial[-1])
        return products[monomial]

    vanishes = True
    for index in range(start, stop):
        total = ring.constant(0)
        for monomial, c in family[index].terms.items():
            total += product(monomial) * c
        vanishes = vanishes and total == 0
    return Vanishing(family.name, start, stop, bool(vanishes), "substitution")


def check_at_random_points(
    family: Family, start: int = 0, stop: int | None = None, points: int = 2, seed: int = 0
) -> Vanishing:
    """Evaluate members at random weights mod 2^61 − 1: by Schwartz-Zippel each misses with probability ≤ (D/p)^points.

    D = 3·degree bounds the degree in K, Q, V; the stated error is the union bound over the members.

    >>> from attngeom.equations.registry import family
    >>> check_at_random_points(family(Variety(4, 4), "pluecker-quartic"), stop=10).vanishes
    True
    """
    start, stop = family.check_range(start, stop)
    if points < 1 or start == stop:
        raise InputError(f"{points} points and {stop - start} members given; at least one of each is required")
    sample = random_points(family.variety, points, GF(BIG_PRIME), np.random.default_rng(seed))
    values = family.evaluate(sample, start, stop)
    error = points * (log2(3 * family.degree) - log2(BIG_PRIME)) + log2(stop - start)
    return Vanishing(family.name, start, stop, not values.any(), "random points", BIG_PRIME, seed, error)


@dataclass(frozen=True, eq=False)
class PointOff:
    """An integer point of the ambient space where member ``index`` has the nonzero ``value``: it is off the variety."""

    points: Points
    index: int
    value: Any


def find_point_off(family: Family, seed: int = 0, stop: int = 64) -> PointOff:
    """The first of a fixed sequence of small integer points at which one of the first members is not zero.

    >>> from attngeom.equations.registry import family
    >>> find_point_off(family(Variety(2, 1), "sylvester-resultant")).value != 0
    True
    """
    rng = np.random.default_rng(seed)
    shape = random_points(family.variety, 1, QQ, rng)
    for _ in range(100):
        single = None if shape.single is None else QQ.random(shape.single.shape, rng)
        cross = None if shape.cross is None else QQ.random(shape.cross.shape, rng)
        points = Points(single, cross, QQ)
        values = family.evaluate(points, 0, min(stop, family.count))[0]
        hits = [index for index, value in enumerate(values) if value != 0]
        if hits:
            return PointOff(points, hits[0], values[hits[0]])
    raise ArithmeticError(f"the first members of {family.name} vanish at 100 random points; the family is suspect")
