"""[I] Section 5.4: slice quadrics with a common factor, and their resultants on lines."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from attngeom.equations import Variety
from attngeom.equations.families.lines import SylvesterResultants, restrict, resultant_values
from attngeom.equations.ideal.completeness import complete
from attngeom.equations.variety import cross_coordinates
from attngeom.exact import GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.exact.modular import laplace_expansion
from attngeom.exact.multisets import pair_index, pairs
from attngeom.exact.partitions import schur_dimension
from attngeom.papers.ideals import generators_of
from attngeom.papers.records import Check, Checks, Work, finds, listed
from attngeom.papers.symbolic import collect, generic, span
from attngeom.papers.veronese import generic_coordinates, veronese_quartic

FIELD = GF(WORD_PRIME)


@finds("equality of polynomials on generic weights")
def run_common_factor(work: Work) -> Checks:
    """[I] Proposition 39: the slice quadric q_m(z) equals v(z) a_m(z)."""
    for d in work.choose((2, 3), (2, 3, 4, 5)):
        ring, v, A, z = generic(v=(1, d), A=(d, d), z=(d, 1))
        y = cross_coordinates(A, v, ring)[0]
        monomials = [z[k, 0] * z[l, 0] * (1 if k == l else 2) for k, l in pairs(d)]
        quadrics = [sum((c * x for c, x in zip(y[:, m], monomials)), ring.zero) for m in range(d)]
        products = ring.matmul(v, z) * ring.matmul(A.T, z)
        yield Check(f"d = {d}: q_m(z) = v(z) a_m(z) for all m in Q[v, A, z]", quadrics == products[:, 0].tolist())


def random_line(d: int, rng: np.random.Generator) -> Array:
    """Two independent integer vectors p and r, as rows."""
    while True:
        line = rng.integers(-20, 21, size=(2, d))
        if QQ.rank(QQ.convert(line)) == 2:
            return line


def sylvester(f: Array, g: Array) -> Any:
    """The resultant of two binary quadrics (coefficients of s², su, u²) as the determinant of the Sylvester matrix."""
    zero = f[0] - f[0]
    return laplace_expansion([[*f, zero], [zero, *f], [*g, zero], [zero, *g]])


def restricted_quadrics(y: Array, line: Array, ring: PolynomialDomain) -> Array:
    """The coefficients (s², su, u²) of every slice quadric on the line z = s p + u r: shape (3, targets)."""
    forms = restrict(y[None], line[None], ring)[0, 0]
    return np.stack([forms[0], 2 * forms[1], forms[2]])


@finds("Sylvester determinants expanded on generic weights, for a random line")
def run_resultants(work: Work) -> Checks:
    """[I] Theorem 40: Res(Σ λ_m b_m, Σ μ_m b_m) vanishes identically and is quartic in the coordinates."""
    rng = np.random.default_rng(work.seed)
    for d in work.choose((2, 3), (2, 3, 4)):
        line = random_line(d, rng)
        ring, v, A, *factors = generic(v=(1, d), A=(d, d), l=(d, 1), m=(d, 1))
        b = restricted_quadrics(cross_coordinates(A, v, ring)[0], line, ring)
        resultant = sylvester(*(ring.matmul(b, factor)[:, 0] for factor in factors))
        yield Check(f"d = {d}, line {line.tolist()}: Res(λ·b, μ·b) = 0 in Q[v, A, λ, μ]", resultant == 0)
        degrees = {sum(exponents) for exponents, _ in SylvesterResultants(Variety(d, d)).polynomial(0).terms}
        yield Check(f"d = {d}: its coefficients are quartics", degrees == {4})


@finds("Sylvester determinant in formal coordinates and on generic weights")
def run_line_example(work: Work) -> Checks:
    """[I] Example 41: d = 3, the line z₃ = 0: the resultant of the first two slices is the quartic of Example 29."""
    line = np.array([[1, 0, 0], [0, 1, 0]])
    formal, Y = generic(y=(6, 3))
    b, index = restricted_quadrics(Y, line, formal), pair_index(3)
    entries = [Y[0, 0], 2 * Y[index[0, 1], 0], Y[index[1, 1], 0]]
    yield Check("b_m = y₁₁ₘ s² + 2 y₁₂ₘ s u + y₂₂ₘ u²", list(b[:, 0]) == entries)
    resultant = sylvester(b[:, 0], b[:, 1])
    statement = f"the resultant of slices 1 and 2 is a quartic with {len(list(resultant.terms()))} terms"
    yield Check(statement, resultant.total_degree() == 4)
    ring, _, _, y = generic_coordinates(3)
    yield Check("it vanishes in Q[v, A]", sylvester(*restricted_quadrics(y, line, ring).T[:2]) == 0)
    statement = "it is the Veronese quartic for K = L = {1, 2} with the opposite sign"
    yield Check(statement, resultant == -veronese_quartic(Y, 3), "support")


@finds(
    "spans of explicit quartics over Q; spans for random lines at 100 random ambient points mod p",
    primes=(WORD_PRIME,),
)
def run_lines(work: Work) -> Checks:
    """[I] Example 42: nine quartics on a line span six; finitely many lines give all 90 quartics of d = 3."""
    rng = np.random.default_rng(work.seed)
    line = random_line(3, rng)
    ring, y, *factors = generic(y=(6, 3), l=(3, 1), m=(3, 1))
    b = restricted_quadrics(y, line, ring)
    names = [f"{letter}_{i}_1" for letter in "lm" for i in (1, 2, 3)]
    coefficients = collect(sylvester(*(ring.matmul(b, factor)[:, 0] for factor in factors)), names)
    mixed = [f for e, f in coefficients.items() if sorted(e) in ([0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 2])]
    pairwise = [sylvester(b[:, i], b[:, j]) for i, j in combinations(range(3), 2)]
    spans = [span(list(coefficients.values())), span(pairwise), span([*pairwise, *mixed])]
    yield Check(
        f"on one line pairwise resultants span {spans[1]}, all coefficients {spans[0]}, nine of them {spans[2]}",
        spans == [6, 3, 6],
    )
    points = FIELD.random((100, 6, 3), rng)
    lines = np.stack([random_line(3, rng) for _ in range(16)])
    counts = [_count_quartics(points, lines[:number]) for number in range(1, 17)]
    enough = counts.index(90) + 1 if 90 in counts else None
    _, rows = generators_of(3, 3, 6)
    needed = next(row.minimal_generators for row in rows if row.degree == 4)
    yield Check(f"{enough} random lines give all {needed} minimal quartics", enough is not None and needed == 90)
    statement = f"lines 1, 2, … give spans {counts[:15]}: 15 lines are needed"
    yield Check(statement, counts[13] == 84 and enough == 15, "support")
    return {"values": {"span by number of lines": counts}}


def _count_quartics(points: Array, lines: Array) -> int:
    """The dimension of the span of the resultants on these lines, from their values at points mod p."""
    values = resultant_values(restrict(points, lines, FIELD), FIELD)
    return rank_mod_p(values.reshape(len(points), -1), WORD_PRIME)


@finds("spans mod p, which are lower bounds, meet the dimensions of the modules", primes=(WORD_PRIME,))
def run_line_count(work: Work) -> Checks:
    """[I] Remark 43: lines give enough resultants iff no quartic in the Plücker coordinates vanishes on all of them."""
    rng = np.random.default_rng(work.seed)
    for d in work.choose((3,), (3, 4)):
        needed, each = schur_dimension((4, 4), d), schur_dimension((2, 2), d)
        lines = np.stack([random_line(d, rng) for _ in range(needed)])
        p, r = lines[:, 0], lines[:, 1]
        vectors = np.stack([p[:, i] * r[:, j] - p[:, j] * r[:, i] for i, j in combinations(range(d), 2)], axis=1)
        quartics = rank_mod_p(_fourth_powers(vectors % WORD_PRIME), WORD_PRIME)
        label = f"d = {d}: fourth powers of the Plücker vectors of {needed} random lines span {quartics}"
        yield Check(f"{label} = dim S_44", quartics == needed)
        points = FIELD.random((needed * each + 5, comb(d + 1, 2), d), rng)
        for number in (needed, needed - 1) if d == 3 else ():
            size = _count_quartics(points, lines[:number])
            label = f"d = {d}: {number} lines give {size} quartics, {each} each"
            yield Check(f"{label}; {needed * each} are needed", size == number * each)
        module = {str(m): m.dimension for n, m in complete(d, d, d).modules if n == 4}
        statement = f"d = {d}: the quartic generators are {listed(module)}; resultants are S_44 ⊗ S_22"
        yield Check(statement, needed * each in module.values(), "support")


def _fourth_powers(points: Array) -> Array:
    """All monomials of degree 4 in the coordinates of points mod p, one row for each point."""
    powers = points
    for _ in range(3):
        powers = (powers[:, :, None] * points[:, None, :] % WORD_PRIME).reshape(len(points), -1)
    return powers
