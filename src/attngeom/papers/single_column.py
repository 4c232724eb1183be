"""[I] Section 4: the single-column cubics v(x) xᵀA x and their Lie flattening."""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np

from attngeom.equations import Variety
from attngeom.equations.families.single_column import LieFlattening, LowRankSlice, lie_matrix, lie_rank
from attngeom.equations.ideal import implicitize
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.points import Points, place
from attngeom.exact import GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, Domain, PolynomialDomain
from attngeom.exact.multisets import pairs, triple_orbits, triples
from attngeom.layer.coefficients import expand_matrices, symmetrize
from attngeom.papers.records import Check, Finding, Work


def cubic_point(coefficients: Array, d: int, domain: Domain) -> Points:
    """A cubic form as a point of the single-column coordinates; ``coefficients`` are those of its monomials."""
    inverse = domain.convert([f"1/{n}" for n in triple_orbits(d)])
    return Points(domain.reduce(coefficients * inverse)[None, None, :], None, domain)


def lie_flattening(point: Points, d: int) -> Array:
    """The matrix of E ↦ Σ E_uv x_u ∂F/∂x_v on sl_d, of shape C(d+2,3) × (d²−1)."""
    matrix: Array = LieFlattening(Variety(d, d, tokens=1)).coordinates(point)[0]
    return matrix


def multiply_cubic(v: Array, q: Array, d: int, domain: Domain) -> Array:
    """The coefficients of v(x) q(x), q given by its coefficients at x_k x_l, k ≤ l."""
    table = domain.reduce(q[:, None] * v[None, :])
    return symmetrize(table, d, domain)


def product_of_forms(forms: Array, d: int, domain: Domain) -> Array:
    """The coefficients of the product of three linear forms, given as rows."""
    k, l = np.array(pairs(d)).T
    off_diagonal = (k != l).astype(np.int64)
    straight, swapped = forms[0][k] * forms[1][l], forms[0][l] * forms[1][k]
    return multiply_cubic(forms[2], domain.reduce(straight + swapped * off_diagonal), d, domain)


def random_quadric(d: int, size: int, domain: Domain, rng: np.random.Generator) -> Array:
    """The coefficients of a random quadric of rank at most ``size``."""
    L = domain.random((size, d), rng)
    B = domain.matmul(L.T, domain.reduce(L * domain.random((size, 1), rng)))
    k, l = np.array(pairs(d)).T
    return domain.reduce(B[k, l] * (1 + (k != l).astype(np.int64)))


def run_split_kernel(work: Work) -> Finding:
    """[I] Lemma 16: a split cubic has a trace-zero operator that kills it, so M_F drops rank."""
    field, rng = GF(WORD_PRIME), np.random.default_rng(work.seed)
    checks = []
    for d in work.choose((3, 4), (3, 4, 5, 6)):
        ring = PolynomialDomain.of(q=(1, comb(d + 1, 2)), x=(1, d))
        x = ring.matrix("x", 1, d)[0]
        quadric = sum(
            (c * x[k] * x[l] for c, (k, l) in zip(ring.matrix("q", 1, comb(d + 1, 2))[0], pairs(d))),
            ring.convert([0])[0],
        )
        F = x[0] * quadric
        slope = [quadric.derivative(f"x_1_{i + 1}") for i in range(d)]
        killed = slope[2] * F.derivative("x_1_2") - slope[1] * F.derivative("x_1_3")
        trace = slope[2].derivative("x_1_2") - slope[1].derivative("x_1_3")
        statement = f"d = {d}: (∂₃q ∂₂ − ∂₂q ∂₃)(x₁ q) = 0 for the generic quadric q, and its trace is 0"
        checks.append(Check(statement, killed == 0 and trace == 0))
        ranks = []
        for size in range(d + 1):
            cubic = multiply_cubic(field.random((d,), rng), random_quadric(d, size, field, rng), d, field)
            ranks.append(rank_mod_p(lie_flattening(cubic_point(cubic, d, field), d), WORD_PRIME))
        checks.append(
            Check(f"d = {d}: ranks {ranks} for q of rank 0 … {d}, all below {d * d - 1}", max(ranks) < d * d - 1)
        )
        generic = field.random((comb(d + 2, 3),), rng)
        full = rank_mod_p(lie_flattening(cubic_point(generic, d, field), d), WORD_PRIME)
        checks.append(Check(f"d = {d}: a cubic that does not split has rank {d * d - 1}", full == d * d - 1, "support"))
    cubic = multiply_cubic(QQ.convert([1, 0]), QQ.convert([0, 1, 1]), 2, QQ)
    full = QQ.rank(lie_flattening(cubic_point(cubic, 2, QQ), 2))
    checks.append(Check("d ≥ 3 is needed: x₁(x₁x₂ + x₂²) has rank 3 = d² − 1 for d = 2", full == 3, "support"))
    evidence = "the annihilating operator on the generic quadric; ranks at random cubics mod p"
    return Finding(evidence, tuple(checks), primes=(WORD_PRIME,))


