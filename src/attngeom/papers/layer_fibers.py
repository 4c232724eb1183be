"""[G] Lemma 3.1, Theorem 3.2, Corollaries 3.3, A.1, A.2, Proposition A.5: the fibers of one lightning layer."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import sympy

from attngeom.dimensions import dimension
from attngeom.exact import BLAS_PRIME, GF, QQ, rank_mod_p
from attngeom.exact.domains import Array
from attngeom.exact.multisets import pairs
from attngeom.layer.coefficients import expand_matrices, quadric_table, symmetrize
from attngeom.layer.splitting import LayerSplitting, split_layer
from attngeom.network import Architecture
from attngeom.network.weights import factor_attention
from attngeom.papers.dimensions import check_dimensions, one_layer_dimension
from attngeom.papers.records import Check, Checks, Work, finds
from attngeom.papers.symbolic import generic
from attngeom.papers.tangent_spaces import random_rank, swap_sample, units


def are_proportional(a: Array, b: Array) -> bool:
    """Whether two nonzero arrays over Q are proportional."""
    return QQ.rank(np.stack([a.ravel(), b.ravel()])) == 1


@finds("two independent factorizations of the same rational matrix are matched exactly")
def run_query_key(work: Work) -> Checks:
    """[G] Lemma 3.1: (Q, K) ↦ Kᵀ Q has fibers GL_a over matrices of rank a ≤ d, with a unique C."""
    rng = np.random.default_rng(work.seed)
    for d, a in work.choose(((1, 1), (2, 1), (3, 2), (3, 3)), [(n, m) for n in range(1, 7) for m in range(1, n + 1)]):
        Q, K = random_rank(a, d, a, rng), random_rank(a, d, a, rng)
        other_Q, other_K = factor_attention(QQ.matmul(K.T, Q), a, QQ)
        solution = QQ.solve(K.T, other_K.T)
        matched = (
            solution is not None
            and QQ.rank(K) == a
            and QQ.equal(QQ.matmul(solution.T, K), other_K)
            and QQ.equal(QQ.matmul(solution, other_Q), Q)
        )
        yield Check(f"d = {d}, a = {a}: one C carries a random factorization to the echelon one", matched)
        moves = [QQ.matmul(E.T, Q).ravel() for E in units(a, d)] + [QQ.matmul(K.T, E).ravel() for E in units(a, d)]
        kernel = 2 * a * d - QQ.rank(np.stack(moves))
        yield Check(f"d = {d}, a = {a}: the fiber has dimension {kernel} = a²", kernel == a * a)
    first, second = QQ.convert([[0]]), QQ.convert([[1]])
    same = QQ.equal(QQ.matmul(first.T, second), QQ.matmul(second.T, first))
    statement = "rk A = a is needed: for d = a = 1 and A = 0, (Q, K) = (1, 0) and (0, 1) differ by no C"
    yield Check(statement, same, "support")


def fiber_points(A: Array, V: Array) -> LayerSplitting:
    """All weights, up to scale and over the algebraic closure, with the function of (A, V)."""
    return split_layer(quadric_table(A, V, QQ), QQ)


def _is_point(splitting: LayerSplitting, A: Array, V: Array) -> bool:
    return any(are_proportional(point.A, A) and are_proportional(point.V, V) for point in splitting.points)


def _is_single(A: Array, V: Array) -> bool:
    """Whether (A, V) is the only point of its fiber."""
    points = fiber_points(A, V)
    return len(points.points) == 1 and _is_point(points, A, V)


def _has_swapped_point(A: Array, V: Array) -> bool:
    """Whether the fiber of (k qᵀ, h vᵀ) consists of it and (v qᵀ, h kᵀ)."""
    k, q = A[:, _pivot(A.T)], A[_pivot(A)]
    v, h = V[_pivot(V)], V[:, _pivot(V.T)]
    points, number = fiber_points(A, V), 1 if are_proportional(k, v) else 2
    swapped = v[:, None] * q[None, :], h[:, None] * k[None, :]
    return len(points.points) == number and _is_point(points, A, V) and _is_point(points, *swapped)


def _pivot(a: Array) -> int:
    """The index of the first nonzero row."""
    return next(index for index, row in enumerate(a) if any(x != 0 for x in row))


@finds(
    "the quadrics α_m ν_n are factored exactly over Q, which finds the whole fiber; all weights over small fields",
    "proof only, d = 2: A = ((0, 1), (−1, 0)) has rank 2 and the quadratic form 0, A = diag(1, −1) a form that splits",
)
def run_fibers(work: Work) -> Checks:
    """[G] Theorem 3.2: one point up to scale; two if rk A = rk V = 1; the zero function only for A = 0 or V = 0."""
    rng, trials = np.random.default_rng(work.seed), work.choose(3, 10)
    sizes = work.choose(((2, 1), (2, 2), (3, 2)), ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (4, 3), (5, 4)))
    for d, d_out in sizes:
        two = zero = one = True
        for _, size_A, size_V in product(range(trials), range(d + 1), range(min(d, d_out) + 1)):
            A, V = random_rank(d, d, size_A, rng), random_rank(d_out, d, size_V, rng)
            if 0 in (size_A, size_V):
                zero &= fiber_points(A, V).status == "zero"
            elif size_A == size_V == 1:
                two &= _has_swapped_point(A, V)
            else:
                one &= _is_single(A, V)
        label = f"d = {d}, d' = {d_out}, {trials} rational weights of every pair of ranks"
        yield Check(f"{label}: two points, W and (v qᵀ, h kᵀ), for ranks 1 and 1", two)
        yield Check(f"{label}: the function is zero exactly for A = 0 or V = 0", zero)
        yield Check(f"{label}: one point otherwise", one)
    for p, d, d_out in work.choose(((3, 2, 1),), ((3, 2, 1), (5, 2, 1), (3, 2, 2))):
        good, number = exhaust_fibers(p, d, d_out)
        yield Check(f"all {number} weights over GF({p}) with d = {d}, d' = {d_out}: every fiber is as stated", good)
    yield Check("t ≥ 2 is needed: for t = 1 the weights A and Aᵀ give one function", _one_token(), "support")
    has_zero, has_split = quadratic_forms()
    statement = "rk A > 1 makes the quadratic form xᵀA x irreducible"
    yield Check(statement, not has_zero and not has_split, "printed proof")
    statement = "A = ((0, 1), (−1, 0)) has the form 0 and A = diag(1, −1) the form (x₁ − x₂)(x₁ + x₂)"
    yield Check(statement, has_zero and has_split, "correction")
    for rows in ([[0, 1], [-1, 0]], [[1, 0], [0, -1]]):
        single = _is_single(QQ.convert(rows), QQ.convert([[1, 2]]))
        yield Check(f"A = {rows}, V = (1, 2): the fiber is one point all the same", single, "correction")


def quadratic_forms() -> tuple[bool, bool]:
    """Whether the form of ((0, 1), (−1, 0)) is zero and that of diag(1, −1) splits, both of rank 2.

    >>> quadratic_forms()
    (True, True)
    """
    _, ((x, y),) = generic(x=(1, 2))
    skew, split = x * y - y * x, x**2 - y**2
    return skew == 0, len(split.factor()[1]) == 2


def _one_token() -> bool:
    """For t = 1, d = 2, A = E_12 and its transpose give one function; for t = 2 they do not."""
    A, V = QQ.convert([[0, 1], [0, 0]]), QQ.convert([[1, 0]])
    (single, cross), (other_single, other_cross) = expand_matrices(A, V, QQ), expand_matrices(A.T, V, QQ)
    return QQ.equal(single, other_single) and not QQ.equal(cross, other_cross)


def exhaust_fibers(p: int, d: int, d_out: int) -> tuple[bool, int]:
    """Group all (A, V) over GF(p), p odd, by their coefficients and compare each group with Theorem 3.2.

    >>> exhaust_fibers(3, 1, 1)
    (True, 9)
    """
    A = np.array(list(product(range(p), repeat=d * d))).reshape(-1, d, d)
    V = np.array(list(product(range(p), repeat=d_out * d))).reshape(-1, d_out, d)
    groups: dict[bytes, list[tuple[int, int]]] = {}
    for index, matrix in enumerate(A):
        for other, table in enumerate(quadric_table(matrix, V, GF(p)).astype(np.int8)):
            groups.setdefault(table.tobytes(), []).append((index, other))
    zero = np.zeros((d_out, d, len(pairs(d))), dtype=np.int8).tobytes()
    good = all((not A[i].any()) or (not V[j].any()) for i, j in groups.pop(zero))
    for members in groups.values():
        i, j = members[0]
        classes = {min(((s * A[i]) % p).tobytes() for s in range(1, p)) for i, _ in members}
        pair = rank_mod_p(A[i], p) == rank_mod_p(V[j], p) == 1
        limit = 2 if pair and rank_mod_p(np.concatenate([A[i].T, V[j]]), p) == 2 else 1
        good &= len(classes) == limit and len(members) == limit * (p - 1)
    return good, len(A) * len(V)


@finds("", primes=(BLAS_PRIME,))
def run_dimension(work: Work) -> Checks:
    """[G] Corollary 3.3: dim = 2αd − α² + d d' − 1, proven by bounds that meet and certificates that verify."""
    most = work.choose(3, 5)
    sizes = list(product(range(1, most + 1), repeat=3))
    expected = {Architecture((d, n), a, tokens=2): one_layer_dimension(d, n, a) for d, n, a in sizes}
    covered = {
        net: value for net, value in expected.items() if min(net.widths[0], max(net.widths[1], net.attention[0])) >= 2
    }
    statement = f"the formula gives the dimension for all d, d', a ≤ {most} with d, d' ≥ 2 or d, a ≥ 2"
    yield from check_dimensions(statement, covered, work.seed)
    rest = [net for net in expected if net not in covered]
    beyond = all(dimension(net, prove=True, seed=work.seed).dimension == expected[net] for net in rest)
    yield Check("the formula also holds where the hypotheses fail", beyond, "support")
    return {"evidence": f"certificates for all architectures with d, d', a ≤ {most}, t = 2"}


