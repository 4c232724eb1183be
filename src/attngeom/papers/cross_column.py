"""[I] Sections 5 to 5.2 and Appendix A: slices, flattenings, syzygies, and the generators of small ideals."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from attngeom.equations import Family, Points, Variety, random_points
from attngeom.equations.families.attention_rank import AttentionRank
from attngeom.equations.families.cross_rows import CrossRowRank
from attngeom.equations.families.slice_pencil import SlicePencil
from attngeom.equations.families.syzygies import DeterminantalSyzygies
from attngeom.equations.points import place
from attngeom.equations.vanishing import vanishes_at_random, vanishes_identically
from attngeom.exact import BIG_PRIME, GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.exact.polynomials import polynomial_determinant
from attngeom.papers.expansion import generic_layer, layer_output
from attngeom.papers.records import Check, Finding, Work
from attngeom.papers.symbolic import collect, support_in


def span_dimension(found: Family, seed: int) -> int:
    """The dimension of the span of a family in the ring of the ambient space, at random ambient points mod p."""
    variety, field, rng = found.variety, GF(WORD_PRIME), np.random.default_rng(seed)
    y = field.random((found.count + 5, variety.num_pairs, variety.num_targets), rng)
    return rank_mod_p(found.evaluate(Points.of_cross(y, field)), WORD_PRIME)


def run_slices(work: Work) -> Finding:
    """[I] Proposition 24: sparsity, sequence symmetry, pencils of rank at most 2 and their mixed minors."""
    checks = []
    for d, t in work.choose(((2, 3),), ((2, 3), (3, 3), (2, 4))):
        ring, V, A, X = generic_layer(d, 1, t)
        names = PolynomialDomain.of(x=(d, t)).variables
        F = layer_output(V, A, X, ring)[0, 0]
        mixed = [e for e in support_in(F, names) if sum(e[::t]) < 3]
        allowed = all(sorted(sum(e[column::t]) for column in range(1, t))[-1] == 2 and sum(e[::t]) == 1 for e in mixed)
        checks.append(Check(f"d = {d}, t = {t}: {len(mixed)} mixed monomials, each quadratic in one context", allowed))
        parts: dict[tuple[tuple[int, ...], tuple[int, ...]], set[str]] = {}
        for e, coefficient in collect(F, names).items():
            if sum(e[::t]) == 1:
                context = next(column for column in range(1, t) if any(e[column::t]))
                parts.setdefault((e[context::t], e[::t]), set()).add(str(coefficient))
        checks.append(
            Check(f"d = {d}, t = {t}: equal slices for all contexts", all(len(x) == 1 for x in parts.values()))
        )
    for d in work.choose((3,), (3, 4)):
        found = SlicePencil(Variety(d, d))
        expected = comb(d, 3) ** 2 * comb(d + 2, 3)
        checks.append(
            Check(
                f"d = {d}: {expected} mixed minors vanish in Q[v, A]",
                found.count == expected and vanishes_identically(found),
            )
        )
        size = span_dimension(found, work.seed)
        checks.append(
            Check(
                f"d = {d}: they span {size} cubics (the minors (I, J) and (J, I) agree)",
                size == found.span,
                "support",
            )
        )
    return Finding(
        "polynomial identities on generic weights; spans mod p at random ambient points",
        tuple(checks),
        primes=(WORD_PRIME,),
    )


def run_flattening_rank(work: Work) -> Finding:
    """[I] Theorem 25: the flattening has rank at most a, so its (a+1)-minors vanish."""
    rng = np.random.default_rng(work.seed)
    checks = []
    for d, a in work.choose(((2, 1), (3, 1), (3, 2)), ((2, 1), (3, 1), (3, 2), (4, 1), (4, 2))):
        found = AttentionRank(Variety(d, a))
        expected = comb(comb(d + 1, 2), a + 1) * comb(d, a + 1)
        label = f"d = {d}, a = {a}: all {expected} minors vanish in Q[v, K, Q]"
        checks.append(Check(label, found.count == expected and vanishes_identically(found)))
    for d, a in work.choose(((4, 2), (5, 3)), ((4, 3), (5, 3), (6, 4), (8, 5))):
        A = QQ.matmul(QQ.random((d, a), rng), QQ.random((a, d), rng))
        found_rank = QQ.rank(place(A, QQ.random((1, d), rng), Variety(d, a), QQ).first_cross[0])
        checks.append(Check(f"d = {d}, a = {a}: rank {found_rank} at random rational weights", found_rank == a))
    return Finding("minors on generic weights as polynomials; exact ranks over Q at random weights", tuple(checks))


def run_syzygies(work: Work) -> Finding:
    """[I] Theorem 27: at least C(D,d) − C(2d−1,d) relations among the maximal minors of the flattening."""
    checks, values = [], {}
    for d in work.choose((2, 3), (2, 3, 4)):
        expected = comb(comb(d + 1, 2), d) - comb(2 * d - 1, d)
        minors = phi_minors(d)
        monomials = sorted({m for f in minors for m in f})
        table = QQ.convert([[f.get(m, 0) for m in monomials] for f in minors])
        found_rank = QQ.rank(table)
        relations = len(minors) - found_rank
        label = f"d = {d}: {len(minors)} maximal minors of Φ(v) span {found_rank} forms: {relations} relations"
        values[str(d)] = relations
        checks.append(Check(label, relations >= expected))
        checks.append(Check(f"d = {d}: the bound is exact", relations == expected, "support"))
    found = DeterminantalSyzygies(Variety(3, 3))
    checks.append(Check(f"d = 3: the {found.count} cubics vanish in Q[v, A]", vanishes_identically(found)))
    zero, error = vanishes_at_random(DeterminantalSyzygies(Variety(4, 4)), work.seed)
    checks.append(Check("d = 4: the 175 quartics vanish at a random point mod 2⁶¹ − 1", zero))
    evidence = "minors of Φ(v) expanded over Q and their rank; the invariants on generic weights"
    return Finding(evidence, tuple(checks), {"relations by d": values}, primes=(BIG_PRIME,), error_bound=error)


def phi_minors(d: int) -> list[dict[tuple[int, ...], object]]:
    """The maximal minors of Φ(v), D×d with row (k, l) equal to (v_k e_l + v_l e_k)/2, as {monomial: coefficient}."""
    ring = PolynomialDomain.of(v=(1, d), A=(d, d))
    v = ring.matrix("v", 1, d)
    Phi = place(ring.eye(d), v, Variety(d, d), ring).first_cross[0]
    minors = []
    for rows in combinations(range(len(Phi)), d):
        f = polynomial_determinant([list(Phi[row]) for row in rows])
        minors.append({tuple(int(e) for e in m): c for m, c in f.terms()})
    return minors


def run_new_cubics(work: Work) -> Finding:
    """[I] Example 28: d = 3: 20 minors, exactly 10 relations, and cubics other than those of Proposition 24."""
    minors = phi_minors(3)
    monomials = sorted({m for f in minors for m in f})
    found_rank = QQ.rank(QQ.convert([[f.get(m, 0) for m in monomials] for f in minors]))
    variety, field, rng = Variety(3, 3), GF(WORD_PRIME), np.random.default_rng(work.seed)
    y = Points.of_cross(field.random((40, 6, 3), rng), field)
    parts = [f.evaluate(y) for f in (SlicePencil(variety), DeterminantalSyzygies(variety))]
    ranks = [rank_mod_p(part, WORD_PRIME) for part in (*parts, np.concatenate(parts, axis=1))]
    checks = (
        Check(f"{len(minors)} maximal minors of the 6×3 matrix", len(minors) == 20),
        Check(f"they span {found_rank} cubics in v: exactly {20 - found_rank} relations", found_rank == 10),
        Check(
            f"spans: pencil {ranks[0]}, syzygies {ranks[1]}, together {ranks[2]}: no common cubic",
            ranks == [10, 10, 20],
        ),
    )
    return Finding(
        "rank over Q of the expanded minors; spans at 40 random ambient points mod p", checks, primes=(WORD_PRIME,)
    )


def run_cross_rows(work: Work) -> Finding:
    """[I] Proposition 44: the coefficients of all rows are V·B(A), so their rank is at most d."""
    checks = []
    field, rng = GF(WORD_PRIME), np.random.default_rng(work.seed)
    for d, d_out in work.choose(((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 5))):
        variety = Variety(d, d, tokens=2, d_out=d_out)
        ring = PolynomialDomain.of(v=(d_out, d), A=(d, d))
        A, V = ring.matrix("A", d, d), ring.matrix("v", d_out, d)
        block = coordinate_block(place(A, V, variety, ring))
        B = coordinate_block(place(A, ring.eye(d), Variety(d, d, tokens=2, d_out=d), ring))
        checks.append(
            Check(f"d = {d}, d' = {d_out}: the block equals V·B(A) in Q[V, A]", ring.equal(block, ring.matmul(V, B)))
        )
        found = CrossRowRank(variety)
        point = random_points(variety, 1, field, rng)
        zero = field.is_zero(found.evaluate(point, 0, min(found.count, 500)))
        checks.append(Check(f"d = {d}, d' = {d_out}: the {d + 1}-minors vanish at a random point", zero))
        off = field.random((d_out, block.shape[1]), rng)
        full = rank_mod_p(off, WORD_PRIME) == d + 1
        checks.append(
            Check(f"d = {d}, d' = {d_out}: a random block has rank {d + 1}, so they are not trivial", full, "support")
        )
    return Finding("factorization on generic weights; minors mod p", tuple(checks), primes=(WORD_PRIME,))


def coordinate_block(points: Points) -> Array:
    """All coordinates of target column 0, one row for each output row."""
    y = points.first_cross
    return np.concatenate([points.first_single, y.reshape(*y.shape[:-2], -1)], axis=-1)