def run_low_rank_slice(work: Work) -> Finding:
    """[I] Proposition 17: 3N = diag(v)(A+Aᵀ) + diag(A) vᵀ, rank N ≤ 2a+1, and F = v(x) xᵀA x."""
    rng = np.random.default_rng(work.seed)
    checks = []
    for d in work.choose((3,), (3, 4, 5)):
        ring = PolynomialDomain.of(v=(1, d), A=(d, d), x=(d, 1))
        v, A, x = ring.matrix("v", 1, d), ring.matrix("A", d, d), ring.matrix("x", d, 1)
        variety = Variety(d, 1, tokens=1)
        N = LowRankSlice(variety).coordinates(place(A, v, variety, ring))[0]
        right = v.T * (A + A.T) + np.diagonal(A)[:, None] * v
        checks.append(Check(f"d = {d}: 3N = diag(v)(A + Aᵀ) + diag(A) vᵀ in Q[v, A]", ring.equal(3 * N, right)))
        single, _ = expand_matrices(A, v, ring)
        cubic = sum((c * x[k, 0] * x[l, 0] * x[m, 0] for c, (k, l, m) in zip(single[0], triples(d))), ring.zero)
        split = ring.matmul(v, x)[0, 0] * ring.matmul(x.T, ring.matmul(A, x))[0, 0]
        checks.append(Check(f"d = {d}: F = v(x) · xᵀA x in Q[v, A, x]", cubic == split))
    for d, a in work.choose(((4, 1), (6, 2)), ((3, 1), (4, 1), (5, 1), (6, 2), (7, 2), (8, 3))):
        variety = Variety(d, a, tokens=1)
        A = QQ.matmul(QQ.random((d, a), rng), QQ.random((a, d), rng))
        N = LowRankSlice(variety).coordinates(place(A, QQ.random((1, d), rng), variety, QQ))[0]
        found = QQ.rank(N)
        label = f"d = {d}, a = {a}: rank N = {found} ≤ 2a+1 at random rational weights"
        checks.append(Check(label, found == min(d, 2 * a + 1)))
        lie = lie_flattening(place(A, QQ.random((1, d), rng), Variety(d, a, tokens=1), QQ), d) if d <= 4 else None
        if lie is not None:
            checks.append(Check(f"d = {d}, a = {a}: rank M_F < {d * d - 1}", QQ.rank(lie) < d * d - 1))
    return Finding("identities on generic weights; exact ranks over Q at random weights", tuple(checks))


OCTIC_SERIES = {0: 1, 8: -35, 9: 70, 10: -45, 11: 8, 12: 1}
"""The Hilbert series of the ring of d = 3, t = 1 times (1 − T)^10 (docs/reference/papers.md, I-example-19)."""


