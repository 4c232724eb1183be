"""Parts of deep lightning maps: factors of the forms of one token (Theorem T2), and the map behind a layer (T5).

The theorems are in docs/theorems/depth.md. A layer f_M(X) = X Xᵀ M X with rk M ≥ 2 has an image with interior points,
so ψ with φ = ψ ∘ f_M is unique if it exists, and φ is a network of l layers that begins with M if and only if ψ is one
of l − 1 layers. Without mask ψ(Z) = P(Z Zᵀ) Z (Theorem T1): the unknowns are the coefficients of P, and every input X
gives a linear equation for each entry of φ(X).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import comb, prod
from typing import Any

import numpy as np

from attngeom.exact.domains import QQ, Array
from attngeom.layer.polynomial_maps import PolynomialMap, generic_input, map_domain
from attngeom.limits.trials import SPARE_INPUTS
from attngeom.limits.work import PEELED_UNKNOWNS


def coefficient_matrix(forms: Sequence[Any]) -> Array:
    """One row for each form, one column for each monomial that occurs."""
    monomials = sorted({tuple(map(int, m)) for f in forms for m in f.monoms()})
    return QQ.convert([[f[m] for m in monomials] for f in forms])


def fits(listed: Sequence[tuple[Any, int]], layers: int) -> bool:
    """Whether Π f^e is Π q_i^(3^(l−i)) with quadrics q_i: digits in base 3 (Theorem T2)."""
    return fits_degrees([(f.total_degree(), e) for f, e in listed], layers)


def fits_degrees(listed: Sequence[tuple[int, int]], layers: int) -> bool:
    """Whether the digits of the multiplicities, weighted by degrees, add up to two at each of the l places.

    >>> fits_degrees([(2, 3), (1, 1), (1, 1)], 2), fits_degrees([(1, 8)], 2), fits_degrees([(4, 2)], 2)
    (True, True, False)
    """
    if any(e >= 3**layers for _, e in listed):
        return False
    return all(sum(size * (e // 3**place % 3) for size, e in listed) == 2 for place in range(layers))


def quadrics(listed: Sequence[tuple[Any, int]], layers: int, ring: Any) -> list[Any]:
    """q_1, …, q_l by the digits of the multiplicities."""
    forms = []
    for place in reversed(range(layers)):
        q = ring.constant(1)
        for f, e in listed:
            q = q * f ** (e // 3**place % 3)
        forms.append(q)
    return forms


def symmetric_matrix(q: Any) -> Array:
    """The symmetric matrix of a quadratic form."""
    d = len(q.context().gens())
    M = QQ.zeros((d, d))
    for exponents, value in q.terms():
        k, l = [k for k, e in enumerate(exponents) for _ in range(int(e))]
        M[k, l] += value / 2
        M[l, k] += value / 2
    return M


def linear_matrix(forms: Sequence[Any]) -> Array:
    """The rows of linear forms."""
    d = len(forms[0].context().gens())
    L = QQ.zeros((len(forms), d))
    for i, f in enumerate(forms):
        for exponents, value in f.terms():
            L[i, [int(e) for e in exponents].index(1)] = value
    return L


def peel(given: PolynomialMap, first: Array, seed: int = 0) -> PolynomialMap | None:
    """ψ of a third of the degree with ψ(X Xᵀ M X) = φ(X) at random inputs; None if there is none, or t < d.

    That ψ is right is for the caller to check, by expansion: random inputs may be too special.

    >>> from attngeom.layer.polynomial_maps import expand_network
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2, 2), 2, tokens=2), QQ, seed=0)
    >>> peel(expand_network(w), w.virtual().M[0]).outputs[0][0].total_degree()
    3
    """
    d, t, degree = given.d, given.t, given.degree // 3
    half, pairs = (degree - 1) // 2, list(combinations_with_replacement(range(d), 2))
    unknowns = d * comb(len(pairs) + half - 1, half)
    if t < d or unknowns > PEELED_UNKNOWNS:
        # Fewer tokens have Gram matrices of smaller rank, whose monomials are dependent.
        return None
    monomials = list(combinations_with_replacement(range(len(pairs)), half))
    rng, rows, right = np.random.default_rng(seed), [], []
    for _ in range(unknowns // t + SPARE_INPUTS):
        X = QQ.convert(rng.integers(-3, 4, (d, t)))
        Z, F = X @ (X.T @ (first @ X)), given.at(X)
        powers = _powers(Z, pairs, monomials)
        for k in range(t):
            rows.append([value * z for z in Z[:, k] for value in powers])
            right.append([F[i][k] for i in range(given.d_out)])
    solution = QQ.solve(np.array(rows, dtype=object), np.array(right, dtype=object))
    if solution is None:
        return None
    Z, ring = generic_input(d, t), map_domain(d, t)
    powers = _powers(Z, pairs, monomials)
    outputs = []
    for column in np.asarray(solution).T:
        P = [sum((c * f for c, f in zip(part, powers)), ring.ring.constant(0)) for part in np.split(column, d)]
        outputs.append(tuple(sum((p * Z[m, k] for m, p in enumerate(P)), ring.ring.constant(0)) for k in range(t)))
    return PolynomialMap(d, given.d_out, t, degree, tuple(outputs))


def _powers(Z: Array, pairs: list[tuple[int, int]], monomials: list[tuple[int, ...]]) -> list[Any]:
    """All monomials in the entries of Z Zᵀ, numbers or polynomials."""
    S = Z @ Z.T
    entries = [S[r, s] for r, s in pairs]
    return [prod((entries[k] for k in m[1:]), start=entries[m[0]]) if m else 1 for m in monomials]
