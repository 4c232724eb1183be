"""[G] Theorem 3.4, Lemma A.3, Corollaries A.4 and A.6: critical, singular and boundary points of one layer."""

from __future__ import annotations

from functools import cache

import numpy as np

from attngeom.certification import certify
from attngeom.exact import QQ, WORD_PRIME
from attngeom.exact.domains import Array
from attngeom.inspection.geometry import layer_stratum
from attngeom.layer.coefficients import Coefficients, multiply_forms, quadric_table
from attngeom.papers.dimensions import is_certified, one_layer_dimension
from attngeom.papers.layer_fibers import run_closed
from attngeom.papers.records import Check, Checks, Work, finds
from attngeom.papers.tangent_spaces import differential, random_rank, samples, tangent_lower_bound, tangent_upper_bound


@finds(
    "exact ranks over Q of the differential at one random point of every type",
    "d = 2, d' = 1, A = I, V = 0: the differential has a kernel of dimension 4, but A has rank 2",
)
def run_critical(work: Work) -> Checks:
    """[G] Lemma A.3: (A, V) is critical iff A = k qᵀ and V = h kᵀ, or a factor is zero (which the lemma omits)."""
    rng = np.random.default_rng(work.seed)
    for d, d_out in work.choose(((2, 1), (2, 2), (3, 2)), ((2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2))):
        paper, ours = True, True
        for kind, point in samples(d, d_out, d, rng):
            kernel = d * d + d * d_out - QQ.rank(differential(point.A, point.V))
            low = max(QQ.rank(point.A), QQ.rank(point.V)) <= 1
            paper &= (kernel > 1) == (kind == "boundary" or (kind == "zero" and low))
            ours &= (kernel > 1) == (kind in ("boundary", "zero"))
        yield Check(f"d = {d}, d' = {d_out}: critical exactly for A = k qᵀ, V = h kᵀ", paper)
        yield Check(f"d = {d}, d' = {d_out}: critical exactly for these, A = 0 or V = 0", ours, "correction")
    kernel = 6 - QQ.rank(differential(QQ.eye(2), QQ.zeros((1, 2))))
    yield Check(f"d = 2, d' = 1, A = I, V = 0: the kernel has dimension {kernel} > 1", kernel == 4, "correction")


@cache
@finds(
    "tangent space at one random point of every type: from below by curves over Q, from above by equations mod p",
    "d = 3, d' = a = 2, A = E₁₁, V = (I₂ 0): rk A · rk V = 2, but tangent vectors of curves span 14 dimensions"
    " and dim = 13",
    (WORD_PRIME,),
)
def run_singular(work: Work) -> Checks:
    """[G] Corollary A.4: singular iff rk A · rk V ≤ 1; for 1 < a < d also if rk A < a."""
    rng, table = np.random.default_rng(work.seed), {}
    cases = ((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 1, 3), (3, 2, 1), (3, 2, 2), (3, 2, 3))
    for d, d_out, a in work.choose(((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 2, 2)), cases):
        dimension = one_layer_dimension(d, d_out, a)
        paper, ours, decided = True, True, True
        for kind, point in samples(d, d_out, a, rng):
            lower, upper = tangent_lower_bound(kind, point, a), tangent_upper_bound(point, a)
            is_singular = True if lower > dimension else False if upper == dimension else None
            decided &= is_singular is not None
            ranks = QQ.rank(point.A), QQ.rank(point.V)
            is_small = ranks[0] * ranks[1] <= 1
            stratum = layer_stratum(point.A, point.V, a, 2, QQ)
            paper &= is_singular == is_small
            ours &= is_singular == (is_small or (a < d and ranks[0] < a)) == stratum.is_singular
            table[f"d={d} d'={d_out} a={a} {kind} ranks {ranks}"] = [lower, upper, dimension]
        label = f"d = {d}, d' = {d_out}, a = {a}"
        yield Check(f"{label}: the bounds on the tangent space decide every type of point", decided, "support")
        yield Check(f"{label}: singular exactly for rk A · rk V ≤ 1", paper)
        yield Check(f"{label}: singular exactly for rk A · rk V ≤ 1 or rk A < a < d", ours, "correction")
    A, V = QQ.convert([[1, 0, 0], [0, 0, 0], [0, 0, 0]]), QQ.convert([[1, 0, 0], [0, 1, 0]])
    span = QQ.rank(differential(A, V, 2))
    statement = f"d = 3, d' = a = 2, A = E₁₁, V = (I 0): tangent vectors of curves span {span} > 13"
    yield Check(statement, span == 14, "correction")
    return {"values": {"lower, upper, dimension": table}}


