"""[I] Section 5.3: Veronese coordinates among the minors of the flattening."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from attngeom.equations import Points, Variety, family
from attngeom.equations.families.syzygies import veronese_rows
from attngeom.equations.families.veronese import exponents
from attngeom.equations.points import place
from attngeom.equations.vanishing import vanishes_at_random, vanishes_identically
from attngeom.exact import BIG_PRIME, GF, QQ, WORD_PRIME
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.exact.multisets import pair_index
from attngeom.exact.polynomials import polynomial_determinant
from attngeom.papers.records import Check, Finding, Work


def veronese_determinant(y: Array, alpha: tuple[int, ...], K: tuple[int, ...], L: tuple[int, ...], d: int) -> Any:
    """D_{α,K,L}: row p holds ω y_{(k_f(p), k_p), l_q} with ω = 1 for equal indices, else 2."""
    index = pair_index(d)
    rows = []
    for p, f in enumerate(veronese_rows(alpha)):
        rows.append([y[index[K[f], K[p]], l] * (1 if f == p else 2) for l in L])
    return polynomial_determinant(rows)


def run_veronese(work: Work) -> Finding:
    """[I] Theorem 30: D_{α,K,L} = v_K^α det A_{K,L}, so the 2×2 minors of the catalecticants vanish."""
    checks = []
    for d, r in work.choose(((2, 2), (3, 2), (3, 3)), ((2, 2), (3, 2), (3, 3), (4, 3), (4, 4))):
        ring = PolynomialDomain.of(v=(1, d), A=(d, d))
        v, A = ring.matrix("v", 1, d), ring.matrix("A", d, d)
        y = place(A, v, Variety(d, d), ring).first_cross[0]
        same, count = True, 0
        for K in combinations(range(d), r):
            for L in combinations(range(d), r):
                minor = polynomial_determinant([[A[k, l] for l in L] for k in K])
                for alpha in exponents(r, r):
                    monomial = ring.convert([1])[0]
                    for k, e in zip(K, alpha):
                        monomial *= v[0, k] ** e
                    same &= veronese_determinant(y, alpha, K, L, d) == monomial * minor
                    count += 1
        checks.append(Check(f"d = {d}, r = {r}: all {count} determinants equal v_K^α det A_KL in Q[v, A]", same))
    error = 0.0
    for d, r in work.choose(((4, 3),), ((4, 3), (5, 3), (4, 4))):
        found = family(Variety(d, d), f"veronese-catalecticant-{r}")
        zero, error = vanishes_at_random(found, work.seed)
        label = f"d = {d}, r = {r}: catalecticant minors of degree {found.degree} vanish at a random point mod 2⁶¹ − 1"
        checks.append(Check(label, zero))
    return Finding("determinants expanded on generic weights", tuple(checks), primes=(BIG_PRIME,), error_bound=error)


def run_quartic(work: Work) -> Finding:
    """[I] Example 31: the three matrices of r = 2 and their catalecticant give the quartic of Example 29."""
    ring = PolynomialDomain.of(v=(1, 2), A=(2, 2))
    v, A = ring.matrix("v", 1, 2)[0], ring.matrix("A", 2, 2)
    y = place(A, v[None, :], Variety(2, 2), ring).first_cross[0]
    determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    D = {alpha: veronese_determinant(y, alpha, (0, 1), (0, 1), 2) for alpha in exponents(2, 2)}
    formal = PolynomialDomain.of(y=(3, 2))
    Y = formal.matrix("y", 3, 2)
    F = {alpha: veronese_determinant(Y, alpha, (0, 1), (0, 1), 2) for alpha in exponents(2, 2)}
    quartic = F[2, 0] * F[0, 2] - F[1, 1] ** 2
    by_hand = (Y[0, 0] * 2 * Y[1, 1] - Y[0, 1] * 2 * Y[1, 0]) * (2 * Y[1, 0] * Y[2, 1] - 2 * Y[1, 1] * Y[2, 0]) - (
        Y[0, 0] * Y[2, 1] - Y[0, 1] * Y[2, 0]
    ) ** 2
    checks = (
        Check(
            "f is constant on a pair for α = (2,0), (0,2) and the identity for (1,1)",
            [veronese_rows(a) for a in exponents(2, 2)] == [(0, 0), (0, 1), (1, 1)],
        ),
        Check("D₂₀ = v₁² det A", D[2, 0] == v[0] ** 2 * determinant),
        Check("D₁₁ = v₁v₂ det A", D[1, 1] == v[0] * v[1] * determinant),
        Check("D₀₂ = v₂² det A", D[0, 2] == v[1] ** 2 * determinant),
        Check("the determinant of the 2×2 catalecticant is the quartic of Example 29", quartic == by_hand),
    )
    return Finding("determinants expanded on generic weights and in formal coordinates", checks)


def run_cross_target(work: Work) -> Finding:
    """[I] Corollary 32: 2×2 minors of two columns of Veronese coordinates."""
    return _veronese_family("cross-target", work)


def run_block(work: Work) -> Finding:
    """[I] Corollary 33: 2×2 minors of the block Veronese matrix."""
    return _veronese_family("block", work)


def _veronese_family(kind: str, work: Work) -> Finding:
    checks, error = [], 0.0
    found = family(Variety(3, 3), f"veronese-{kind}-2")
    checks.append(Check(f"d = 3, r = 2: all {found.count} minors vanish in Q[v, A]", vanishes_identically(found)))
    for d, r in work.choose(((4, 2), (4, 3)), ((4, 2), (4, 3), (5, 3))):
        found = family(Variety(d, d), f"veronese-{kind}-{r}")
        zero, error = vanishes_at_random(found, work.seed)
        label = f"d = {d}, r = {r}: {min(found.count, 2000)} of {found.count} minors of degree {found.degree} vanish"
        checks.append(Check(f"{label} at a random point mod 2⁶¹ − 1", zero))
    field, rng = GF(WORD_PRIME), np.random.default_rng(work.seed)
    found = family(Variety(3, 3), f"veronese-{kind}-2")
    off = found.evaluate(Points.of_cross(field.random((6, 3), rng), field))
    checks.append(Check("they do not vanish at a random point off the variety", not field.is_zero(off), "support"))
    return Finding(
        "polynomial identities on generic weights; random points mod 2⁶¹ − 1",
        tuple(checks),
        primes=(BIG_PRIME, WORD_PRIME),
        error_bound=error,
    )


def formal_minors(r: int, targets: int, kind: str) -> list[dict[tuple[int, int], int]]:
    """The minors of Corollary 32 or 33 for one K as quadrics in formal coordinates D_{α,L}: {pair of places: sign}."""
    alphas = exponents(r, r)
    place_of = {(alpha, l): i for i, (alpha, l) in enumerate((a, l) for a in alphas for l in range(targets))}
    minors = []
    if kind == "cross-target":
        for l, m in combinations(range(targets), 2):
            for a, b in combinations(alphas, 2):
                minors.append([(a, l), (b, m), (a, m), (b, l)])
    else:
        units, columns = exponents(r, 1), [(g, l) for g in exponents(r, r - 1) for l in range(targets)]
        for b, c in combinations(units, 2):
            for (g, l), (h, m) in combinations(columns, 2):
                minors.append([(_sum(b, g), l), (_sum(c, h), m), (_sum(b, h), m), (_sum(c, g), l)])
    found = []
    for w, x, y, z in minors:
        terms: dict[tuple[int, int], int] = {}
        for sign, left, right in ((1, w, x), (-1, y, z)):
            i, j = sorted((place_of[left], place_of[right]))
            terms[i, j] = terms.get((i, j), 0) + sign
        found.append({key: value for key, value in terms.items() if value})
    return [terms for terms in found if terms]


def _sum(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + z for x, z in zip(a, b))


def run_comparison(work: Work) -> Finding:
    """[I] Remark 35: as lists of minors neither family contains the other; as spaces Corollary 33 contains 32."""
    checks, values = [], {}
    for r, targets in work.choose(((2, 2), (2, 3), (3, 2)), ((2, 2), (2, 3), (3, 2), (3, 3))):
        lists = [formal_minors(r, targets, kind) for kind in ("cross-target", "block")]
        keys = sorted({key for minors in lists for terms in minors for key in terms})
        tables = [np.array([[terms.get(key, 0) for key in keys] for terms in minors]) for minors in lists]
        sets = [
            {tuple(row * sign) for row in table.tolist() for row, sign in ((np.array(row), 1), (np.array(row), -1))}
            for table in tables
        ]
        missing = [any(tuple(row) not in sets[1 - i] for row in table.tolist()) for i, table in enumerate(tables)]
        ranks = [QQ.rank(QQ.convert(table)) for table in (*tables, np.concatenate(tables))]
        values[f"r = {r}, {targets} target sets"] = ranks
        label = f"r = {r}, {targets} target sets"
        checks.append(Check(f"{label}: each list has a minor that the other lacks", all(missing)))
        statement = (
            f"{label}: spans {ranks[0]} and {ranks[1]}, together {ranks[2]}: as spaces, Corollary 33 contains 32"
        )
        checks.append(Check(statement, ranks[2] == ranks[1] > ranks[0], "support"))
    note = "r = 2: D₂₀D'₀₂ − D₀₂D'₂₀ = (D₂₀D'₀₂ − D₁₁D'₁₁) − (D₀₂D'₂₀ − D₁₁D'₁₁), two minors of Corollary 33"
    found = {"spans (32, 33, both)": values, "example": note}
    return Finding("quadrics in formal Veronese coordinates over Q", tuple(checks), found)
