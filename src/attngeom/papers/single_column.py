"""[I] Section 4: the single-column cubics v(x) xᵀA x and their Lie flattening."""

from __future__ import annotations

from functools import cache
from math import comb
from typing import Any

import numpy as np

from attngeom.equations import Variety
from attngeom.equations.families.slices import LieFlattening, LowRankSlice, lie_matrix, lie_rank
from attngeom.equations.ideal import implicitize
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.variety import Points, place
from attngeom.exact import GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pairs, triple_orbits, triples
from attngeom.layer.coefficients import expand_matrices, multiply_forms, symmetrize
from attngeom.papers.ideals import generators_by_degree
from attngeom.papers.records import Check, Checks, Work, finds, listed
from attngeom.papers.symbolic import generic

FIELD = GF(WORD_PRIME)


def lie_flattening(cubic: Array, domain: Domain) -> Array:
    """The matrix of E ↦ Σ E_uv x_u ∂F/∂x_v on sl_d, C(d+2,3) × (d²−1); ``cubic`` are the coefficients of F."""
    d = next(d for d in range(1, len(cubic) + 1) if comb(d + 2, 3) == len(cubic))
    matrix: Array = LieFlattening(Variety(d, d, tokens=1)).coordinates(_point(cubic, d, domain))[0]
    return matrix


def _point(cubic: Array, d: int, domain: Domain) -> Points:
    """A cubic form as a point of the single-column coordinates."""
    inverse = domain.convert([f"1/{n}" for n in triple_orbits(d)])
    return Points(domain.reduce(cubic * inverse)[None, None, :], None, domain)


def slice_matrix(point: Points, d: int) -> Array:
    """The matrix N = (y_kkl)."""
    matrix: Array = LowRankSlice(Variety(d, 1, tokens=1)).coordinates(point)[0]
    return matrix


def multiply_cubic(v: Array, q: Array, domain: Domain) -> Array:
    """The coefficients of v(x) q(x), q given by its coefficients at x_k x_l, k ≤ l."""
    return symmetrize(domain.reduce(q[:, None] * v[None, :]), len(v), domain)


def product_of_forms(forms: Array, domain: Domain) -> Array:
    """The coefficients of the product of three linear forms, given as rows."""
    return multiply_cubic(forms[2], multiply_forms(forms[0], forms[1], domain), domain)


def as_polynomial(cubic: Array, x: Array, zero: Any) -> Any:
    """Σ c_klm x_k x_l x_m."""
    return sum((c * x[k] * x[l] * x[m] for c, (k, l, m) in zip(cubic, triples(len(x)))), zero)


def random_quadric(d: int, size: int, domain: Domain, rng: np.random.Generator) -> Array:
    """The coefficients of a random quadric of rank at most ``size``."""
    L = domain.random((size, d), rng)
    B = domain.matmul(L.T, domain.reduce(L * domain.random((size, 1), rng)))
    k, l = np.array(pairs(d)).T
    return domain.reduce(B[k, l] * (1 + (k != l).astype(np.int64)))


@finds("the annihilating operator on the generic quadric; ranks at random cubics mod p", primes=(WORD_PRIME,))
def run_split_kernel(work: Work) -> Checks:
    """[I] Lemma 16: a split cubic has a trace-zero operator that kills it, so M_F drops rank."""
    rng = np.random.default_rng(work.seed)
    for d in work.choose((3, 4), (3, 4, 5, 6)):
        ring, q, x = generic(q=(1, comb(d + 1, 2)), x=(1, d))
        quadric = sum((c * x[0, k] * x[0, l] for c, (k, l) in zip(q[0], pairs(d))), ring.zero)
        F = x[0, 0] * quadric
        second, third = quadric.derivative("x_1_2"), quadric.derivative("x_1_3")
        killed = third * F.derivative("x_1_2") - second * F.derivative("x_1_3")
        trace = third.derivative("x_1_2") - second.derivative("x_1_3")
        statement = f"d = {d}: (∂₃q ∂₂ − ∂₂q ∂₃)(x₁ q) = 0 for the generic quadric q, and its trace is 0"
        yield Check(statement, killed == 0 and trace == 0)
        ranks, most = [], d * d - 1
        for size in range(d + 1):
            cubic = multiply_cubic(FIELD.random((d,), rng), random_quadric(d, size, FIELD, rng), FIELD)
            ranks.append(rank_mod_p(lie_flattening(cubic, FIELD), WORD_PRIME))
        yield Check(f"d = {d}: ranks {ranks} for q of rank 0 … {d}, all below {most}", max(ranks) < most)
        full = rank_mod_p(lie_flattening(FIELD.random((comb(d + 2, 3),), rng), FIELD), WORD_PRIME)
        yield Check(f"d = {d}: a cubic that does not split has rank {most}", full == most, "support")
    cubic = multiply_cubic(QQ.convert([1, 0]), QQ.convert([0, 1, 1]), QQ)
    full = QQ.rank(lie_flattening(cubic, QQ))
    yield Check("d ≥ 3 is needed: x₁(x₁x₂ + x₂²) has rank 3 = d² − 1 for d = 2", full == 3, "support")