def tensor_coefficients(h: Array, q: Array, quadric: Array) -> Coefficients:
    """The coefficients over Q of the cubic map of two tokens with cross part h ⊗ q ⊗ quadric."""
    return Coefficients.of_cross(h[:, None, None] * quadric[None, :, None] * q[None, None, :], 2, QQ)


@cache
@finds(
    "exact verdicts with certificates on curves of rational coefficients",
    "d = 2, d' = 1, k = i e₁: A = k qᵀ, V = h k̄ᵀ has the real function of A = e₁ qᵀ, V = h e₁ᵀ",
)
def run_boundary(work: Work) -> Checks:
    """[G] Corollary A.6: boundary points are the critical values, limits of functions that need complex weights."""
    rng = np.random.default_rng(work.seed)
    for d, d_out in work.choose(((2, 1), (3, 2)), ((2, 1), (2, 2), (3, 1), (3, 2), (4, 3))):
        closure, limits, real, valid = True, True, True, True
        for _ in range(work.choose(2, 5)):
            k, w = random_rank(2, d, 2, rng)
            q, h = random_rank(1, d, 1, rng)[0], random_rank(1, d_out, 1, rng)[0]
            square, other = multiply_forms(k, k, QQ), multiply_forms(w, w, QQ)
            for size in (1, 10, 1000):
                closed = certify(tensor_coefficients(h, q, square + other / size**2))
                opened = certify(tensor_coefficients(h, q, square - other / size**2))
                closure &= closed.verdict == "closure_only"
                real &= opened.verdict == "realizable"
                valid &= is_certified(closed) and is_certified(opened)
            limit = certify(tensor_coefficients(h, q, square))
            stratum = layer_stratum(k[:, None] * q[None, :], h[:, None] * k[None, :], d, 2, QQ)
            limits &= limit.verdict == "realizable" and bool(stratum.is_boundary) and bool(stratum.is_critical)
        far = True
        for kind, point in samples(d, d_out, d, rng):
            flat = quadric_table(point.A, point.V, QQ).reshape(d * d_out, -1)
            far &= (QQ.rank(flat) >= 2) == (kind == "generic")
        label = f"d = {d}, d' = {d_out}"
        yield Check(f"{label}: h ⊗ q ⊗ (k² + ε²w²) has complex weights only, for ε = 1, 1/10, 1/1000", closure)
        yield Check(f"{label}: the limit h ⊗ q ⊗ k² has weights A = k qᵀ, V = h kᵀ, which are critical", limits)
        yield Check(f"{label}: h ⊗ q ⊗ (k² − ε²w²) has real weights", real, "support")
        yield Check(f"{label}: every verdict has a certificate that verifies", valid, "support")
        statement = "the closed condition rank T ≤ 1 of such limits holds only for ranks 1 and 1, or zero"
        yield Check(f"{label}: {statement}", far)
    verdict = certify(tensor_coefficients(QQ.convert([1]), QQ.convert([1, 0]), QQ.convert([1, 0, 0]))).verdict
    statement = "every k ∈ C^d that is not real gives a function without real weights"
    yield Check(statement, verdict != "realizable", "printed proof")
    statement = "k = i e₁ gives k(z) k̄(z) = z₁², which has real weights: k must not be a multiple of a real vector"
    yield Check(statement, verdict == "realizable", "correction")


@finds("the computations of Corollaries A.1, A.4 and A.6", primes=(WORD_PRIME,))
def run_geometry(work: Work) -> Checks:
    """[G] Theorem 3.4: closed, boundary and singular points, from Corollaries A.1, A.4 and A.6."""
    singular = run_singular(work)
    yield from run_closed(work).checks
    yield from (check for check in run_boundary(work).checks if check.part in ("claim", "support"))
    yield from singular.checks
    return {"counterexample": singular.counterexample}
