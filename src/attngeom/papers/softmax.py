"""[G] Section 3.4: softmax attention: Theorem 3.9 with its Equation 34, and Conjecture 3.10."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.dimensions.theorems import softmax_network
from attngeom.exact import BLAS_PRIME, RR, lapack
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.network import Architecture, forward, random_weights
from attngeom.network.attention import Softmax
from attngeom.network.virtual import forward_virtual
from attngeom.network.weights import VirtualWeights
from attngeom.papers.deep import bottlenecks
from attngeom.papers.records import Check, Finding, Work
from attngeom.verification import verify

ROUNDING = 1e-12
"""Outputs of size 1 computed in double precision that differ by more come from different functions."""


def recover_layer(
    layer: Callable[[Array], Array], d: int, d_out: int, t: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """(A, V) of one softmax layer from its values: the constructive proof of Theorem 3.9.

    Equal tokens give V x. With x_1 = x and all other tokens x + u, V u ≠ 0, column 1 is a mean of V x and V(x + u) with
    weights 1 : (t−1) exp(uᵀ A x), so its position gives uᵀ A x.
    """
    V = np.stack([layer(np.repeat(e[:, None], t, axis=1))[:, 0] for e in np.eye(d)], axis=1)
    directions = rng.standard_normal((d, d))
    rows = []
    for u in directions:
        row = []
        for x in np.eye(d):
            X = np.concatenate([x[:, None], np.repeat((x + u)[:, None], t - 1, axis=1)], axis=1)
            shift, step = layer(X)[:, 0] - V @ x, V @ u
            share = shift @ step / (step @ step)
            row.append(np.log(share / (1 - share) / (t - 1)))
        rows.append(row)
    return lapack.solve(directions, np.array(rows)), V


def run_softmax_fibers(work: Work) -> Finding:
    """[G] Theorem 3.9: V = 0 or the fiber is one point; Equation 34 lacks a factor t − 1."""
    rng = np.random.default_rng(work.seed)
    checks, worst = [], 0.0
    for d, d_out, t in work.choose(((2, 1, 2), (3, 2, 3)), ((1, 1, 2), (2, 1, 2), (3, 2, 3), (4, 4, 2), (5, 3, 4))):
        architecture = Architecture((d, d_out), d, tokens=t, kind="softmax")
        weights = random_weights(architecture, RR, work.seed)
        A, V = recover_layer(lambda X, w=weights: forward(w, X), d, d_out, t, rng)  # type: ignore[misc]
        head = weights.layers[0][0]
        error = max(float(np.abs(A - head.attention_matrix(RR)).max()), float(np.abs(V - head.V).max()))
        worst = max(worst, error)
        checks.append(
            Check(f"d = {d}, d' = {d_out}, t = {t}: values determine (A, V), error {error:.0e}", error < 1e-9)
        )
        answer = dimension(architecture, prove=True, seed=work.seed)
        full = d * d + d * d_out
        proven = answer.is_proven and answer.dimension == full
        checks.append(
            Check(f"d = {d}, d' = {d_out}, t = {t}: dimension {answer.dimension} = d² + d d', proven", proven)
        )
    for t in (2, 3, 4):
        printed, ours, reduced = equation_34(t)
        statement = f"t = {t}: Equation 34 as printed is column 1 for x_2 = … = x_t"
        checks.append(Check(statement, printed, "printed proof"))
        checks.append(Check(f"t = {t}: it is with (t−1) before the second term of the numerators", ours, "correction"))
        checks.append(
            Check(
                f"t = {t}: then the difference is (t−1) S₁₁ (S'₁₂ − S₁₂)(V x₁ − V x₂), and the proof goes through",
                reduced,
                "correction",
            )
        )
    example = "t = 3, d = 1, A = 0, V = 1, x₁ = 0, x₂ = x₃ = 1: column 1 is 2/3, Equation 34 gives 1/3"
    evidence = (
        "(A, V) recovered from values of random layers; dimensions proven by formal softmax; identities of polynomials"
    )
    return Finding(evidence, tuple(checks), {"largest error": float(f"{worst:.1e}")}, example, (BLAS_PRIME,))


def equation_34(t: int) -> tuple[bool, bool, bool]:
    """Whether the printed numerator, the corrected one, and the reduced Equation 35 hold as identities.

    a = S(x_1ᵀA x_1), b and c = S(x_1ᵀA x_2) for A and A', v = V x_1, w = V x_2 are independent variables.
    """
    ring = PolynomialDomain(("a", "b", "c", "v", "w")).ring
    a, b, c, v, w = ring.gens()
    total, ours, printed = a * v, a * v + (t - 1) * b * w, a * v + b * w
    for _ in range(t - 1):
        total = total + b * w
    numerator, other = ours, a * v + (t - 1) * c * w
    difference = numerator * (a + (t - 1) * c) - other * (a + (t - 1) * b)
    return printed == total, ours == total, difference == (t - 1) * a * (c - b) * (v - w)


def run_deep_softmax(work: Work) -> Finding:
    """[G] Conjecture 3.10: Equation 16 is the dimension, and the (M, L) of a finite list give different functions."""
    cases = work.choose(
        [(w, 2) for w in bottlenecks((2, 3), ((0, 0), (1, 0)), (2, 3))],
        [(w, a) for w in bottlenecks((2, 3, 4), ((0, 0), (1, 0), (1, 2)), (2, 3, 4)) for a in (1, 2, 3)],
    )
    wrong, unproven, invalid = [], [], []
    for widths, a in cases:
        architecture = Architecture(widths, a, tokens=3, kind="softmax")
        known, answer = softmax_network(architecture), dimension(architecture, prove=True, seed=work.seed)
        assert known is not None
        if answer.dimension != known.value:
            wrong.append((widths, a))
        if not answer.is_proven:
            unproven.append((widths, a))
        elif not verify(certify_dimension(answer)).valid:
            invalid.append((widths, a))
    balls = []
    for widths in work.choose(((2, 2, 2),), ((2, 2, 2), (3, 3, 3), (3, 2, 3), (2, 2, 2, 2))):
        architecture = Architecture(widths, 2, tokens=3, kind="softmax")
        known = softmax_network(architecture)
        answer = dimension(architecture, method="balls", seed=work.seed)
        balls.append(known is not None and answer.lower_bound == known.value)
    networks, closest, coincide = compare_softmax(work.seed)
    checks = (
        Check(
            f"Equation 16 is the dimension of all {len(cases)} networks: generic fibers in (M, L) are finite", not wrong
        ),
        Check("every value is proven: a nonzero minor mod p meets the count of parameters", not unproven, "support"),
        Check("every certificate passes the independent verifier", not invalid, "support"),
        Check(
            f"true exponentials in ball arithmetic certify the same rank for {len(balls)} networks",
            all(balls),
            "support",
        ),
        Check(
            f"d = 2, l = 2, d_l = 1, t = 3: no two of the {networks} networks with entries in [−1, 0, 1], rk M_i = 2"
            " and L ≠ 0 agree at two random inputs",
            coincide == 0,
        ),
    )
    evidence = "finite consequences: dimensions with certificates; outputs of a finite list in double precision"
    return Finding(
        evidence,
        checks,
        {"networks compared": networks, "closest pair of outputs": float(f"{closest:.1e}")},
        primes=(BLAS_PRIME,),
    )


def compare_softmax(seed: int) -> tuple[int, float, int]:
    """All networks with d = 2, entries −1, 0, 1, invertible M_1, M_2 and L ≠ 0: count, smallest gap, coincidences."""
    # Small inputs keep the softmax away from saturation, where different networks look alike.
    X = 0.5 * np.random.default_rng(seed).standard_normal((2, 2, 3))
    matrices = [np.array(m, dtype=float).reshape(2, 2) for m in product((-1, 0, 1), repeat=4)]
    matrices = [m for m in matrices if round(float(lapack.det(m))) != 0]
    vectors = np.array([v for v in product((-1, 0, 1), repeat=2) if any(v)], dtype=float)
    outputs = []
    for first, second in product(matrices, repeat=2):
        mixed = forward_virtual(VirtualWeights((first, second), np.eye(2), RR, Softmax()), X)
        outputs.append(np.concatenate(list(vectors @ mixed), axis=1))
    values = np.concatenate(outputs)
    ordered = values[np.lexsort(values.T)]
    gaps = np.abs(np.diff(ordered, axis=0)).max(axis=1)
    return len(values), float(gaps.min()), int(np.sum(gaps < ROUNDING))
