"""[I] Section 5.3: Veronese coordinates among the minors of the flattening."""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from attngeom.equations import Points, Variety, find_family
from attngeom.equations.families.flattenings import veronese_rows
from attngeom.equations.families.veronese import exponents
from attngeom.equations.family import vanishes_at_random, vanishes_identically
from attngeom.equations.variety import cross_coordinates
from attngeom.exact import BIG_PRIME, GF, QQ, WORD_PRIME
from attngeom.exact.domains import Array
from attngeom.exact.modular import laplace_expansion
from attngeom.exact.multisets import pair_index
from attngeom.papers.records import Check, Checks, Work, finds
from attngeom.papers.symbolic import generic

Exponents = tuple[int, ...]


def veronese_determinant(y: Array, alpha: Exponents, K: tuple[int, ...], L: tuple[int, ...], d: int) -> Any:
    """D_{α,K,L}: row p holds ω y_{(k_f(p), k_p), l_q} with ω = 1 for equal indices, else 2."""
    index = pair_index(d)
    rows = []
    for p, f in enumerate(veronese_rows(alpha)):
        rows.append([y[index[K[f], K[p]], l] * (1 if f == p else 2) for l in L])
    return laplace_expansion(rows)


def veronese_quartic(y: Array, d: int) -> Any:
    """D₂₀ D₀₂ − D₁₁² for K = L = {1, 2}."""
    first, mixed, last = (veronese_determinant(y, alpha, (0, 1), (0, 1), d) for alpha in exponents(2, 2))
    return first * last - mixed**2


def generic_coordinates(d: int) -> tuple[Any, ...]:
    """The ring Q[v, A], generic v (1×d) and A (d×d), and their cross-column coordinates (D×d)."""
    ring, v, A = generic(v=(1, d), A=(d, d))
    return ring, v[0], A, cross_coordinates(A, v, ring)[0]


@finds("determinants expanded on generic weights", primes=(BIG_PRIME,))
def run_veronese(work: Work) -> Checks:
    """[I] Theorem 30: D_{α,K,L} = v_K^α det A_{K,L}, so the 2×2 minors of the catalecticants vanish."""
    for d, r in work.choose(((2, 2), (3, 2), (3, 3)), ((2, 2), (3, 2), (3, 3), (4, 3), (4, 4))):
        ring, v, A, y = generic_coordinates(d)
        same, count = True, 0
        subsets = list(combinations(range(d), r))
        for K, L in ((K, L) for K in subsets for L in subsets):
            minor = laplace_expansion([[A[k, l] for l in L] for k in K])
            for alpha in exponents(r, r):
                monomial = prod((v[k] ** e for k, e in zip(K, alpha)), start=ring.ring.constant(1))
                same &= veronese_determinant(y, alpha, K, L, d) == monomial * minor
                count += 1
        yield Check(f"d = {d}, r = {r}: all {count} determinants equal v_K^α det A_KL in Q[v, A]", same)
    error = 0.0
    for d, r in work.choose(((4, 3),), ((4, 3), (5, 3), (4, 4))):
        family = find_family(Variety(d, d), f"veronese-catalecticant-{r}")
        zero, error = vanishes_at_random(family, work.seed)
        label = f"d = {d}, r = {r}: catalecticant minors of degree {family.degree} vanish at a random point mod 2⁶¹ − 1"
        yield Check(label, zero)
    return {"error_bound": error}


@finds("determinants expanded on generic weights and in formal coordinates")
def run_quartic(work: Work) -> Checks:
    """[I] Example 31: the three matrices of r = 2 and their catalecticant give the quartic of Example 29."""
    alphas = exponents(2, 2)
    rows = [veronese_rows(alpha) for alpha in alphas]
    statement = "f is constant on a pair for α = (2,0), (0,2) and the identity for (1,1)"
    yield Check(statement, rows == [(0, 0), (0, 1), (1, 1)])
    _, (v, w), A, y = generic_coordinates(2)
    first, mixed, last = (veronese_determinant(y, alpha, (0, 1), (0, 1), 2) for alpha in alphas)
    determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    yield Check("D₂₀ = v₁² det A", first == v**2 * determinant)
    yield Check("D₁₁ = v₁v₂ det A", mixed == v * w * determinant)
    yield Check("D₀₂ = v₂² det A", last == w**2 * determinant)
    _, formal = generic(y=(3, 2))
    (p, q), (r, s), (t, u) = formal
    by_hand = (2 * p * s - 2 * q * r) * (2 * r * u - 2 * s * t) - (p * u - q * t) ** 2
    same = veronese_quartic(formal, 2) == by_hand
    yield Check("the determinant of the 2×2 catalecticant is the quartic of Example 29", same)


def _veronese_family(kind: str, work: Work) -> Checks:
    family = find_family(Variety(3, 3), f"veronese-{kind}-2")
    yield Check(f"d = 3, r = 2: all {family.count} minors vanish in Q[v, A]", vanishes_identically(family))
    error = 0.0
    for d, r in work.choose(((4, 2), (4, 3)), ((4, 2), (4, 3), (5, 3))):
        other = find_family(Variety(d, d), f"veronese-{kind}-{r}")
        zero, error = vanishes_at_random(other, work.seed)
        label = f"d = {d}, r = {r}: {min(other.count, 2000)} of {other.count} minors of degree {other.degree} vanish"
        yield Check(f"{label} at a random point mod 2⁶¹ − 1", zero)
    field = GF(WORD_PRIME)
    off = family.evaluate(Points.of_cross(field.random((6, 3), np.random.default_rng(work.seed)), field))
    yield Check("they do not vanish at a random point off the variety", not field.is_zero(off), "support")
    return {"error_bound": error}


