"""[I] Sections 2 and 3: the cubic expansion of one layer, its monomials and linear relations, on generic weights."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb

import numpy as np

from attngeom.equations import Variety
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.variety import place
from attngeom.exact import QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array
from attngeom.exact.multisets import pair_orbits, splits, triple_orbits, triples
from attngeom.layer.coefficients import array_shapes, count_output, count_support, expand_matrices, locate
from attngeom.papers.records import Check, Checks, Work, finds
from attngeom.papers.symbolic import GenericLayer, generic

SIZES = ((1, 1, 2), (2, 2, 2), (2, 1, 3), (3, 2, 3), (4, 1, 2))
"""d, d' and t; quick runs take the first three."""


def generic_layers(work: Work) -> Iterator[GenericLayer]:
    return (GenericLayer(*size) for size in work.choose(SIZES[:3], SIZES))


@finds("equality of polynomials in all entries of V, A and X")
def run_expansion(work: Work) -> Checks:
    """[I] Proposition 2: F_ij = Σ_n Σ_{k,l,m} V_ik A_lm x_kn x_ln x_mj, as an identity of polynomials."""
    for layer in generic_layers(work):
        V, A, X, rows = layer.V, layer.A, layer.X, range(layer.d)
        same = True
        for i, j in np.ndindex(layer.d_out, layer.t):
            indices = product(range(layer.t), rows, rows, rows)
            terms = (V[i, k] * A[l, m] * X[k, n] * X[l, n] * X[m, j] for n, k, l, m in indices)
            same &= layer.F[i, j] == sum(terms, layer.ring.zero)
        yield Check(f"{layer.label}: the identity holds in Q[V, A, X]", same)


@finds("monomials read off the polynomial with generic weights")
def run_supports(work: Work) -> Checks:
    """[I] Proposition 3: supports do not depend on the row and are disjoint for different columns."""
    for layer in generic_layers(work):
        rows = [[set(layer.coefficients(i, j)) for j in range(layer.t)] for i in range(layer.d_out)]
        disjoint = sum(map(len, rows[0])) == len(set().union(*rows[0]))
        yield Check(f"{layer.label}: equal supports in all rows", all(row == rows[0] for row in rows))
        yield Check(f"{layer.label}: disjoint supports in all columns", disjoint)


@finds("monomials counted in the polynomial with generic weights; the density as a rational function of d and t")
def run_counts(work: Work) -> Checks:
    """[I] Proposition 5: the numbers of monomials, and density O(1/t)."""
    for layer in generic_layers(work):
        rows, tokens = layer.d, layer.t
        supports = [set(layer.coefficients(0, j)) for j in range(tokens)]
        one = comb(rows + 2, 3) + (tokens - 1) * rows * comb(rows + 1, 2)
        counted = len(supports[0]), len(set().union(*supports))
        label = f"d = {rows}, t = {tokens}: {counted[0]} monomials in one output and {counted[1]} in all"
        expected = count_output(rows, tokens), count_support(rows, tokens)
        yield Check(label, counted == (one, tokens * one) == expected)
    d, t = QQ.polynomials(("d", "t")).gens()
    # Six times the monomials of one output, and six times all cubics.
    monomials = d * (d + 1) * (d + 2) + (t - 1) * 3 * d**2 * (d + 1)
    cubics = d * t * (d * t + 1) * (d * t + 2)
    yield Check(
        "in Q[d, t]: density = (d+1)(3dt − 2d + 2) / ((dt+1)(dt+2)), so t × density tends to 3(d+1)/d",
        t * monomials * (d * t + 1) * (d * t + 2) == (d + 1) * (3 * d * t - 2 * d + 2) * cubics,
    )
    yield Check(
        "3(dt + 2) − (3dt − 2d + 2) = 2d + 4 > 0, so density < 3(d+1)/(dt+1) for all d and t",
        3 * (d * t + 2) - (3 * d * t - 2 * d + 2) == 2 * d + 4,
    )