@finds("identities on generic weights; exact ranks over Q at random weights")
def run_low_rank_slice(work: Work) -> Checks:
    """[I] Proposition 17: 3N = diag(v)(A+Aᵀ) + diag(A) vᵀ, rank N ≤ 2a+1, and F = v(x) xᵀA x."""
    rng = np.random.default_rng(work.seed)
    for d in work.choose((3,), (3, 4, 5)):
        ring, v, A, x = generic(v=(1, d), A=(d, d), x=(d, 1))
        N = slice_matrix(place(A, v, Variety(d, 1, tokens=1), ring), d)
        right = v.T * (A + A.T) + np.diagonal(A)[:, None] * v
        yield Check(f"d = {d}: 3N = diag(v)(A + Aᵀ) + diag(A) vᵀ in Q[v, A]", ring.equal(3 * N, right))
        cubic = as_polynomial(expand_matrices(A, v, ring)[0][0], x[:, 0], ring.zero)
        split = ring.matmul(v, x)[0, 0] * ring.matmul(x.T, ring.matmul(A, x))[0, 0]
        yield Check(f"d = {d}: F = v(x) · xᵀA x in Q[v, A, x]", cubic == split)
    for d, a in work.choose(((4, 1), (6, 2)), ((3, 1), (4, 1), (5, 1), (6, 2), (7, 2), (8, 3))):
        A = QQ.matmul(QQ.random((d, a), rng), QQ.random((a, d), rng))
        measured = QQ.rank(slice_matrix(place(A, QQ.random((1, d), rng), Variety(d, a, tokens=1), QQ), d))
        label = f"d = {d}, a = {a}: rank N = {measured} ≤ 2a+1 at random rational weights"
        yield Check(label, measured == min(d, 2 * a + 1))
        if d <= 4:
            single, _ = expand_matrices(A, QQ.random((1, d), rng), QQ)
            rank = QQ.rank(lie_flattening(single[0], QQ))
            yield Check(f"d = {d}, a = {a}: rank M_F < {d * d - 1}", rank < d * d - 1)


@finds("exact ranks over Q; the operators applied to the polynomial")
def run_stabilizers(work: Work) -> Checks:
    """[I] Remarks 18 and 20: the kernel of the Lie flattening is the stabilizer in sl_d, trivial for generic cubics."""
    rng = np.random.default_rng(work.seed)
    for d in work.choose((2, 3), (2, 3, 4, 5)):
        full = QQ.rank(lie_flattening(QQ.convert([int(k == l == m) for k, l, m in triples(d)]), QQ))
        yield Check(f"d = {d}: Σ x_i³ has rank {full} = d² − 1: the generic stabilizer is zero", full == d * d - 1)
        if d < 3:
            continue
        cubic = product_of_forms(QQ.random((3, d), rng), QQ)
        M = lie_flattening(cubic, QQ)
        kernel, expected = QQ.nullspace(M), 2 + d * (d - 3) - (1 if d > 3 else 0)
        measured = f"a stabilizer of dimension {len(kernel)} in sl_d, orbit {QQ.rank(M)}"
        shape = (comb(d + 2, 3), d * d - 1)
        yield Check(f"d = {d}: a product of three forms has {measured}", len(kernel) == expected and M.shape == shape)
        killed = all(_kills(operator, cubic, d) for operator in kernel)
        yield Check(f"d = {d}: every vector of the kernel, as Σ E_uv x_u ∂_v, kills the cubic", killed)