FAMILIES = finds("polynomial identities on generic weights; random points mod 2⁶¹ − 1", primes=(BIG_PRIME, WORD_PRIME))


@FAMILIES
def run_cross_target(work: Work) -> Checks:
    """[I] Corollary 32: 2×2 minors of two columns of Veronese coordinates."""
    return _veronese_family("cross-target", work)


@FAMILIES
def run_block(work: Work) -> Checks:
    """[I] Corollary 33: 2×2 minors of the block Veronese matrix."""
    return _veronese_family("block", work)


@finds("minors with the first row and column of the block matrices on generic weights")
def run_splits(work: Work) -> Checks:
    """[I] Remark 34: for every split r = i + j the matrix (D_{β+γ,L}), |β| = i, |γ| = j, has rank one."""
    for d, r in work.choose(((3, 2), (3, 3)), ((3, 2), (3, 3), (4, 3), (4, 4))):
        _, _, _, y = generic_coordinates(d)
        K, targets = tuple(range(r)), list(combinations(range(d), r))[:2]
        D = {(alpha, L): veronese_determinant(y, alpha, K, L, d) for alpha in exponents(r, r) for L in targets}
        for i in range(1, r):
            columns = [(g, L) for g in exponents(r, r - i) for L in targets]
            rows = [[D[_add(b, g), L] for g, L in columns] for b in exponents(r, i)]
            first, rest = rows[0], rows[1:]
            zero = all(first[0] * row[k] == row[0] * first[k] for row in rest for k in range(len(first)))
            label = f"d = {d}, r = {r} = {i} + {r - i}: a {len(rows)}×{len(columns)} matrix of rank one in Q[v, A]"
            yield Check(label, zero and first[0] != 0)


def _add(a: Exponents, b: Exponents) -> Exponents:
    return tuple(x + y for x, y in zip(a, b))


def formal_minors(r: int, targets: int, kind: str) -> list[dict[tuple[int, int], int]]:
    """The minors of Corollary 32 or 33 for one K as quadrics in formal coordinates D_{α,L}: {pair of places: sign}."""
    alphas = exponents(r, r)
    place_of = {(alpha, l): i for i, (alpha, l) in enumerate((a, l) for a in alphas for l in range(targets))}
    if kind == "cross-target":
        lines = combinations(range(targets), 2)
        minors = [((a, l), (b, m), (a, m), (b, l)) for l, m in lines for a, b in combinations(alphas, 2)]
    else:
        columns = [(g, l) for g in exponents(r, r - 1) for l in range(targets)]
        minors = [
            ((_add(b, g), l), (_add(c, h), m), (_add(b, h), m), (_add(c, g), l))
            for b, c in combinations(exponents(r, 1), 2)
            for (g, l), (h, m) in combinations(columns, 2)
        ]
    expanded = []
    for w, x, y, z in minors:
        terms: dict[tuple[int, int], int] = {}
        for sign, left, right in ((1, w, x), (-1, y, z)):
            i, j = sorted((place_of[left], place_of[right]))
            terms[i, j] = terms.get((i, j), 0) + sign
        expanded.append({key: value for key, value in terms.items() if value})
    return [terms for terms in expanded if terms]


@finds("quadrics in formal Veronese coordinates over Q")
def run_comparison(work: Work) -> Checks:
    """[I] Remark 35: as lists of minors neither family contains the other; as spaces Corollary 33 contains 32."""
    values = {}
    for r, targets in work.choose(((2, 2), (2, 3), (3, 2)), ((2, 2), (2, 3), (3, 2), (3, 3))):
        lists = [formal_minors(r, targets, kind) for kind in ("cross-target", "block")]
        keys = sorted({key for minors in lists for terms in minors for key in terms})
        tables = [np.array([[terms.get(key, 0) for key in keys] for terms in minors]) for minors in lists]
        up_to_sign = [set(map(tuple, np.concatenate([table, -table]).tolist())) for table in tables]
        missing = [any(tuple(row) not in up_to_sign[1 - i] for row in tables[i].tolist()) for i in (0, 1)]
        ranks = [QQ.rank(QQ.convert(table)) for table in (*tables, np.concatenate(tables))]
        label = f"r = {r}, {targets} target sets"
        values[label] = ranks
        yield Check(f"{label}: each list has a minor that the other lacks", all(missing))
        spans = f"spans {ranks[0]} and {ranks[1]}, together {ranks[2]}: as spaces, Corollary 33 contains 32"
        yield Check(f"{label}: {spans}", ranks[2] == ranks[1] > ranks[0], "support")
    note = "r = 2: D₂₀D'₀₂ − D₀₂D'₂₀ = (D₂₀D'₀₂ − D₁₁D'₁₁) − (D₀₂D'₂₀ − D₁₁D'₁₁), two minors of Corollary 33"
    return {"values": {"spans (32, 33, both)": values, "example": note}}
