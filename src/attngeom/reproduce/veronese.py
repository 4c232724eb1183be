"""[I] Sections 5.3 and 5.4: Veronese coordinates among the minors, and resultants of the slice quadrics on lines."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from attngeom.coefficients.labels import pair_index, pairs
from attngeom.exact import BIG_PRIME, GF, QQ, WORD_PRIME, rank, rank_mod_p
from attngeom.exact.domains import Array
from attngeom.exact.polynomials import polynomial_determinant
from attngeom.invariants import Points, Variety, family
from attngeom.invariants.lines import restrict
from attngeom.invariants.resultants import SylvesterResultants, resultant_values
from attngeom.invariants.syzygies import veronese_rows
from attngeom.invariants.variety import place
from attngeom.invariants.veronese import exponents
from attngeom.reproduce.cross_column import generic_point, vanishes_at_random, vanishes_identically
from attngeom.reproduce.ideals import generators_of
from attngeom.reproduce.records import Check, Finding, Work
from attngeom.reproduce.symbolic import PolynomialDomain, collect


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
                    monomial = ring.array([1])[0]
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
        ranks = [rank(QQ.array(table), QQ) for table in (*tables, np.concatenate(tables))]
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


def run_common_factor(work: Work) -> Finding:
    """[I] Proposition 39: the slice quadric q_m(z) equals v(z) a_m(z)."""
    checks = []
    for d in work.choose((2, 3), (2, 3, 4, 5)):
        ring = PolynomialDomain.of(v=(1, d), A=(d, d), z=(1, d))
        v, A, z = ring.matrix("v", 1, d), ring.matrix("A", d, d), ring.matrix("z", 1, d)[0]
        y = place(A, v, Variety(d, d), ring).first_cross[0]
        same = True
        for m in range(d):
            quadric = ring.array([0])[0]
            for s, (k, l) in enumerate(pairs(d)):
                quadric += y[s, m] * z[k] * z[l] * (1 if k == l else 2)
            same &= quadric == ring.matmul(v, z)[0] * ring.matmul(A[:, m], z)
        checks.append(Check(f"d = {d}: q_m(z) = v(z) a_m(z) for all m in Q[v, A, z]", same))
    return Finding("equality of polynomials on generic weights", tuple(checks))


def random_line(d: int, rng: np.random.Generator) -> Array:
    """Two independent integer vectors p and r, as rows."""
    while True:
        line = rng.integers(-20, 21, size=(2, d))
        if rank(QQ.array(line), QQ) == 2:
            return line


def sylvester(f: Array, g: Array) -> Any:
    """The resultant of two binary quadrics (coefficients of s², su, u²) as the determinant of the Sylvester matrix."""
    zero = f[0] - f[0]
    return polynomial_determinant(
        [[f[0], f[1], f[2], zero], [zero, f[0], f[1], f[2]], [g[0], g[1], g[2], zero], [zero, g[0], g[1], g[2]]]
    )


def restricted_quadrics(y: Array, line: Array, ring: PolynomialDomain) -> Array:
    """The coefficients (s², su, u²) of every slice quadric on the line z = s p + u r: shape (3, targets)."""
    forms = restrict(y[None], line[None], ring)[0, 0]
    return np.stack([forms[0], 2 * forms[1], forms[2]])


def run_resultants(work: Work) -> Finding:
    """[I] Theorem 40: Res(Σ λ_m b_m, Σ μ_m b_m) vanishes identically and is quartic in the coordinates."""
    rng = np.random.default_rng(work.seed)
    checks = []
    for d in work.choose((2, 3), (2, 3, 4)):
        line = random_line(d, rng)
        ring = PolynomialDomain.of(v=(1, d), A=(d, d), l=(1, d), m=(1, d))
        point = place(ring.matrix("A", d, d), ring.matrix("v", 1, d), Variety(d, d), ring)
        b = restricted_quadrics(point.first_cross[0], line, ring)
        combined = [ring.matmul(b, ring.matrix(letter, 1, d).T)[:, 0] for letter in "lm"]
        label = f"d = {d}, line {line.tolist()}: Res(λ·b, μ·b) = 0 in Q[v, A, λ, μ]"
        checks.append(Check(label, sylvester(*combined) == 0))
        found = SylvesterResultants(Variety(d, d))
        degrees = {len(monomial) for monomial in found.terms(0)}
        checks.append(Check(f"d = {d}: its coefficients are quartics", degrees == {4}))
    return Finding("Sylvester determinants expanded on generic weights, for a random line", tuple(checks))


def run_line_example(work: Work) -> Finding:
    """[I] Example 41: d = 3, the line z₃ = 0: the resultant of the first two slices is the quartic of Example 29."""
    line = np.array([[1, 0, 0], [0, 1, 0]])
    formal = PolynomialDomain.of(y=(6, 3))
    Y = formal.matrix("y", 6, 3)
    b = restricted_quadrics(Y, line, formal)
    resultant = sylvester(b[:, 0], b[:, 1])
    quartic = (
        veronese_determinant(Y, (2, 0), (0, 1), (0, 1), 3) * veronese_determinant(Y, (0, 2), (0, 1), (0, 1), 3)
        - veronese_determinant(Y, (1, 1), (0, 1), (0, 1), 3) ** 2
    )
    point, ring = generic_point(Variety(3, 3))
    y = point.first_cross[0]
    on_variety = sylvester(*[restricted_quadrics(y, line, ring)[:, m] for m in (0, 1)])
    index = pair_index(3)
    checks = (
        Check(
            "b_m = y₁₁ₘ s² + 2 y₁₂ₘ s u + y₂₂ₘ u²",
            [b[0, 0], b[1, 0], b[2, 0]] == [Y[0, 0], 2 * Y[index[0, 1], 0], Y[index[1, 1], 0]],
        ),
        Check(
            f"the resultant of slices 1 and 2 is a quartic with {len(list(resultant.terms()))} terms",
            resultant.total_degree() == 4,
        ),
        Check("it vanishes in Q[v, A]", on_variety == 0),
        Check("it is the Veronese quartic for K = L = {1, 2} with the opposite sign", resultant == -quartic, "support"),
    )
    return Finding("Sylvester determinant in formal coordinates and on generic weights", checks)


def run_lines(work: Work) -> Finding:
    """[I] Example 42: nine quartics on a line span six; finitely many lines give all 90 quartics of d = 3."""
    field, rng = GF(WORD_PRIME), np.random.default_rng(work.seed)
    line = random_line(3, rng)
    formal = PolynomialDomain.of(y=(6, 3), l=(1, 3), m=(1, 3))
    b = restricted_quadrics(formal.matrix("y", 6, 3), line, formal)
    combined = [formal.matmul(b, formal.matrix(letter, 1, 3).T)[:, 0] for letter in "lm"]
    names = [f"{letter}_1_{i + 1}" for letter in "lm" for i in range(3)]
    coefficients = collect(sylvester(*combined), names)
    mixed = [
        f
        for e, f in coefficients.items()
        if sorted(map(int, e)) == [0, 0, 1, 1, 1, 1] or sorted(e) == [0, 0, 0, 1, 1, 2]
    ]
    pairwise = [sylvester(b[:, i], b[:, j]) for i, j in combinations(range(3), 2)]
    spans = [_span(list(coefficients.values())), _span(pairwise), _span([*pairwise, *mixed])]
    points = field.random((100, 6, 3), rng)
    counts, random_lines = [], np.stack([random_line(3, rng) for _ in range(16)])
    for number in range(1, 17):
        lines = random_lines[:number]
        values = resultant_values(restrict(points, lines, field), field).reshape(100, -1)
        counts.append(rank_mod_p(values, WORD_PRIME))
    enough = counts.index(90) + 1 if 90 in counts else None
    _, rows = generators_of(3, 3, 6)
    quartics = next(row for row in rows if row.degree == 4)
    checks = (
        Check(
            f"on one line pairwise resultants span {spans[1]}, all coefficients {spans[0]}, nine of them {spans[2]}",
            spans == [6, 3, 6],
        ),
        Check(
            f"{enough} random lines give all {quartics.minimal_generators} minimal quartics",
            enough is not None and quartics.minimal_generators == 90,
        ),
        Check(
            f"lines 1, 2, … give spans {counts[:15]}: 15 lines are needed", counts[13] == 84 and enough == 15, "support"
        ),
    )
    evidence = "spans of explicit quartics over Q; spans for random lines at 100 random ambient points mod p"
    return Finding(evidence, checks, {"span by number of lines": counts}, primes=(WORD_PRIME,))


def _span(polynomials: list[Any]) -> int:
    """The dimension of the span of polynomials over Q."""
    terms = [{tuple(int(e) for e in m): c for m, c in f.terms()} for f in polynomials]
    keys = sorted({key for part in terms for key in part})
    return rank(QQ.array([[part.get(key, 0) for key in keys] for part in terms]), QQ) if keys else 0