def _kills(operator: Array, cubic: Array, d: int) -> bool:
    """Whether Σ E_uv x_u ∂_v F = 0, E given in the basis of sl_d of the Lie flattening: E_uv, then E_ii − E_i+1,i+1."""
    ring, (x,) = generic(x=(1, d))
    F = as_polynomial(cubic, x, ring.zero)
    E = QQ.zeros((d, d))
    off_diagonal = [(u, v) for u in range(d) for v in range(d) if u != v]
    for c, (u, v) in zip(operator, off_diagonal):
        E[u, v] += c
    for i, c in enumerate(operator[len(off_diagonal) :]):
        E[i, i] += c
        E[i + 1, i + 1] -= c
    moved = (E[u, v] * x[u] * F.derivative(f"x_1_{v + 1}") for u, v in np.ndindex(d, d))
    return bool(sum(moved, ring.zero) == 0)


OCTIC_SERIES = {0: 1, 8: -35, 9: 70, 10: -45, 11: 8, 12: 1}
"""The Hilbert series of the ring of d = 3, t = 1 times (1 − T)^10 (docs/reference/papers.md, I-example-19)."""


@cache
@finds("")
def run_octics(work: Work) -> Checks:
    """[I] Example 19: d = 3, t = 1: codimension 2, 35 octics generate; they span the 45 maximal minors."""
    rng, degree, variety = np.random.default_rng(work.seed), work.choose(8, 10), Variety(3, 3, tokens=1)
    summary = implicitize(variety, degree, seed=work.seed)
    family, counts = LieFlattening(variety), generators_by_degree(summary)
    cubics = np.stack([FIELD.random((1, 1, 10), rng) for _ in range(60)])
    span = rank_mod_p(family.evaluate(Points(cubics, None, FIELD)), WORD_PRIME)
    point = coordinates(variety).sample(1, WORD_PRIME, rng)
    vanish = family.evaluate(Points(point[None], None, FIELD))
    v, q = FIELD.random((3,), rng), FIELD.random((6,), rng)
    tangents = [multiply_cubic(e, q, FIELD) for e in FIELD.eye(3)]
    tangents += [multiply_cubic(v, e, FIELD) for e in FIELD.eye(6)]
    tangent = rank_mod_p(np.stack(tangents), WORD_PRIME)
    yield Check(f"the variety has dimension {tangent} in 10 coordinates: codimension 2", tangent == 8)
    yield Check(f"minimal generators by degree up to {degree}: {listed(counts)}", counts == {"8": 35})
    statement = f"the {family.count} maximal minors of the 10×8 matrix span {span} octics"
    yield Check(statement, (family.count, span) == (45, 35))
    yield Check("they vanish on the variety, so they are all its octics", FIELD.is_zero(vanish))
    statement = f"the Hilbert function up to degree {degree} is that of the proof for all degrees"
    yield Check(statement, all(row.hilbert_function == _octic_function(row.degree) for row in summary.degrees))
    ideal = f"ideal computed degree by degree mod two primes up to degree {degree}"
    values = {"minimal generators by degree": counts, "span of the minors": span}
    return {"evidence": f"{ideal}; span of the minors at 60 random cubics", "values": values, "primes": summary.primes}


def _octic_function(n: int) -> int:
    return sum(c * comb(n - e + 9, 9) for e, c in OCTIC_SERIES.items() if n >= e)


