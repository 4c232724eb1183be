"""[G] Theorem 3.4, Lemma A.3, Corollaries A.4 and A.6: critical, singular and boundary points of one layer."""

from __future__ import annotations

from functools import cache

import numpy as np

from attngeom.certification import certify
from attngeom.exact import QQ, WORD_PRIME
from attngeom.exact.domains import Array
from attngeom.inspection.geometry import layer_stratum
from attngeom.layer.coefficients import Coefficients, array_shapes, multiply_forms, quadric_table, symmetrize
from attngeom.papers.layer_fibers import run_closed
from attngeom.papers.records import Check, Finding, Work
from attngeom.papers.tangent_spaces import (
    differential,
    random_rank,
    samples,
    tangent_lower_bound,
    tangent_upper_bound,
)
from attngeom.verification import verify


def run_critical(work: Work) -> Finding:
    """[G] Lemma A.3: (A, V) is critical iff A = k qᵀ and V = h kᵀ, or a factor is zero (which the lemma omits)."""
    rng = np.random.default_rng(work.seed)
    checks = []
    for d, d_out in work.choose(((2, 1), (2, 2), (3, 2)), ((2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2))):
        paper, ours = True, True
        for sample in samples(d, d_out, d, rng):
            kernel = d * d + d * d_out - QQ.rank(differential(sample.A, sample.V))
            has_form = sample.kind == "boundary" or (sample.kind == "zero" and max(sample.ranks) <= 1)
            paper &= (kernel > 1) == has_form
            ours &= (kernel > 1) == (sample.kind in ("boundary", "zero"))
        checks.append(Check(f"d = {d}, d' = {d_out}: critical exactly for A = k qᵀ, V = h kᵀ", paper))
        checks.append(Check(f"d = {d}, d' = {d_out}: critical exactly for these, A = 0 or V = 0", ours, "correction"))
    kernel = 6 - QQ.rank(differential(QQ.eye(2), QQ.zeros((1, 2))))
    checks.append(
        Check(f"d = 2, d' = 1, A = I, V = 0: the kernel has dimension {kernel} > 1", kernel == 4, "correction")
    )
    example = "d = 2, d' = 1, A = I, V = 0: the differential has a kernel of dimension 4, but A has rank 2"
    return Finding(
        "exact ranks over Q of the differential at one random point of every type", tuple(checks), {}, example
    )


@cache
def run_singular(work: Work) -> Finding:
    """[G] Corollary A.4: singular iff rk A · rk V ≤ 1; for 1 < a < d also if rk A < a."""
    rng = np.random.default_rng(work.seed)
    checks, table = [], {}
    sizes = work.choose(
        ((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 2, 2)),
        ((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2), (3, 1, 3), (3, 2, 1), (3, 2, 2), (3, 2, 3)),
    )
    for d, d_out, a in sizes:
        alpha = min(a, d)
        dimension = 2 * alpha * d - alpha**2 + d * d_out - 1
        paper, ours, decided = True, True, True
        for sample in samples(d, d_out, a, rng):
            lower, upper = tangent_lower_bound(sample, a), tangent_upper_bound(sample, a)
            is_singular = True if lower > dimension else False if upper == dimension else None
            decided &= is_singular is not None
            product = sample.ranks[0] * sample.ranks[1]
            stratum = layer_stratum(sample.A, sample.V, a, 2, QQ)
            paper &= is_singular == (product <= 1)
            ours &= is_singular == (product <= 1 or (a < d and sample.ranks[0] < a)) == stratum.is_singular
            table[f"d={d} d'={d_out} a={a} {sample.kind} ranks {sample.ranks}"] = [lower, upper, dimension]
        label = f"d = {d}, d' = {d_out}, a = {a}"
        checks.append(Check(f"{label}: the bounds on the tangent space decide every type of point", decided, "support"))
        checks.append(Check(f"{label}: singular exactly for rk A · rk V ≤ 1", paper))
        checks.append(Check(f"{label}: singular exactly for rk A · rk V ≤ 1 or rk A < a < d", ours, "correction"))
    A, V = QQ.convert([[1, 0, 0], [0, 0, 0], [0, 0, 0]]), QQ.convert([[1, 0, 0], [0, 1, 0]])
    span = QQ.rank(differential(A, V, 2))
    checks.append(
        Check(
            f"d = 3, d' = a = 2, A = E₁₁, V = (I 0): tangent vectors of curves span {span} > 13",
            span == 14,
            "correction",
        )
    )
    example = (
        "d = 3, d' = a = 2, A = E₁₁, V = (I₂ 0): rk A · rk V = 2, but tangent vectors of curves span 14 dimensions"
        " and dim = 13"
    )
    evidence = (
        "tangent space at one random point of every type: from below by curves over Q, from above by equations mod p"
    )
    return Finding(evidence, tuple(checks), {"lower, upper, dimension": table}, example, primes=(WORD_PRIME,))