@cache
def run_octics(work: Work) -> Finding:
    """[I] Example 19: d = 3, t = 1: codimension 2, 35 octics generate; they span the 45 maximal minors."""
    field, rng = GF(WORD_PRIME), np.random.default_rng(work.seed)
    degree = work.choose(8, 10)
    summary = implicitize(Variety(3, 3, tokens=1), degree, seed=work.seed)
    counts = {str(row.degree): row.minimal_generators for row in summary.degrees if row.minimal_generators}
    family = LieFlattening(Variety(3, 3, tokens=1))
    cubics = np.stack([field.random((1, 1, 10), rng) for _ in range(60)])
    values = family.evaluate(Points(cubics, None, field))
    span = rank_mod_p(values, WORD_PRIME)
    point = coordinates(Variety(3, 3, tokens=1)).sample(1, WORD_PRIME, rng)[0]
    tangent = rank_mod_p(split_tangent(3, field, rng), WORD_PRIME)
    vanish = family.evaluate(Points(point[None, None, :], None, field))
    checks = (
        Check(f"the variety has dimension {tangent} in 10 coordinates: codimension 2", tangent == 8),
        Check(f"minimal generators by degree up to {degree}: {counts}", counts == {"8": 35}),
        Check(
            f"the {family.count} maximal minors of the 10×8 matrix span {span} octics", (family.count, span) == (45, 35)
        ),
        Check("they vanish on the variety, so they are all its octics", field.is_zero(vanish)),
        Check(
            f"the Hilbert function up to degree {degree} is that of the proof for all degrees",
            all(row.hilbert_function == _octic_function(row.degree) for row in summary.degrees),
        ),
    )
    evidence = (
        f"ideal computed degree by degree mod two primes up to degree {degree}; span of the minors at 60 random cubics"
    )
    return Finding(
        evidence, checks, {"minimal generators by degree": counts, "span of the minors": span}, primes=summary.primes
    )


def _octic_function(n: int) -> int:
    return sum(c * comb(n - e + 9, 9) for e, c in OCTIC_SERIES.items() if n >= e)


def split_tangent(d: int, domain: Domain, rng: np.random.Generator) -> Array:
    """Tangent vectors v̇ q + v q̇ of the split cubics at a random one, as rows."""
    v, q = domain.random((d,), rng), domain.random((comb(d + 1, 2),), rng)
    rows = [multiply_cubic(e, q, d, domain) for e in domain.eye(d)]
    rows += [multiply_cubic(v, e, d, domain) for e in domain.eye(comb(d + 1, 2))]
    return np.stack(rows)


def run_three_forms(work: Work) -> Finding:
    """[I] Example 21: d = 4, a = 1, t = 1: rank 10, local codimension 10 of the 11-minors, and det N = 0."""
    rng = np.random.default_rng(work.seed)
    d = 4
    forms = QQ.convert(rng.integers(1, 30, size=(3, d)))
    cubic = product_of_forms(forms, d, QQ)
    point = cubic_point(cubic, d, QQ)
    M = lie_flattening(point, d)
    right, left = QQ.nullspace(M), QQ.nullspace(M.T)
    # The 11-minors at a point of rank 10 have differential Ḟ ↦ left · M_Ḟ · rightᵀ.
    places, factors = lie_matrix(d)
    rows = []
    for coordinate in range(comb(d + 2, 3)):
        derivative = QQ.convert(np.where(places == coordinate, factors, 0))
        rows.append(QQ.matmul(left, QQ.matmul(derivative, right.T)).ravel())
    jacobian = QQ.rank(np.stack(rows))
    tangent = [
        product_of_forms(np.stack([e if i == j else forms[j] for j in range(3)]), d, QQ)
        for i in range(3)
        for e in QQ.eye(d)
    ]
    dimension = QQ.rank(np.stack(tangent))
    simple = product_of_forms(QQ.eye(4)[:3], d, QQ)
    simple_rank = QQ.rank(lie_flattening(cubic_point(simple, d, QQ), d))
    generic = rank_mod_p(
        lie_flattening(cubic_point(GF(WORD_PRIME).random((20,), rng), d, GF(WORD_PRIME)), d), WORD_PRIME
    )
    N = LowRankSlice(Variety(d, 1, tokens=1)).coordinates(point)[0]
    low = Variety(d, 1, tokens=1)
    quartics = [row.minimal_generators for row in implicitize(low, 4, seed=work.seed).degrees]
    checks = (
        Check(f"the cone of products of three forms has dimension {dimension}", dimension == 10),
        Check(f"a general cubic has rank {generic}", generic == 15),
        Check(
            f"x₁x₂x₃ has rank {simple_rank}: its stabilizer in sl₄ has dimension {15 - simple_rank}", simple_rank == 10
        ),
        Check(f"a random product of three forms has rank {QQ.rank(M)}", QQ.rank(M) == 10),
        Check(f"the 11-minors have Jacobian rank {jacobian} there, the codimension", jacobian == 10),
        Check(f"det N = 0: rank N = {QQ.rank(N)}", QQ.rank(N) == 3),
        Check(
            f"det N is one of {quartics[3]} independent quartics in the ideal, none of which the 11-minors can give",
            quartics == [0, 0, 0, 1085],
            "support",
        ),
    )
    evidence = (
        "exact ranks over Q at a random product of three rational linear forms; the ideal to degree 4 mod two primes"
    )
    return Finding(evidence, checks, {"quartics": quartics[3]}, primes=(WORD_PRIME,))


