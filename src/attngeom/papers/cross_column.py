"""[I] Sections 5 to 5.2 and Appendix A: slices, flattenings and syzygies of the cross-column coordinates."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from attngeom.equations import Family, Points, Variety, random_points
from attngeom.equations.families.cross_rows import CrossRowRank
from attngeom.equations.families.flattenings import AttentionRank, DeterminantalSyzygies
from attngeom.equations.families.slices import SlicePencil
from attngeom.equations.family import vanishes_at_random, vanishes_identically
from attngeom.equations.variety import cross_coordinates, place
from attngeom.exact import BIG_PRIME, GF, QQ, WORD_PRIME, rank_mod_p
from attngeom.exact.domains import Array
from attngeom.exact.modular import laplace_expansion
from attngeom.papers.records import Check, Checks, Work, finds
from attngeom.papers.symbolic import GenericLayer, generic, span

FIELD = GF(WORD_PRIME)


def span_dimension(family: Family, seed: int) -> int:
    """The dimension of the span of a family in the ring of the ambient space, at random ambient points mod p."""
    shape = (family.count + 5, family.variety.num_pairs, family.variety.num_targets)
    points = Points.of_cross(FIELD.random(shape, np.random.default_rng(seed)), FIELD)
    return rank_mod_p(family.evaluate(points), WORD_PRIME)


@finds("polynomial identities on generic weights; spans mod p at random ambient points", primes=(WORD_PRIME,))
def run_slices(work: Work) -> Checks:
    """[I] Proposition 24: sparsity, sequence symmetry, pencils of rank at most 2 and their mixed minors."""
    for d, t in work.choose(((2, 3),), ((2, 3), (3, 3), (2, 4))):
        mixed = {e: c for e, c in GenericLayer(d, 1, t).coefficients(0, 0).items() if sum(e[::t]) < 3}
        allowed = all(max(sum(e[column::t]) for column in range(1, t)) == 2 and sum(e[::t]) == 1 for e in mixed)
        yield Check(f"d = {d}, t = {t}: {len(mixed)} mixed monomials, each quadratic in one context", allowed)
        parts: dict[tuple[tuple[int, ...], tuple[int, ...]], set[str]] = {}
        for e, coefficient in mixed.items():
            context = next(column for column in range(1, t) if any(e[column::t]))
            parts.setdefault((e[context::t], e[::t]), set()).add(str(coefficient))
        yield Check(f"d = {d}, t = {t}: equal slices for all contexts", all(len(x) == 1 for x in parts.values()))
    for d in work.choose((3,), (3, 4)):
        family, expected = SlicePencil(Variety(d, d)), comb(d, 3) ** 2 * comb(d + 2, 3)
        vanish = family.count == expected and vanishes_identically(family)
        yield Check(f"d = {d}: {expected} mixed minors vanish in Q[v, A]", vanish)
        size = span_dimension(family, work.seed)
        statement = f"d = {d}: they span {size} cubics (the minors (I, J) and (J, I) agree)"
        yield Check(statement, size == family.span, "support")


@finds("minors on generic weights as polynomials; exact ranks over Q at random weights")
def run_flattening_rank(work: Work) -> Checks:
    """[I] Theorem 25: the flattening has rank at most a, so its (a+1)-minors vanish."""
    rng = np.random.default_rng(work.seed)
    for d, a in work.choose(((2, 1), (3, 1), (3, 2)), ((2, 1), (3, 1), (3, 2), (4, 1), (4, 2))):
        family, expected = AttentionRank(Variety(d, a)), comb(comb(d + 1, 2), a + 1) * comb(d, a + 1)
        vanish = family.count == expected and vanishes_identically(family)
        yield Check(f"d = {d}, a = {a}: all {expected} minors vanish in Q[v, K, Q]", vanish)
    for d, a in work.choose(((4, 2), (5, 3)), ((4, 3), (5, 3), (6, 4), (8, 5))):
        A = QQ.matmul(QQ.random((d, a), rng), QQ.random((a, d), rng))
        rank = QQ.rank(cross_coordinates(A, QQ.random((1, d), rng), QQ)[0])
        yield Check(f"d = {d}, a = {a}: rank {rank} at random rational weights", rank == a)


def phi_minors(d: int) -> list[Any]:
    """The maximal minors of Φ(v), D×d with row (k, l) equal to (v_k e_l + v_l e_k)/2, as polynomials in v."""
    ring, v = generic(v=(1, d))
    Phi = cross_coordinates(ring.eye(d), v, ring)[0]
    return [laplace_expansion([list(Phi[row]) for row in rows]) for rows in combinations(range(len(Phi)), d)]


@finds("minors of Φ(v) expanded over Q and their rank; the invariants on generic weights", primes=(BIG_PRIME,))
def run_syzygies(work: Work) -> Checks:
    """[I] Theorem 27: at least C(D,d) − C(2d−1,d) relations among the maximal minors of the flattening."""
    values = {}
    for d in work.choose((2, 3), (2, 3, 4)):
        expected = comb(comb(d + 1, 2), d) - comb(2 * d - 1, d)
        minors = phi_minors(d)
        rank = span(minors)
        relations = len(minors) - rank
        values[str(d)] = relations
        label = f"d = {d}: {len(minors)} maximal minors of Φ(v) span {rank} forms: {relations} relations"
        yield Check(label, relations >= expected)
        yield Check(f"d = {d}: the bound is exact", relations == expected, "support")
    family = DeterminantalSyzygies(Variety(3, 3))
    yield Check(f"d = 3: the {family.count} cubics vanish in Q[v, A]", vanishes_identically(family))
    zero, error = vanishes_at_random(DeterminantalSyzygies(Variety(4, 4)), work.seed)
    yield Check("d = 4: the 175 quartics vanish at a random point mod 2⁶¹ − 1", zero)
    return {"values": {"relations by d": values}, "error_bound": error}


@finds("rank over Q of the expanded minors; spans at 40 random ambient points mod p", primes=(WORD_PRIME,))
def run_new_cubics(work: Work) -> Checks:
    """[I] Example 28: d = 3: 20 minors, exactly 10 relations, and cubics other than those of Proposition 24."""
    minors = phi_minors(3)
    rank = span(minors)
    yield Check(f"{len(minors)} maximal minors of the 6×3 matrix", len(minors) == 20)
    yield Check(f"they span {rank} cubics in v: exactly {20 - rank} relations", rank == 10)
    y = Points.of_cross(FIELD.random((40, 6, 3), np.random.default_rng(work.seed)), FIELD)
    parts = [family(Variety(3, 3)).evaluate(y) for family in (SlicePencil, DeterminantalSyzygies)]
    ranks = [rank_mod_p(part, WORD_PRIME) for part in (*parts, np.concatenate(parts, axis=1))]
    statement = f"spans: pencil {ranks[0]}, syzygies {ranks[1]}, together {ranks[2]}: no common cubic"
    yield Check(statement, ranks == [10, 10, 20])


@finds("factorization on generic weights; minors mod p", primes=(WORD_PRIME,))
def run_cross_rows(work: Work) -> Checks:
    """[I] Proposition 44: the coefficients of all rows are V·B(A), so their rank is at most d."""
    rng = np.random.default_rng(work.seed)
    for d, d_out in work.choose(((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 5))):
        variety, label = Variety(d, d, tokens=2, d_out=d_out), f"d = {d}, d' = {d_out}"
        ring, V, A = generic(v=(d_out, d), A=(d, d))
        block = coordinate_block(place(A, V, variety, ring))
        B = coordinate_block(place(A, ring.eye(d), Variety(d, d, tokens=2, d_out=d), ring))
        yield Check(f"{label}: the block equals V·B(A) in Q[V, A]", ring.equal(block, ring.matmul(V, B)))
        family = CrossRowRank(variety)
        values = family.evaluate(random_points(variety, 1, FIELD, rng), 0, min(family.count, 500))
        yield Check(f"{label}: the {d + 1}-minors vanish at a random point", FIELD.is_zero(values))
        full = rank_mod_p(FIELD.random((d_out, block.shape[1]), rng), WORD_PRIME) == d + 1
        yield Check(f"{label}: a random block has rank {d + 1}, so they are not trivial", full, "support")


def coordinate_block(points: Points) -> Array:
    """All coordinates of target column 0, one row for each output row."""
    y = points.first_cross
    return np.concatenate([points.first_single, y.reshape(*y.shape[:-2], -1)], axis=-1)
