"""[G] Lemma 3.5: weights (A, V) with the same virtual weights (M, L) differ by one group element between the layers."""

from __future__ import annotations

import numpy as np

from attngeom.exact import QQ
from attngeom.exact.domains import Array
from attngeom.network import Architecture, Weights, random_weights
from attngeom.network.factorization import factor_attention
from attngeom.network.weights import weights_from_matrices
from attngeom.papers.deep import bottlenecks
from attngeom.papers.records import Check, Finding, Work


def run_virtual_fibers(work: Work) -> Finding:
    """[G] Lemma 3.5: (A, V) ↦ (M, L) has fibers Π GL(δ) when rk L = δ, with unique C_i."""
    checks = []
    for widths in work.choose(bottlenecks((2,), ((1, 0),), (2, 3)), bottlenecks((2, 3), ((0, 0), (1, 2)), (2, 3, 4))):
        architecture = Architecture(widths, max(widths))
        weights = _random_full_rank(architecture, work.seed)
        delta, layers = widths[1], architecture.num_layers
        other = _canonical_factors(weights)
        found = _find_gauge(weights, other)
        checks.append(
            Check(f"widths {widths}: one C carries random (A, V) to the echelon factors of the same (M, L)", found)
        )
        kernel = _virtual_kernel(weights)
        expected = (layers - 1) * delta**2
        checks.append(Check(f"widths {widths}: the fiber has dimension {kernel} = (l−1)δ²", kernel == expected))
    return Finding(
        "two independent factorizations over Q are matched; kernel of the differential over Q", tuple(checks)
    )


def _random_full_rank(architecture: Architecture, seed: int) -> Weights:
    """Random rational weights with rk L = δ, by rejection."""
    while True:
        weights = random_weights(architecture, QQ, seed)
        if QQ.rank(weights.virtual().L) == architecture.widths[1]:
            return weights
        seed += 1000


def _canonical_factors(weights: Weights) -> Weights:
    """Weights with the same virtual weights, from the reduced echelon form of L instead of the given V_i."""
    architecture = weights.architecture
    virtual, delta = weights.virtual(), architecture.widths[1]
    _, columns, rows = _rank_factors(virtual.L, delta)
    V = [rows] + [QQ.eye(delta)] * (architecture.num_layers - 2) + [columns]
    A = [virtual.M[0]]
    for M in virtual.M[1:]:
        half = QQ.solve(rows.T, M)
        inner = QQ.solve(rows.T, half.T) if half is not None else None
        assert inner is not None
        A.append(inner.T)
    return weights_from_matrices(architecture, A, V, QQ)


def _rank_factors(L: Array, size: int) -> tuple[int, Array, Array]:
    """L = columns · rows with ``size`` columns, from a reduced echelon form."""
    n = max(L.shape)
    square = QQ.zeros((n, n))
    square[: L.shape[0], : L.shape[1]] = L
    rows, columns = factor_attention(square, size, QQ)
    return size, columns.T[: L.shape[0]], rows[:, : L.shape[1]]


def _find_gauge(first: Weights, second: Weights) -> bool:
    """Whether unique C_i with V'_i = C_i V_i C_{i−1}⁻¹ and A'_{i+1} = C_i⁻ᵀ A_{i+1} C_i⁻¹ exist, C_0 = C_l = I."""
    multiply = QQ.matmul
    L, moved, C = (
        QQ.eye(first.architecture.widths[0]),
        QQ.eye(first.architecture.widths[0]),
        QQ.eye(first.architecture.widths[0]),
    )
    layers = list(
        zip(first.attention_matrices(), second.attention_matrices(), first.value_matrices(), second.value_matrices())
    )
    for index, ((A,), (B,), (V,), (W,)) in enumerate(layers):
        if not QQ.equal(multiply(C.T, multiply(B, C)), A):
            return False
        L, moved = multiply(V, L), multiply(W, moved)
        if index == len(layers) - 1:
            return QQ.equal(multiply(W, C), V)
        found = QQ.solve(L.T, moved.T)
        if found is None or QQ.rank(L) != V.shape[0] or not QQ.equal(multiply(found.T, V), multiply(W, C)):
            return False
        C = found.T
    return False


def _virtual_kernel(weights: Weights) -> int:
    """The dimension of the kernel of the differential of (A, V) ↦ (M, L) over Q at these weights."""
    multiply = QQ.matmul
    A = [matrix for (matrix,) in weights.attention_matrices()]
    V = [matrix for (matrix,) in weights.value_matrices()]
    rows = []
    for kind, matrices in (("A", A), ("V", V)):
        for layer, matrix in enumerate(matrices):
            for i, j in np.ndindex(*matrix.shape):
                change = matrix - matrix
                change[i, j] += 1
                L, dL, parts = QQ.eye(weights.architecture.widths[0]), None, []
                for k, (a, v) in enumerate(zip(A, V)):
                    dA = change if (kind, layer) == ("A", k) else a - a
                    dV = change if (kind, layer) == ("V", k) else v - v
                    slope = L - L if dL is None else dL
                    half = multiply(slope.T, multiply(a, L))
                    other = multiply(L.T, multiply(a, slope))
                    parts.append((half + other + multiply(L.T, multiply(dA, L))).ravel())
                    dL, L = multiply(dV, L) + multiply(v, slope), multiply(v, L)
                assert dL is not None
                rows.append(np.concatenate([*parts, dL.ravel()]))
    return len(rows) - QQ.rank(np.stack(rows))
