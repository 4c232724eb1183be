"""[G] Section 3.3: virtual weights, the unrolled word, scalings, and the dimension of deep lightning networks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from attngeom.dimensions import dimension
from attngeom.dimensions.certificate import certify_dimension
from attngeom.dimensions.formulas import deep_lightning
from attngeom.exact import BIG_PRIME, BLAS_PRIME, GF, QQ, WORD_PRIME
from attngeom.exact.domains import Array, PolynomialDomain
from attngeom.exact.polynomials import polynomial_ring
from attngeom.network import Architecture, Weights, forward, random_symmetry, random_weights
from attngeom.network.virtual import forward_recursion, forward_word, word
from attngeom.network.weights import VirtualWeights
from attngeom.papers.records import Check, Finding, Work
from attngeom.verification import verify


def bottlenecks(
    deltas: Sequence[int], extra: Sequence[tuple[int, int]], depths: Sequence[int]
) -> list[tuple[int, ...]]:
    """Widths (δ + x, δ, …, δ, δ + y) of networks with the given depths.

    >>> bottlenecks([2], [(0, 1)], [2])
    [(2, 2, 3)]
    """
    return [(delta + x, *(delta,) * (l - 1), delta + y) for delta in deltas for x, y in extra for l in depths]


def generic_network(architecture: Architecture) -> tuple[Weights, Array, PolynomialDomain]:
    """A network with generic weights and input, over the polynomial ring in their entries."""
    shapes = {name.replace(".", "").replace("layers", "w"): shape for name, shape in architecture.tensor_shapes()}
    ring = PolynomialDomain.of(**shapes, x=(architecture.widths[0], architecture.tokens))
    tensors = {
        name: ring.matrix(name.replace(".", "").replace("layers", "w"), *shape)
        for name, shape in architecture.tensor_shapes()
    }
    return (
        Weights.from_tensors(architecture, tensors, ring),
        ring.matrix("x", architecture.widths[0], architecture.tokens),
        ring,
    )


def run_recursion(work: Work) -> Finding:
    """[G] Lemma 3.6: the network equals L X Π (D_{l−i} Xᵀ M_{l−i+1} X)."""
    return _compare(forward_recursion, work, "the recursion")


def _compare(evaluate: Any, work: Work, name: str) -> Finding:
    checks = []
    for widths, t in work.choose(
        (((2, 2), 2), ((1, 1, 1), 2)), (((2, 2), 2), ((1, 1, 1), 2), ((1, 1, 1), 3), ((2, 1, 1), 2))
    ):
        weights, X, ring = generic_network(Architecture(widths, 1, tokens=t))
        same = ring.equal(forward(weights, X), evaluate(weights.virtual(), X))
        checks.append(Check(f"widths {widths}, a = 1, t = {t}: {name} equals the network in Q[Q, K, V, X]", same))
    field, degree = GF(BIG_PRIME), 1
    for widths, a, t in work.choose(
        (((3, 2, 3), 2, 3), ((2, 2, 2, 2), 2, 2)),
        (((3, 2, 3), 2, 3), ((2, 3, 2, 2), 2, 2), ((2,) * 5, 2, 3), ((3,) * 6, 2, 2)),
    ):
        weights = random_weights(Architecture(widths, a, tokens=t), field, work.seed)
        X = field.random((widths[0], t), np.random.default_rng(work.seed))
        same = field.equal(forward(weights, X), evaluate(weights.virtual(), X))
        degree = max(degree, 2 * 3 ** (len(widths) - 1) * 2)
        checks.append(Check(f"widths {widths}, a = {a}, t = {t}: equal at a random point mod 2⁶¹ − 1", same))
    evidence = "identity of polynomials for small sizes; random points mod 2⁶¹ − 1 for deeper networks"
    return Finding(evidence, tuple(checks), primes=(BIG_PRIME,), error_bound=degree / BIG_PRIME)


def run_word(work: Work) -> Finding:
    """[G] Equation 12: the unrolled word; its last token must be x_{k_m}, not x_m."""
    found = _compare(forward_word, work, "the word")
    X, ones = QQ.convert([[1, 2]]), {f"layers.0.{name}": [[1]] for name in "QKV"}
    weights = Weights.from_tensors(Architecture((1, 1), 1, tokens=2), ones, QQ)
    network = forward(weights, X)[0].tolist()
    printed = [sum(int(x) for x in X[0]) * int(X[0, 0]) * int(x) for x in X[0]]
    lengths = [len(word(l)) for l in range(1, 6)]
    checks = (
        Check(
            f"lengths {lengths} of the word for l = 1 … 5 are (3^l − 1)/2",
            lengths == [(3**l - 1) // 2 for l in range(1, 6)],
        ),
        Check(f"as printed, l = d = 1, t = 2, X = (1, 2): {printed} is the output {network}", printed == network),
        *(Check(check.statement, check.holds, "correction") for check in found.checks),
    )
    example = (
        "l = d = 1, t = 2, all weights 1, X = (1, 2): the network gives (5, 10),"
        " the printed formula Σ_k L x_k x_1 A_1 x gives (3, 6)"
    )
    return Finding(found.evidence, checks, {"letters": lengths}, example, found.primes, found.error_bound)


def run_scales(work: Work) -> Finding:
    """[G] Equation 13: M_i ↦ λ_i M_i, L ↦ ρ L multiplies the function by ρ Π λ_i^(3^(l−i))."""
    field, rng = GF(BIG_PRIME), np.random.default_rng(work.seed)
    checks = []
    for l in range(1, work.choose(4, 6)):
        counts = [sum(index == i for index, _ in word(l)) for i in range(1, l + 1)]
        checks.append(
            Check(
                f"l = {l}: M_i occurs {counts} times in the word: 3^(l−i)",
                counts == [3 ** (l - i) for i in range(1, l + 1)],
            )
        )
        M = tuple(field.random((2, 2), rng) for _ in range(l))
        L, X = field.random((2, 2), rng), field.random((2, 3), rng)
        scales = [int(x) for x in field.random((l,), rng)]
        product_of_scales = 1
        for i, scale in enumerate(scales):
            product_of_scales = product_of_scales * pow(scale, 3 ** (l - 1 - i), BIG_PRIME) % BIG_PRIME
        rho = pow(product_of_scales, -1, BIG_PRIME)
        virtual = VirtualWeights(M, L, field)
        moved = VirtualWeights(tuple(field.reduce(m * s) for m, s in zip(M, scales)), field.reduce(L * rho), field)
        same = field.equal(forward_recursion(virtual, X), forward_recursion(moved, X))
        checks.append(Check(f"l = {l}: random λ with the ρ of Equation 13 leave the output unchanged", same))
        wrong = VirtualWeights(moved.M, field.reduce(moved.L * 2), field)
        changed = not field.equal(forward_recursion(virtual, X), forward_recursion(wrong, X))
        checks.append(Check(f"l = {l}: twice that ρ changes it", changed, "support"))
    return Finding(
        "letters of the word counted; random points mod 2⁶¹ − 1",
        tuple(checks),
        primes=(BIG_PRIME,),
        error_bound=1000 / BIG_PRIME,
    )


def run_deep_dimension(work: Work) -> Finding:
    """[G] Corollary 3.8: the dimension of bottleneck networks, with certificates."""
    cases = work.choose(
        [(w, (2,)) for w in bottlenecks((2, 3), ((0, 0), (1, 0)), (2, 3))],
        [
            (w, a)
            for w in bottlenecks((2, 3, 4), ((0, 0), (1, 0), (0, 2), (2, 3)), (2, 3, 4))
            for a in ((2,), (3,), (5,))
        ],
    )
    wrong, unproven, invalid = [], [], []
    largest = 0
    for widths, attention in cases:
        architecture = Architecture(widths, attention, tokens=3)
        known = deep_lightning(architecture)
        answer = dimension(architecture, prove=True, seed=work.seed)
        assert known is not None and known.applies
        largest = max(largest, known.value)
        if answer.dimension != known.value:
            wrong.append(widths)
        if not answer.is_proven:
            unproven.append(widths)
        elif not verify(certify_dimension(answer)).valid:
            invalid.append(widths)
    deepest = max(len(widths) for widths, _ in cases) - 1
    checks = (
        Check(
            f"Equation 14 gives the dimension of all {len(cases)} networks (l ≤ {deepest}, dimension ≤ {largest})",
            not wrong,
        ),
        Check("every value is proven: a nonzero minor mod p meets the count of parameters", not unproven, "support"),
        Check("every certificate passes the independent verifier", not invalid, "support"),
    )
    return Finding(f"certificates for {len(cases)} bottleneck networks, t = 3", checks, primes=(BLAS_PRIME, WORD_PRIME))


def run_parameter_count(work: Work) -> Finding:
    """[G] Section 3.3: with a = δ = d the count is 3 d² l, not 3/2 d² l; the ratio to the dimension tends to 3."""
    counts = {(d, l): Architecture((d,) * (l + 1), d).num_parameters for d, l in product((1, 2, 3, 4), (1, 2, 3))}
    printed = all(2 * value == 3 * d * d * l for (d, l), value in counts.items())
    ours = all(value == 3 * d * d * l for (d, l), value in counts.items())
    proven = True
    for d, l in work.choose(((2, 2), (3, 2)), ((2, 2), (2, 3), (3, 2), (3, 3), (4, 3), (4, 4))):
        answer = dimension(Architecture((d,) * (l + 1), d, tokens=3), prove=True, seed=work.seed)
        proven &= answer.is_proven and answer.dimension == d * d * (l + 1) - l
    d, l = polynomial_ring(("d", "l")).gens()
    rest = 3 * d**2 * l - 3 * (d**2 * (l + 1) - l)
    checks = (
        Check("the dimension is d²(l + 1) − l", proven),
        Check("the number of parameters is (3/2) d² l, 50 % more than the dimension", printed),
        Check("the number of parameters is 3 d² l (2 d² l in the entries of A and V)", ours, "correction"),
        Check(
            "the ratio to the dimension tends to 3 as d and l grow: 3 + 3(l − d²)/(d²(l + 1) − l)",
            rest == 3 * (l - d**2),
            "correction",
        ),
    )
    return Finding(
        "parameters counted from the shapes; dimensions proven",
        checks,
        {},
        "d = l = 1: three weights Q, K, V, not 3/2",
        (BLAS_PRIME,),
    )


def run_shapes(work: Work) -> Finding:
    """[G] Definition 3: Q_i, K_i act on the input of layer i, so the count is Σ d_{i−1}(2a_i + d_i)."""
    architecture = Architecture((2, 1), 1)
    weights = random_weights(architecture, QQ, work.seed)
    output = forward(weights, QQ.random((2, 3), np.random.default_rng(work.seed)))
    printed, ours = 1 * (2 * 1 + 2), 2 * (2 * 1 + 1)
    checks = (
        Check(
            f"Σ d_i(2a_i + d_{{i−1}}) = {printed} counts the weights of widths (2, 1), a = 1",
            architecture.num_parameters == printed,
        ),
        Check(f"Σ d_{{i−1}}(2a_i + d_i) = {ours} does", architecture.num_parameters == ours, "correction"),
        Check(
            "with Q, K of shape a×d_{i−1} the layer maps 2×3 inputs to 1×3 outputs",
            output.shape == (1, 3),
            "correction",
        ),
    )
    example = "widths (2, 1), a = 1: Q and K must have 2 columns, which gives 6 weights; Definition 3 gives 4"
    return Finding("shapes that make the composition defined", checks, {}, example)


def run_skip(work: Work) -> Finding:
    """[G] Section 4 expects (M, L) to be generically one-to-one with skip connections; the scale symmetry survives."""
    checks = []
    architecture = Architecture((1, 1), 1, tokens=1, residual=True)
    first = Weights.from_tensors(architecture, {"layers.0.Q": [[1]], "layers.0.K": [[1]], "layers.0.V": [[1]]}, QQ)
    second = Weights.from_tensors(architecture, {"layers.0.Q": [[2]], "layers.0.K": [[1]], "layers.0.V": [["1/2"]]}, QQ)
    X = QQ.convert([[[x]] for x in range(-3, 4)])
    same = QQ.equal(forward(first, X), forward(second, X))
    checks.append(Check("with a skip connection the function determines (M, L) generically", not same))
    for widths in work.choose(((2, 2), (2, 2, 2)), ((2, 2), (2, 2, 2), (3, 3, 3), (3, 3, 3, 3))):
        net = Architecture(widths, 2, tokens=3, residual=True)
        answer = dimension(net, prove=True, seed=work.seed)
        d, l, alpha = widths[0], len(widths) - 1, min(2, widths[0])
        expected = l * (2 * alpha * d - alpha**2 + d * d - 1)
        label = f"skip connections, widths {widths}, a = 2: dimension {answer.dimension} = Σ (2αd − α² + d² − 1)"
        checks.append(Check(label, answer.is_proven and answer.dimension == expected, "support"))
    field = GF(WORD_PRIME)
    net = Architecture((2, 2, 2), 2, tokens=3, residual=True)
    weights = random_weights(net, field, work.seed)
    inputs = field.random((4, 2, 3), np.random.default_rng(work.seed))
    moved = weights.act(random_symmetry(net, field, work.seed))
    checks.append(
        Check(
            "the scalings (λ_i A_i, V_i/λ_i) of every layer leave the function unchanged",
            field.equal(forward(weights, inputs), forward(moved, inputs)),
            "correction",
        )
    )
    example = "l = d = a = t = 1: x + V A x³ is the same for (A, V) = (1, 1) and (2, 1/2)"
    return Finding(
        "two rational weights with equal outputs of degree 3 at 7 points; dimensions proven",
        tuple(checks),
        {},
        example,
        (BLAS_PRIME, WORD_PRIME),
    )
