"""[G] Section 3.4: softmax attention: Theorem 3.9 with its Equation 34, and Conjecture 3.10."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.dimensions import dimension
from attngeom.dimensions.theorems import free_network
from attngeom.exact import BLAS_PRIME, RR, lapack
from attngeom.exact.domains import QQ, Array
from attngeom.limits.rounding import DIFFERENT_OUTPUTS
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.attention import Softmax
from attngeom.network.virtual import forward_virtual
from attngeom.network.weights import VirtualWeights
from attngeom.papers.deep import bottlenecks
from attngeom.papers.dimensions import check_dimensions
from attngeom.papers.records import Check, Checks, Work, finds


def read_off_layer(layer: Callable[[Array], Array], d: int, t: int, rng: np.random.Generator) -> tuple[Array, Array]:
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


@finds(
    "(A, V) recovered from values of random layers; dimensions proven by formal softmax; identities of polynomials",
    "t = 3, d = 1, A = 0, V = 1, x₁ = 0, x₂ = x₃ = 1: column 1 is 2/3, Equation 34 gives 1/3",
    (BLAS_PRIME,),
)
def run_softmax_fibers(work: Work) -> Checks:
    """[G] Theorem 3.9: V = 0 or the fiber is one point; Equation 34 lacks a factor t − 1."""
    rng, worst = np.random.default_rng(work.seed), 0.0
    for d, d_out, t in work.choose(((2, 1, 2), (3, 2, 3)), ((1, 1, 2), (2, 1, 2), (3, 2, 3), (4, 4, 2), (5, 3, 4))):
        architecture, label = Architecture((d, d_out), d, tokens=t, kind="softmax"), f"d = {d}, d' = {d_out}, t = {t}"
        weights = random_weights(architecture, RR, work.seed)
        A, V = read_off_layer(partial(forward, weights), d, t, rng)
        head = weights.layers[0][0]
        error = max(float(np.abs(A - head.attention_matrix(RR)).max()), float(np.abs(V - head.V).max()))
        worst = max(worst, error)
        yield Check(f"{label}: values determine (A, V), error {digits.error(error)}", error < 1e-9)
        answer = dimension(architecture, prove=True, seed=work.seed)
        proven = answer.is_proven and answer.dimension == d * d + d * d_out
        yield Check(f"{label}: dimension {answer.dimension} = d² + d d', proven", proven)
    for t in (2, 3, 4):
        printed, ours, reduced = equation_34(t)
        yield Check(f"t = {t}: Equation 34 as printed is column 1 for x_2 = … = x_t", printed, "printed proof")
        yield Check(f"t = {t}: it is with (t−1) before the second term of the numerators", ours, "correction")
        statement = "then the difference is (t−1) S₁₁ (S'₁₂ − S₁₂)(V x₁ − V x₂), and the proof goes through"
        yield Check(f"t = {t}: {statement}", reduced, "correction")
    return {"values": {"largest error": float(f"{max(worst, DIFFERENT_OUTPUTS):.1e}")}}


def equation_34(t: int) -> tuple[bool, bool, bool]:
    """Whether the printed numerator, the corrected one, and the reduced Equation 35 hold as identities.

    a = S(x_1ᵀA x_1), b and c = S(x_1ᵀA x_2) for A and A', v = V x_1, w = V x_2 are independent variables.
    """
    a, b, c, v, w = QQ.polynomials(("a", "b", "c", "v", "w")).gens()
    total, n = sum([b * w] * (t - 1), a * v), t - 1
    return a * v + b * w == total, a * v + n * b * w == total, _is_reduced(n, a, b, c, v, w)


def _is_reduced(n: Any, a: Any, b: Any, c: Any, v: Any, w: Any) -> bool:
    """Whether two layers with x_2 = … = x_{n+1} differ by n a (c − b)(v − w) over the denominators (Equation 35)."""
    difference = (a * v + n * b * w) * (a + n * c) - (a * v + n * c * w) * (a + n * b)
    return bool(difference == n * a * (c - b) * (v - w))


@finds("identities of polynomials in the values of S; layers in double precision")
def run_normalizers(work: Work) -> Checks:
    """[G] Section 3.4: Theorem 3.9 for every injective S > 0, and e^{x/τ} for A is e^x for A/τ."""
    statement = (
        "x_2 = … = x_t, n = t − 1: the difference of two layers is n S₁₁ (S'₁₂ − S₁₂)(V x₁ − V x₂) over the"
        " denominators, for all t and all values of S"
    )
    yield Check(statement, _is_reduced(*QQ.polynomials(("n", "a", "b", "c", "v", "w")).gens()))
    e, x, y, t, k = QQ.polynomials(("e", "x", "y", "t", "k")).gens()
    first_order = (1 + k * e * x) * t - (t + k * e * y) == k * e * (t * x - y)
    statement = "for S smooth near 0, k = S'(0)/S(0): weights are 1/t + k (s_j − mean)/t + …, as in Theorem A"
    yield Check(statement, first_order)
    X = np.random.default_rng(work.seed).standard_normal((3, 3))
    for tau in ("1/2", "3"):
        warm = Architecture((3, 2), 2, tokens=3, kind="softmax", temperature=tau)
        weights = random_weights(warm, RR, work.seed)
        tensors = dict(weights.tensors())
        tensors["layers.0.Q"] = tensors["layers.0.Q"] / float(warm.temperature)
        cold = Weights.from_tensors(Architecture((3, 2), 2, tokens=3, kind="softmax"), tensors, RR)
        gap = float(np.abs(forward(weights, X) - forward(cold, X)).max())
        yield Check(f"τ = {tau}: the layer (A, V) at temperature τ is (A/τ, V), error {digits.error(gap)}", gap < 1e-12)


@finds(
    "finite consequences: dimensions with certificates; outputs of a finite list in double precision",
    primes=(BLAS_PRIME,),
)
def run_deep_softmax(work: Work) -> Checks:
    """[G] Conjecture 3.10: Equation 16 is the dimension, and the (M, L) of a finite list give different functions."""
    widths = work.choose(
        bottlenecks((2, 3), ((0, 0), (1, 0)), (2, 3)), bottlenecks((2, 3, 4), ((0, 0), (1, 0), (1, 2)), (2, 3, 4))
    )
    nets = [_network(w, a) for w, a in product(widths, work.choose((2,), (1, 2, 3)))]
    expected = {net: _expected(net) for net in nets}
    statement = f"Equation 16 is the dimension of all {len(expected)} networks: generic fibers in (M, L) are finite"
    yield from check_dimensions(statement, expected, work.seed)
    nets = [_network(w, 2) for w in work.choose(((2, 2, 2),), ((2, 2, 2), (3, 3, 3), (3, 2, 3), (2, 2, 2, 2)))]
    balls = all(dimension(net, method="balls", seed=work.seed).lower_bound == _expected(net) for net in nets)
    statement = f"true exponentials in ball arithmetic certify the same rank for {len(nets)} networks"
    yield Check(statement, balls, "support")
    networks, closest, coincide = compare_softmax(work.seed)
    statement = (
        f"d = 2, l = 2, d_l = 1, t = 3: no two of the {networks} networks with entries in [−1, 0, 1], rk M_i = 2"
        " and L ≠ 0 agree at two random inputs"
    )
    yield Check(statement, coincide == 0)
    return {"values": {"networks compared": networks, "closest pair of outputs": float(f"{closest:.1e}")}}


def _network(widths: tuple[int, ...], a: int) -> Architecture:
    return Architecture(widths, a, tokens=3, kind="softmax")


def _expected(net: Architecture) -> int:
    """The dimension of Equation 16."""
    known = free_network(net)
    assert known is not None
    return known.value


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
    return len(values), float(gaps.min()), int(np.sum(gaps < DIFFERENT_OUTPUTS))