@cache
@finds(
    "φ = 0 means α_m ν_n = 0 for all columns and rows, and a polynomial ring has no zero divisors; so the map on"
    " the compact product of projective spaces is defined everywhere and its image is closed"
)
def run_closed(work: Work) -> Checks:
    """[G] Corollary A.1: the projective parametrization has no base points, so the image is closed."""
    for d, d_out in work.choose(((2, 1),), ((2, 1), (2, 2))):
        ring, A, V = generic(A=(d, d), V=(d_out, d))
        names = [sympy.Symbol(name) for name in ring.variables]
        table = quadric_table(A, V, ring)
        equations = [sympy.sympify(str(f).replace("^", "**")) for f in table.ravel() if f != 0]
        basis = sympy.groebner(equations, *names, order="grevlex")
        products = [x * y for x in names[: d * d] for y in names[d * d :]]
        inside = all(basis.contains(sympy.expand(f**2)) for f in products)
        yield Check(f"d = {d}, d' = {d_out}: φ = 0 forces (a_ij v_kl)² = 0 for all entries", inside)
    for d, d_out in work.choose(((3, 2),), ((3, 2), (4, 3), (6, 5))):
        ring, A, V = generic(A=(d, d), V=(d_out, d))
        squares = [index for index, (k, l) in enumerate(pairs(d)) if k == l]
        same = ring.equal(quadric_table(A, V, ring)[:, :, squares], V[:, None, :] * A.T[None])
        yield Check(
            f"d = {d}, d' = {d_out}: every product α_m ν_n of an entry α_m = column m of A, ν_n = row n"
            " of V is one of the quadrics of φ",
            same,
        )


