"""[G] Section 3.3: virtual weights, the unrolled word, scalings, and the dimension of deep lightning networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from math import prod

import numpy as np

from attngeom.dimensions.formulas import deep_lightning
from attngeom.exact import BIG_PRIME, BLAS_PRIME, GF, QQ, WORD_PRIME
from attngeom.exact.domains import Array
from attngeom.network import Architecture, Weights, forward, random_weights
from attngeom.network.virtual import forward_recursion, forward_word, word
from attngeom.network.weights import VirtualWeights
from attngeom.papers.dimensions import check_dimensions
from attngeom.papers.records import Check, Checks, Part, Work, finds
from attngeom.papers.symbolic import generic

FIELD = GF(BIG_PRIME)
SYMBOLIC = (((2, 2), 2), ((1, 1, 1), 2), ((1, 1, 1), 3), ((2, 1, 1), 2))
"""Widths and t of networks with generic weights, a = 1; quick runs take the first two."""
QUICK_SIZES = (((3, 2, 3), 2, 3), ((2, 2, 2, 2), 2, 2))
FULL_SIZES = (((3, 2, 3), 2, 3), ((2, 3, 2, 2), 2, 2), ((2,) * 5, 2, 3), ((3,) * 6, 2, 2))
"""Widths, a and t of networks with random weights mod p."""
EVIDENCE = "identity of polynomials for small sizes; random points mod 2⁶¹ − 1 for deeper networks"


def bottlenecks(
    deltas: Sequence[int], extra: Sequence[tuple[int, int]], depths: Sequence[int]
) -> list[tuple[int, ...]]:
    """Widths (δ + x, δ, …, δ, δ + y) of networks with the given depths."""
    return [(delta + x, *(delta,) * (l - 1), delta + y) for delta in deltas for x, y in extra for l in depths]


def _compare(evaluate: Callable[[VirtualWeights, Array], Array], work: Work, name: str, part: Part = "claim") -> Checks:
    """Whether a formula in the virtual weights gives the output of the network."""
    for widths, t in work.choose(SYMBOLIC[:2], SYMBOLIC):
        architecture = Architecture(widths, 1, tokens=t)
        letters = {name: name.replace("layers.", "w").replace(".", "") for name, _ in architecture.tensor_shapes()}
        shapes = {letters[name]: shape for name, shape in architecture.tensor_shapes()}
        ring, *matrices, X = generic(**shapes, x=(widths[0], t))
        weights = Weights.from_tensors(architecture, dict(zip(letters, matrices)), ring)
        same = ring.equal(forward(weights, X), evaluate(weights.virtual(), X))
        yield Check(f"widths {widths}, a = 1, t = {t}: {name} equals the network in Q[Q, K, V, X]", same, part)
    degree = 1
    for widths, a, t in work.choose(QUICK_SIZES, FULL_SIZES):
        weights = random_weights(Architecture(widths, a, tokens=t), FIELD, work.seed)
        X = FIELD.random((widths[0], t), np.random.default_rng(work.seed))
        same = FIELD.equal(forward(weights, X), evaluate(weights.virtual(), X))
        degree = max(degree, 2 * 3 ** (len(widths) - 1) * 2)
        yield Check(f"widths {widths}, a = {a}, t = {t}: equal at a random point mod 2⁶¹ − 1", same, part)
    return {"error_bound": degree / BIG_PRIME}


@finds(EVIDENCE, primes=(BIG_PRIME,))
def run_recursion(work: Work) -> Checks:
    """[G] Lemma 3.6: the network equals L X Π (D_{l−i} Xᵀ M_{l−i+1} X)."""
    return _compare(forward_recursion, work, "the recursion")


@finds(
    EVIDENCE,
    "l = d = 1, t = 2, all weights 1, X = (1, 2): the network gives (5, 10), the printed formula Σ_k L x_k x_1 A_1 x"
    " gives (3, 6)",
    (BIG_PRIME,),
)
def run_word(work: Work) -> Checks:
    """[G] Equation 12: the unrolled word; its last token must be x_{k_m}, not x_m."""
    lengths = [len(word(l)) for l in range(1, 6)]
    expected = [(3**l - 1) // 2 for l in range(1, 6)]
    yield Check(f"lengths {lengths} of the word for l = 1 … 5 are (3^l − 1)/2", lengths == expected)
    X, ones = QQ.convert([[1, 2]]), {f"layers.0.{name}": [[1]] for name in "QKV"}
    network = forward(Weights.from_tensors(Architecture((1, 1), 1, tokens=2), ones, QQ), X)[0].tolist()
    printed = [sum(int(x) for x in X[0]) * int(X[0, 0]) * int(x) for x in X[0]]
    statement = f"as printed, l = d = 1, t = 2, X = (1, 2): {printed} is the output {network}"
    yield Check(statement, printed == network)
    count = yield from _compare(forward_word, work, "the word", "correction")
    return {"values": {"letters": lengths}, **count}


@finds("letters of the word counted; random points mod 2⁶¹ − 1", primes=(BIG_PRIME,))
def run_scales(work: Work) -> Checks:
    """[G] Equation 13: M_i ↦ λ_i M_i, L ↦ ρ L multiplies the function by ρ Π λ_i^(3^(l−i))."""
    rng = np.random.default_rng(work.seed)
    for l in range(1, work.choose(4, 6)):
        powers = [3 ** (l - i) for i in range(1, l + 1)]
        counts = [sum(index == i for index, _ in word(l)) for i in range(1, l + 1)]
        yield Check(f"l = {l}: M_i occurs {counts} times in the word: 3^(l−i)", counts == powers)
        M = tuple(FIELD.random((2, 2), rng) for _ in range(l))
        L, X = FIELD.random((2, 2), rng), FIELD.random((2, 3), rng)
        scales = [int(x) for x in FIELD.random((l,), rng)]
        rho = pow(prod(pow(scale, power, BIG_PRIME) for scale, power in zip(scales, powers)), -1, BIG_PRIME)
        scaled = tuple(FIELD.reduce(m * s) for m, s in zip(M, scales))
        outputs = [
            forward_recursion(VirtualWeights(matrices, FIELD.reduce(L * factor), FIELD), X)
            for matrices, factor in ((M, 1), (scaled, rho), (scaled, 2 * rho % BIG_PRIME))
        ]
        same, changed = FIELD.equal(outputs[0], outputs[1]), not FIELD.equal(outputs[0], outputs[2])
        yield Check(f"l = {l}: random λ with the ρ of Equation 13 leave the output unchanged", same)
        yield Check(f"l = {l}: twice that ρ changes it", changed, "support")
    return {"error_bound": 1000 / BIG_PRIME}


@finds("", primes=(BLAS_PRIME, WORD_PRIME))
def run_deep_dimension(work: Work) -> Checks:
    """[G] Corollary 3.8: the dimension of bottleneck networks, with certificates."""
    widths = work.choose(
        bottlenecks((2, 3), ((0, 0), (1, 0)), (2, 3)),
        bottlenecks((2, 3, 4), ((0, 0), (1, 0), (0, 2), (2, 3)), (2, 3, 4)),
    )
    cases = [Architecture(w, a, tokens=3) for w, a in product(widths, work.choose((2,), (2, 3, 5)))]
    expected = {}
    for net in cases:
        known = deep_lightning(net)
        assert known is not None and known.applies
        expected[net] = known.value
    sizes = f"l ≤ {max(net.num_layers for net in cases)}, dimension ≤ {max(expected.values())}"
    statement = f"Equation 14 gives the dimension of all {len(cases)} networks ({sizes})"
    yield from check_dimensions(statement, expected, work.seed)
    return {"evidence": f"certificates for {len(cases)} bottleneck networks, t = 3"}


@finds("two independent factorizations over Q are matched; kernel of the differential over Q")
def run_virtual_fibers(work: Work) -> Checks:
    """[G] Lemma 3.5: (A, V) ↦ (M, L) has fibers Π GL(δ) when rk L = δ, with unique C_i."""
    for widths in work.choose(bottlenecks((2,), ((1, 0),), (2, 3)), bottlenecks((2, 3), ((0, 0), (1, 2)), (2, 3, 4))):
        weights = _random_full_rank(Architecture(widths, max(widths)), work.seed)
        A = [matrix for (matrix,) in weights.attention_matrices()]
        V = [matrix.copy() for (matrix,) in weights.value_matrices()]
        gauge = _find_gauge(A, V, *_echelon_factors(weights.virtual()))
        yield Check(f"widths {widths}: one C carries random (A, V) to the echelon factors of the same (M, L)", gauge)
        kernel, delta = _virtual_kernel(A, V), widths[1]
        holds = kernel == (len(A) - 1) * delta**2
        yield Check(f"widths {widths}: the fiber has dimension {kernel} = (l−1)δ²", holds)


def _random_full_rank(architecture: Architecture, seed: int) -> Weights:
    """Random rational weights with rk L = δ, by rejection."""
    while True:
        weights = random_weights(architecture, QQ, seed)
        if QQ.rank(weights.virtual().L) == architecture.widths[1]:
            return weights
        seed += 1000


def _echelon_factors(virtual: VirtualWeights) -> tuple[list[Array], list[Array]]:
    """(A, V) with these virtual weights: L = columns · rows from its reduced echelon form, unit matrices between."""
    echelon = QQ.rref(virtual.L)
    pivots = list(echelon.pivots)
    V = [echelon.matrix, *[QQ.eye(len(pivots))] * (len(virtual.M) - 2), virtual.L[:, pivots]]
    # rows · pivot columns = I, so the block of M at the pivots is the A with M = rowsᵀ A rows.
    return [virtual.M[0], *(M[np.ix_(pivots, pivots)] for M in virtual.M[1:])], V


def _find_gauge(A: list[Array], V: list[Array], other_A: list[Array], other_V: list[Array]) -> bool:
    """Whether unique C_i with V'_i = C_i V_i C_{i−1}⁻¹ and A'_{i+1} = C_i⁻ᵀ A_{i+1} C_i⁻¹ exist, C_0 = C_l = I."""
    multiply = QQ.matmul
    gauge = [QQ.eye(len(A[0]))]
    L = moved = gauge[0]
    for v, w in zip(V[:-1], other_V):
        L, moved = multiply(v, L), multiply(w, moved)
        solution = QQ.solve(L.T, moved.T)
        if solution is None or QQ.rank(L) != len(v):
            return False
        gauge.append(solution.T)
    gauge.append(QQ.eye(len(V[-1])))
    values = all(QQ.equal(multiply(D, v), multiply(w, C)) for (C, D), v, w in zip(pairwise(gauge), V, other_V))
    scores = all(QQ.equal(multiply(C.T, multiply(b, C)), a) for C, a, b in zip(gauge, A, other_A))
    return values and scores


def _virtual_vector(A: list[Array], V: list[Array]) -> Array:
    """The entries of M_i = L_{i−1}ᵀ A_i L_{i−1} and of L = L_l, L_i = V_i ⋯ V_1."""
    L, parts = QQ.eye(len(A[0])), []
    for a, v in zip(A, V):
        parts.append(QQ.matmul(L.T, QQ.matmul(a, L)).ravel())
        L = QQ.matmul(v, L)
    return np.concatenate([*parts, L.ravel()])


def _virtual_kernel(A: list[Array], V: list[Array]) -> int:
    """The dimension of the kernel of the differential of (A, V) ↦ (M, L) over Q.

    (M, L) is of degree at most 2 in every entry of A and V, so central differences are derivatives.
    """
    differences = []
    for matrix in (*A, *V):
        for place in np.ndindex(matrix.shape):
            matrix[place] += 1
            ahead = _virtual_vector(A, V)
            matrix[place] -= 2
            differences.append(ahead - _virtual_vector(A, V))
            matrix[place] += 1
    return len(differences) - QQ.rank(np.stack(differences))
