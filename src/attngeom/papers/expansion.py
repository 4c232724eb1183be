"""[I] Sections 2 and 3: the cubic expansion of one layer, its monomials and linear relations, on generic weights."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np

from attngeom.equations import Variety
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.points import place
from attngeom.exact import QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.exact.multisets import pair_orbits, splits, triple_orbits, triples
from attngeom.exact.polynomials import polynomial_ring
from attngeom.layer.coefficients import array_shapes, count_output, count_support, expand_matrices, locate
from attngeom.papers.records import Check, Finding, Work
from attngeom.papers.symbolic import collect, support_in

QUICK_SIZES = ((1, 1, 2), (2, 2, 2), (2, 1, 3))
FULL_SIZES = (*QUICK_SIZES, (3, 2, 3), (4, 1, 2))


def generic_layer(d: int, d_out: int, t: int) -> tuple[PolynomialDomain, Array, Array, Array]:
    """The ring Q[v, A, x] with generic V (d_out×d), A (d×d) and X (d×t)."""
    ring = PolynomialDomain.of(v=(d_out, d), A=(d, d), x=(d, t))
    return ring, ring.matrix("v", d_out, d), ring.matrix("A", d, d), ring.matrix("x", d, t)


def layer_output(V: Array, A: Array, X: Array, ring: PolynomialDomain) -> Array:
    """V X Xᵀ A X over the ring."""
    return ring.matmul(V, ring.matmul(X, ring.matmul(X.T, ring.matmul(A, X))))


def run_expansion(work: Work) -> Finding:
    """[I] Proposition 2: F_ij = Σ_n Σ_{k,l,m} V_ik A_lm x_kn x_ln x_mj, as an identity of polynomials."""
    sizes = work.choose(QUICK_SIZES, FULL_SIZES)
    checks = []
    for d, d_out, t in sizes:
        ring, V, A, X = generic_layer(d, d_out, t)
        F = layer_output(V, A, X, ring)
        same = True
        for i, j in np.ndindex(d_out, t):
            total = ring.convert([0])[0]
            for n, k, l, m in product(range(t), range(d), range(d), range(d)):
                total += V[i, k] * A[l, m] * X[k, n] * X[l, n] * X[m, j]
            same &= F[i, j] == total
        checks.append(Check(f"d = {d}, d' = {d_out}, t = {t}: the identity holds in Q[V, A, X]", same))
    return Finding("equality of polynomials in all entries of V, A and X", tuple(checks))


def run_supports(work: Work) -> Finding:
    """[I] Proposition 3: supports do not depend on the row and are disjoint for different columns."""
    checks = []
    for d, d_out, t in work.choose(QUICK_SIZES, FULL_SIZES):
        ring, V, A, X = generic_layer(d, d_out, t)
        F = layer_output(V, A, X, ring)
        names = PolynomialDomain.of(x=(d, t)).variables
        supports = [[support_in(F[i, j], names) for j in range(t)] for i in range(d_out)]
        label = f"d = {d}, d' = {d_out}, t = {t}"
        checks.append(Check(f"{label}: equal supports in all rows", all(row == supports[0] for row in supports)))
        disjoint = sum(len(s) for s in supports[0]) == len(frozenset().union(*supports[0]))
        checks.append(Check(f"{label}: disjoint supports in all columns", disjoint))
    return Finding("monomials read off the polynomial with generic weights", tuple(checks))


def run_counts(work: Work) -> Finding:
    """[I] Proposition 5: the numbers of monomials, and density O(1/t)."""
    checks = []
    for d, d_out, t in work.choose(QUICK_SIZES, FULL_SIZES):
        ring, V, A, X = generic_layer(d, d_out, t)
        F = layer_output(V, A, X, ring)
        supports = [support_in(F[0, j], PolynomialDomain.of(x=(d, t)).variables) for j in range(t)]
        one = comb(d + 2, 3) + (t - 1) * d * comb(d + 1, 2)
        counted = len(supports[0]), len(frozenset().union(*supports))
        label = f"d = {d}, t = {t}: {counted[0]} monomials in one output and {counted[1]} in all"
        checks.append(Check(label, counted == (one, t * one) == (count_output(d, t), count_support(d, t))))
    checks += [
        Check(
            "in Q[d, t]: density = (d+1)(3dt − 2d + 2) / ((dt+1)(dt+2)), so t × density tends to 3(d+1)/d",
            density_identity(),
        ),
        Check("3(dt + 2) − (3dt − 2d + 2) = 2d + 4 > 0, so density < 3(d+1)/(dt+1) for all d and t", density_bound()),
    ]
    return Finding(
        "monomials counted in the polynomial with generic weights; the density as a rational function of d and t",
        tuple(checks),
    )


def density_identity() -> bool:
    """t (C(d+2,3) + (t−1) d C(d+1,2)) (dt+1)(dt+2) = (d+1)(3dt − 2d + 2) C(dt+2,3), as polynomials in d and t.

    >>> density_identity()
    True
    """
    d, t = polynomial_ring(("d", "t")).gens()
    one = d * (d + 1) * (d + 2) + (t - 1) * 3 * d**2 * (d + 1)
    cubics = d * t * (d * t + 1) * (d * t + 2)
    return bool(t * one * (d * t + 1) * (d * t + 2) == (d + 1) * (3 * d * t - 2 * d + 2) * cubics)


def density_bound() -> bool:
    """3(dt + 2) − (3dt − 2d + 2) is the positive polynomial 2d + 4."""
    d, t = polynomial_ring(("d", "t")).gens()
    return bool(3 * (d * t + 2) - (3 * d * t - 2 * d + 2) == 2 * d + 4)


def run_coefficients(work: Work) -> Finding:
    """[I] Proposition 6: the coefficient of each monomial is the sum over its distinct permutations."""
    checks = []
    for d, d_out, t in work.choose(QUICK_SIZES, FULL_SIZES):
        ring, V, A, X = generic_layer(d, d_out, t)
        F = layer_output(V, A, X, ring)
        single, cross = expand_matrices(A, V, ring)
        names = PolynomialDomain.of(x=(d, t)).variables
        same, seen = True, 0
        for i, j in np.ndindex(d_out, t):
            for exponents, coefficient in collect(F[i, j], names).items():
                a, b, c = [divmod(place, t) for place, e in enumerate(exponents) for _ in range(e)]
                found = locate((i, j), (a, b, c), d)
                if found is None:
                    same = False
                    continue
                formula = single[i, found[1][-1]] if found[0] == "single" else cross[(i, *found[1][-2:])]
                same &= coefficient == formula
                seen += 1
        shapes = array_shapes(d, d_out, t)
        complete = seen == int(np.prod(shapes[0])) + int(np.prod(shapes[1]))
        checks.append(Check(f"d = {d}, d' = {d_out}, t = {t}: all {seen} coefficients agree", bool(same and complete)))
    return Finding("coefficients of the expanded polynomial against the two formulas, generic V and A", tuple(checks))


def linear_relations(d: int) -> Array:
    """The symmetrization relations as rows over Q: columns y_R, then y_{S,m}; |orb R| y_R − Σ |orb S| y_{S,m} = 0.

    >>> linear_relations(2).shape
    (4, 10)
    """
    number, pairs = len(triples(d)), d * (d + 1) // 2
    table = np.zeros((number, number + pairs * d), dtype=np.int64)
    table[np.arange(number), np.arange(number)] = triple_orbits(d)
    rows, parts, ends = splits(d)
    np.add.at(table, (rows, number + parts * d + ends), -pair_orbits(d)[parts])
    return QQ.convert(table)


def run_symmetrization(work: Work) -> Finding:
    """[I] Proposition 9: the symmetrization relations hold on generic weights."""
    checks = []
    for d in work.choose((1, 2, 3), (1, 2, 3, 4, 5)):
        ring = PolynomialDomain.of(v=(1, d), A=(d, d))
        points = place(ring.matrix("A", d, d), ring.matrix("v", 1, d), Variety(d, d, tokens=2), ring)
        y = np.concatenate([points.first_single[0], points.first_cross[0].ravel()])
        values = ring.matmul(ring.convert(linear_relations(d)), y[:, None])
        checks.append(Check(f"d = {d}: all {len(values)} relations vanish in Q[v, A]", ring.is_zero(values)))
    return Finding("linear forms evaluated at the scaled coefficients of generic weights", tuple(checks))


def run_linear_independence(work: Work) -> Finding:
    """[I] Corollary 10: C(d+2,3) independent relations; with the copies they are all linear relations."""
    rng = np.random.default_rng(work.seed)
    checks = []
    for d in work.choose((1, 2, 3), (1, 2, 3, 4, 5)):
        found = QQ.rank(linear_relations(d))
        checks.append(Check(f"d = {d}: rank {found} = C(d+2, 3)", found == comb(d + 2, 3)))
    for d, a, t in work.choose(((2, 1, 2), (3, 2, 2)), ((2, 1, 2), (3, 2, 2), (3, 1, 3), (4, 2, 2))):
        model = Variety(d, a, tokens=t)
        size = model.num_coordinates
        points = coordinates(model).sample(size + 5, WORD_PRIME, rng)
        free = rank_mod_p(points, WORD_PRIME)
        expected = d * comb(d + 1, 2)
        statement = f"d = {d}, a = {a}, t = {t}: {size} coordinates satisfy exactly {size - free} linear relations"
        checks.append(Check(f"{statement}, those of Section 3", free == expected, "support"))
    evidence = (
        "rank over Q of the relations; rank mod p of random points (a lower bound) meets the upper bound from them"
    )
    return Finding(evidence, tuple(checks), primes=(WORD_PRIME,))