def run_rank_one_cubic(work: Work) -> Finding:
    """[I] Corollary 22: for a = 1 the cubic is v(x) k(x) q(x)."""
    checks = []
    for d in work.choose((2, 3), (2, 3, 4, 5)):
        ring = PolynomialDomain.of(v=(1, d), k=(1, d), q=(1, d))
        v, k, q = (ring.matrix(letter, 1, d) for letter in "vkq")
        single, _ = expand_matrices(ring.matmul(k.T, q), v, ring)
        forms = np.concatenate([v, k, q])
        checks.append(
            Check(
                f"d = {d}: coefficients of v(x) k(x) q(x) in Q[v, k, q]",
                ring.equal(single[0], product_of_forms(forms, d, ring)),
            )
        )
    return Finding("equality of coefficients on generic weights of rank one", tuple(checks))


def run_rank_drop(work: Work) -> Finding:
    """[I] Remark 23: the Lie flattening drops further for products of three forms, and det N is a further equation."""
    field, rng = GF(WORD_PRIME), np.random.default_rng(work.seed)
    checks, values = [], {}
    for d in work.choose((3, 4), (3, 4, 5, 6)):
        split = multiply_cubic(field.random((d,), rng), field.random((comb(d + 1, 2),), rng), d, field)
        three = product_of_forms(field.random((3, d), rng), d, field)
        ranks = [rank_mod_p(lie_flattening(cubic_point(c, d, field), d), WORD_PRIME) for c in (split, three)]
        values[str(d)] = ranks
        label = f"d = {d}: rank {ranks[0]} for linear × quadratic, {ranks[1]} for three linear forms"
        checks.append(Check(label, ranks[1] < ranks[0] < d * d - 1))
        checks.append(
            Check(
                f"d = {d}: they agree with the orbit dimensions", ranks == [lie_rank(d, d), lie_rank(d, 1)], "support"
            )
        )
    variety = Variety(4, 1, tokens=1)
    point = cubic_point(product_of_forms(field.random((3, 4), rng), 4, field), 4, field)
    size = rank_mod_p(LowRankSlice(variety).coordinates(point)[0], WORD_PRIME)
    checks.append(
        Check(f"d = 4, a = 1: the 4×4 matrix N has rank {size}, so det N = 0 is a further equation", size == 3)
    )
    return Finding(
        "ranks mod p at random cubics, equal to the dimensions of orbits",
        tuple(checks),
        {"ranks by d": values},
        primes=(WORD_PRIME,),
    )