@finds("fibers found by exact factorization at random rational weights")
def run_birational(work: Work) -> Checks:
    """[G] Corollary A.2: generically one-to-one, with special fibers of two points."""
    rng = np.random.default_rng(work.seed)

    def swap_size(d: int, d_out: int) -> int:
        point = swap_sample(d, d_out, rng)
        return len(fiber_points(point.A, point.V).points)

    cases = ((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 2, 2), (4, 3, 1), (5, 5, 3))
    for d, d_out, a in work.choose(((2, 1, 2), (2, 2, 1), (3, 2, 2)), cases):
        ranks = (d, d, min(a, d)), (d_out, d, min(d, d_out))
        sizes = {len(fiber_points(*(random_rank(*rank, rng) for rank in ranks)).points) for _ in range(5)}
        yield Check(f"d = {d}, d' = {d_out}, a = {a}: generic fibers have one point", sizes == {1})
        swaps = {swap_size(d, d_out) for _ in range(5)}
        yield Check(f"d = {d}, d' = {d_out}: fibers for ranks 1 and 1 have two points", swaps == {2})
    statement = "d, d' ≥ 2 or d, a ≥ 2 is needed: for d' = a = 1 the generic fiber has two points"
    yield Check(statement, swap_size(3, 1) == 2, "support")


@finds("identities of coefficients on generic weights; all columns and contexts are copies")
def run_table(work: Work) -> Checks:
    """[G] Proposition A.5: φ is a linear image of the table of quadrics α_m ν_n, and determines it."""
    for d, d_out in work.choose(((2, 1), (2, 2)), ((2, 1), (2, 2), (3, 2), (4, 3))):
        ring, A, V = generic(A=(d, d), V=(d_out, d))
        single, cross = expand_matrices(A, V, ring)
        table, label = np.swapaxes(quadric_table(A, V, ring), 1, 2), f"d = {d}, d' = {d_out}"
        same, image = ring.equal(cross, table), ring.equal(single, symmetrize(table, d, ring))
        yield Check(f"{label}: the part linear in x₁ and quadratic in x₂ is (α_m ν_n) in Q[A, V]", same)
        yield Check(f"{label}: the part in x₁ alone is a linear image of it", image)