@finds(
    "exact ranks over Q at a random product of three rational linear forms; the ideal to degree 4 mod two primes",
    primes=(WORD_PRIME,),
)
def run_three_forms(work: Work) -> Checks:
    """[I] Example 21: d = 4, a = 1, t = 1: rank 10, local codimension 10 of the 11-minors, and det N = 0."""
    rng, d = np.random.default_rng(work.seed), 4
    forms = QQ.convert(rng.integers(1, 30, size=(3, d)))
    tangents = [
        product_of_forms(np.stack([e if i == j else forms[j] for j in range(3)]), QQ)
        for i in range(3)
        for e in QQ.eye(d)
    ]
    dimension = QQ.rank(np.stack(tangents))
    yield Check(f"the cone of products of three forms has dimension {dimension}", dimension == 10)
    generic_rank = rank_mod_p(lie_flattening(FIELD.random((20,), rng), FIELD), WORD_PRIME)
    yield Check(f"a general cubic has rank {generic_rank}", generic_rank == 15)
    simple = QQ.rank(lie_flattening(product_of_forms(QQ.eye(d)[:3], QQ), QQ))
    yield Check(f"x₁x₂x₃ has rank {simple}: its stabilizer in sl₄ has dimension {15 - simple}", simple == 10)
    cubic = product_of_forms(forms, QQ)
    M = lie_flattening(cubic, QQ)
    yield Check(f"a random product of three forms has rank {QQ.rank(M)}", QQ.rank(M) == 10)
    # The 11-minors at a point of rank 10 have differential Ḟ ↦ left · M_Ḟ · rightᵀ.
    right, left = QQ.nullspace(M), QQ.nullspace(M.T)
    places, factors = lie_matrix(d)
    slopes = [QQ.convert(np.where(places == coordinate, factors, 0)) for coordinate in range(len(cubic))]
    jacobian = QQ.rank(np.stack([QQ.matmul(left, QQ.matmul(slope, right.T)).ravel() for slope in slopes]))
    yield Check(f"the 11-minors have Jacobian rank {jacobian} there, the codimension", jacobian == 10)
    rank = QQ.rank(slice_matrix(_point(cubic, d, QQ), d))
    yield Check(f"det N = 0: rank N = {rank}", rank == 3)
    ideal = implicitize(Variety(d, 1, tokens=1), 4, seed=work.seed)
    quartics = [row.minimal_generators for row in ideal.degrees]
    statement = f"det N is one of {quartics[3]} independent quartics in the ideal, none of which the 11-minors can give"
    yield Check(statement, quartics == [0, 0, 0, 1085], "support")
    return {"values": {"quartics": quartics[3]}}


@finds("equality of coefficients on generic weights of rank one")
def run_rank_one_cubic(work: Work) -> Checks:
    """[I] Corollary 22: for a = 1 the cubic is v(x) k(x) q(x)."""
    for d in work.choose((2, 3), (2, 3, 4, 5)):
        ring, v, k, q = generic(v=(1, d), k=(1, d), q=(1, d))
        single, _ = expand_matrices(ring.matmul(k.T, q), v, ring)
        same = ring.equal(single[0], product_of_forms(np.concatenate([v, k, q]), ring))
        yield Check(f"d = {d}: coefficients of v(x) k(x) q(x) in Q[v, k, q]", same)


@finds("ranks mod p at random cubics, equal to the dimensions of orbits", primes=(WORD_PRIME,))
def run_rank_drop(work: Work) -> Checks:
    """[I] Remark 23: the Lie flattening drops further for products of three forms, and det N is a further equation."""
    rng = np.random.default_rng(work.seed)
    values = {}
    for d in work.choose((3, 4), (3, 4, 5, 6)):
        split = multiply_cubic(FIELD.random((d,), rng), FIELD.random((comb(d + 1, 2),), rng), FIELD)
        three = product_of_forms(FIELD.random((3, d), rng), FIELD)
        ranks = [rank_mod_p(lie_flattening(cubic, FIELD), WORD_PRIME) for cubic in (split, three)]
        values[str(d)] = ranks
        label = f"d = {d}: rank {ranks[0]} for linear × quadratic, {ranks[1]} for three linear forms"
        yield Check(label, ranks[1] < ranks[0] < d * d - 1)
        expected = [lie_rank(d, d), lie_rank(d, 1)]
        yield Check(f"d = {d}: they agree with the orbit dimensions", ranks == expected, "support")
    cubic = product_of_forms(FIELD.random((3, 4), rng), FIELD)
    size = rank_mod_p(slice_matrix(_point(cubic, 4, FIELD), 4), WORD_PRIME)
    yield Check(f"d = 4, a = 1: the 4×4 matrix N has rank {size}, so det N = 0 is a further equation", size == 3)
    return {"values": {"ranks by d": values}}