def tensor_coefficients(h: Array, q: Array, quadric: Array, t: int = 2) -> Coefficients:
    """The coefficients over Q of the cubic map with cross part h ⊗ q ⊗ quadric."""
    d, d_out = len(q), len(h)
    cross = h[:, None, None] * quadric[None, :, None] * q[None, None, :]
    single = symmetrize(cross, d, QQ)
    shapes = array_shapes(d, d_out, t)
    return Coefficients(
        d, d_out, t, np.broadcast_to(single[:, None], shapes[0]), np.broadcast_to(cross[:, None, None], shapes[1]), QQ
    )


@cache
def run_boundary(work: Work) -> Finding:
    """[G] Corollary A.6: boundary points are the critical values, limits of functions that need complex weights."""
    rng = np.random.default_rng(work.seed)
    checks = []
    for d, d_out in work.choose(((2, 1), (3, 2)), ((2, 1), (2, 2), (3, 1), (3, 2), (4, 3))):
        good = {"closure": True, "limit": True, "real": True, "valid": True}
        for _ in range(work.choose(2, 5)):
            k, w = random_rank(2, d, 2, rng)
            q, h = random_rank(1, d, 1, rng)[0], random_rank(1, d_out, 1, rng)[0]
            square, other = multiply_forms(k, k, QQ), multiply_forms(w, w, QQ)
            for size in (1, 10, 1000):
                closed = certify(tensor_coefficients(h, q, square + other / size**2))
                opened = certify(tensor_coefficients(h, q, square - other / size**2))
                good["closure"] &= closed.verdict == "closure_only"
                good["real"] &= opened.verdict == "realizable"
                good["valid"] &= all(
                    f.certificate is not None and verify(f.certificate).valid for f in (closed, opened)
                )
            limit = certify(tensor_coefficients(h, q, square))
            stratum = layer_stratum(k[:, None] * q[None, :], h[:, None] * k[None, :], d, 2, QQ)
            good["limit"] &= limit.verdict == "realizable" and bool(stratum.is_boundary) and bool(stratum.is_critical)
        label = f"d = {d}, d' = {d_out}"
        checks.append(
            Check(f"{label}: h ⊗ q ⊗ (k² + ε²w²) has complex weights only, for ε = 1, 1/10, 1/1000", good["closure"])
        )
        checks.append(
            Check(f"{label}: the limit h ⊗ q ⊗ k² has weights A = k qᵀ, V = h kᵀ, which are critical", good["limit"])
        )
        checks.append(Check(f"{label}: h ⊗ q ⊗ (k² − ε²w²) has real weights", good["real"], "support"))
        checks.append(Check(f"{label}: every verdict has a certificate that verifies", good["valid"], "support"))
        far = True
        for sample in samples(d, d_out, d, rng):
            flat = quadric_table(sample.A, sample.V, QQ).reshape(d * d_out, -1)
            far &= (QQ.rank(flat) >= 2) == (sample.kind == "generic")
        checks.append(
            Check(f"{label}: the closed condition rank T ≤ 1 of such limits holds only for ranks 1 and 1, or zero", far)
        )
    real = certify(tensor_coefficients(QQ.convert([1]), QQ.convert([1, 0]), QQ.convert([1, 0, 0]))).verdict
    statement = "every k ∈ C^d that is not real gives a function without real weights"
    checks.append(Check(statement, real != "realizable", "printed proof"))
    checks.append(
        Check(
            "k = i e₁ gives k(z) k̄(z) = z₁², which has real weights: k must not be a multiple of a real vector",
            real == "realizable",
            "correction",
        )
    )
    example = "d = 2, d' = 1, k = i e₁: A = k qᵀ, V = h k̄ᵀ has the real function of A = e₁ qᵀ, V = h e₁ᵀ"
    return Finding("exact verdicts with certificates on curves of rational coefficients", tuple(checks), {}, example)


def run_geometry(work: Work) -> Finding:
    """[G] Theorem 3.4: closed, boundary and singular points, from Corollaries A.1, A.4 and A.6."""
    parts = {"closed": run_closed(work), "boundary": run_boundary(work), "singular": run_singular(work)}
    checks = []
    for name, found in parts.items():
        for check in found.checks:
            if name != "boundary" or check.part not in ("printed proof", "correction"):
                checks.append(check)
    singular = parts["singular"]
    return Finding(
        "the computations of Corollaries A.1, A.4 and A.6",
        tuple(checks),
        {},
        singular.counterexample,
        primes=(WORD_PRIME,),
    )
