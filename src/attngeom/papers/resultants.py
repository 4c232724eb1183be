"""[I] Section 5.4: slice quadrics with a common factor, and their resultants on lines."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from attngeom.equations import Variety
from attngeom.equations.families.resultants import SylvesterResultants, resultant_values
from attngeom.equations.lines import restrict
from attngeom.equations.points import generic_point, place
from attngeom.exact import GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.exact.multisets import pair_index, pairs
from attngeom.exact.polynomials import polynomial_determinant
from attngeom.papers.ideals import generators_of
from attngeom.papers.records import Check, Finding, Work
from attngeom.papers.symbolic import collect
from attngeom.papers.veronese import veronese_determinant


def run_common_factor(work: Work) -> Finding:
    """[I] Proposition 39: the slice quadric q_m(z) equals v(z) a_m(z)."""
    checks = []
    for d in work.choose((2, 3), (2, 3, 4, 5)):
        ring = PolynomialDomain.of(v=(1, d), A=(d, d), z=(1, d))
        v, A, z = ring.matrix("v", 1, d), ring.matrix("A", d, d), ring.matrix("z", 1, d).T
        y = place(A, v, Variety(d, d), ring).first_cross[0]
        same = True
        for m in range(d):
            quadric = ring.zero
            for s, (k, l) in enumerate(pairs(d)):
                quadric += y[s, m] * z[k, 0] * z[l, 0] * (1 if k == l else 2)
            same &= quadric == ring.matmul(v, z)[0, 0] * ring.matmul(A[:, [m]].T, z)[0, 0]
        checks.append(Check(f"d = {d}: q_m(z) = v(z) a_m(z) for all m in Q[v, A, z]", same))
    return Finding("equality of polynomials on generic weights", tuple(checks))


def random_line(d: int, rng: np.random.Generator) -> Array:
    """Two independent integer vectors p and r, as rows."""
    while True:
        line = rng.integers(-20, 21, size=(2, d))
        if QQ.rank(QQ.convert(line)) == 2:
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
        degrees = {sum(exponents) for exponents, _ in found.polynomial(0).terms}
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
    y = point.first_cross[0, 0]
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
    return QQ.rank(QQ.convert([[part.get(key, 0) for key in keys] for part in terms])) if keys else 0