@finds("coefficients of the expanded polynomial against the two formulas, generic V and A")
def run_coefficients(work: Work) -> Checks:
    """[I] Proposition 6: the coefficient of each monomial is the sum over its distinct permutations."""
    for layer in generic_layers(work):
        single, cross = expand_matrices(layer.A, layer.V, layer.ring)
        same, seen = True, 0
        for i, j in np.ndindex(layer.d_out, layer.t):
            for exponents, coefficient in layer.coefficients(i, j).items():
                a, b, c = [divmod(place, layer.t) for place, e in enumerate(exponents) for _ in range(e)]
                located = locate((i, j), (a, b, c), layer.d)
                if located is None:
                    same = False
                    continue
                formula = single[i, located[1][-1]] if located[0] == "single" else cross[(i, *located[1][-2:])]
                same &= coefficient == formula
                seen += 1
        complete = seen == sum(int(np.prod(shape)) for shape in array_shapes(layer.d, layer.d_out, layer.t))
        yield Check(f"{layer.label}: all {seen} coefficients agree", bool(same and complete))


@finds("coefficients of generic weights, row by row")
def run_rows(work: Work) -> Checks:
    """[I] Remark 4: the coefficients of row i are those of the layer with the single row V_i."""
    for d, d_out in work.choose(((2, 2), (3, 2)), ((2, 2), (3, 2), (3, 4))):
        ring, V, A = generic(v=(d_out, d), A=(d, d))
        whole = expand_matrices(A, V, ring)
        same = all(
            ring.equal(part[i], own[0])
            for i in range(d_out)
            for part, own in zip(whole, expand_matrices(A, V[[i]], ring))
        )
        yield Check(f"d = {d}, d' = {d_out}: each row is the one-row layer of its row of V in Q[V, A]", same)


@finds("coefficients of the polynomial with generic weights, grouped by their rows")
def run_copies(work: Work) -> Checks:
    """[I] Remark 11: coefficients depend neither on the target column nor on the context column."""
    for d, t in work.choose(((2, 3),), ((1, 4), (2, 3), (2, 4), (3, 3))):
        layer = GenericLayer(d, 1, t)
        groups: dict[tuple[tuple[int, ...], ...], set[str]] = {}
        for j in range(t):
            for e, coefficient in layer.coefficients(0, j).items():
                columns = [tuple(e[column::t]) for column in range(t)]
                context = next((c for i, c in enumerate(columns) if i != j and any(c)), (0,) * d)
                groups.setdefault((columns[j], context), set()).add(str(coefficient))
        copies = all(len(values) == 1 for values in groups.values())
        size = comb(d + 2, 3) + d * comb(d + 1, 2)
        label = f"d = {d}, t = {t}: {len(groups)} families of copies, C(d+2,3) + d C(d+1,2) = {size}"
        yield Check(label, copies and len(groups) == size)


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


@finds("linear forms evaluated at the scaled coefficients of generic weights")
def run_symmetrization(work: Work) -> Checks:
    """[I] Proposition 9: the symmetrization relations hold on generic weights."""
    for d in work.choose((1, 2, 3), (1, 2, 3, 4, 5)):
        ring, v, A = generic(v=(1, d), A=(d, d))
        points = place(A, v, Variety(d, d, tokens=2), ring)
        y = np.concatenate([points.first_single[0], points.first_cross[0].ravel()])
        values = ring.matmul(ring.convert(linear_relations(d)), y[:, None])
        yield Check(f"d = {d}: all {len(values)} relations vanish in Q[v, A]", ring.is_zero(values))


@finds(
    "rank over Q of the relations; rank mod p of random points (a lower bound) meets the upper bound from them",
    primes=(WORD_PRIME,),
)
def run_linear_independence(work: Work) -> Checks:
    """[I] Corollary 10: C(d+2,3) independent relations; with the copies they are all linear relations."""
    rng = np.random.default_rng(work.seed)
    for d in work.choose((1, 2, 3), (1, 2, 3, 4, 5)):
        rank = QQ.rank(linear_relations(d))
        yield Check(f"d = {d}: rank {rank} = C(d+2, 3)", rank == comb(d + 2, 3))
    for d, a, t in work.choose(((2, 1, 2), (3, 2, 2)), ((2, 1, 2), (3, 2, 2), (3, 1, 3), (4, 2, 2))):
        model = Variety(d, a, tokens=t)
        size = model.num_coordinates
        free = rank_mod_p(coordinates(model).sample(size + 5, WORD_PRIME, rng), WORD_PRIME)
        statement = f"d = {d}, a = {a}, t = {t}: {size} coordinates satisfy exactly {size - free} linear relations"
        yield Check(f"{statement}, those of Section 3", free == d * comb(d + 1, 2), "support")
