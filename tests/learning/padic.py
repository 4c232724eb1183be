"""Volumes over the 3-adic integers, which stand for volumes near a real point: an exact count in place of sampling.

The measure of {w ∈ w_0 + p Z_p^N : f(w) ≡ f(w_0) mod p^n} falls like n^(m−1) p^(−2λn) for polynomials f. A solution mod
p^n has solutions mod p^(n+1) above it if and only if one linear system over GF(p) is solvable, and they are then an
affine space of known size: particles are lifted without rejection of their own, and only the share of solvable systems
is estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from attngeom.exact.domains import QQ
from attngeom.learning.chains import product_ranks
from attngeom.network import Architecture, Weights

Run = Callable[[np.ndarray, int], np.ndarray]
PRIME = 3


def reduced(matrix: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """(R, U, pivots) with R = U · matrix in reduced row echelon form over GF(p)."""
    R, U, pivots = matrix % p, np.eye(len(matrix), dtype=np.int64), []
    for column in range(R.shape[1]):
        row = len(pivots)
        below = np.flatnonzero(R[row:, column]) + row
        if not len(below):
            continue
        for M in (R, U):
            M[[row, below[0]]] = M[[below[0], row]]
        inverse = pow(int(R[row, column]), -1, p)
        R[row], U[row] = R[row] * inverse % p, U[row] * inverse % p
        factors = R[:, column].copy()
        factors[row] = 0
        R, U = (R - factors[:, None] * R[row]) % p, (U - factors[:, None] * U[row]) % p
        pivots.append(column)
        if len(pivots) == len(R):
            break
    return R, U, pivots


def volume_exponents(run: Run, start: np.ndarray, seed: int, particles: int, levels: int) -> list[float]:
    """−log_p of the ratios of successive volumes of run(w) ≡ run(start) mod p^n, half of them.

    ``run`` takes many integer vectors (M, N) and a modulus to rows (M, ·) of polynomials in each vector. The exponents
    tend to λ, from below if m > 1; an empty list says that no particle is left.
    """
    p, count = PRIME, len(start)
    modulus, rng = p**levels, np.random.default_rng(seed)
    target = run(start[None] % modulus, modulus)[0]
    steps = (start + p**6 * np.eye(count, dtype=np.int64)) % modulus
    jacobian = (run(steps, modulus) - target) % modulus // p**6 % p
    R, U, pivots = reduced(jacobian.T, p)
    rank, free = len(pivots), [c for c in range(count) if c not in pivots]
    w, found = np.repeat(start[None] % modulus, particles, axis=0), []
    for level in range(1, levels):
        gaps = (run(w, modulus) - target) % modulus // p**level
        right = -gaps @ U.T % p
        alive = np.flatnonzero(~right[:, rank:].any(axis=1))
        if not len(alive):
            return []
        found.append((rank - np.log(len(alive) / particles) / np.log(p)) / 2)
        chosen = rng.choice(alive, particles)
        step = np.zeros((particles, count), dtype=np.int64)
        step[:, free] = rng.integers(0, p, size=(particles, len(free)))
        step[:, pivots] = (right[chosen, :rank] - step[:, free] @ R[:rank][:, free].T) % p
        w = (w[chosen] + p**level * step) % modulus
    return found


def predicted_exponent(value: Any, multiplicity: int, levels: int, tail: int) -> float:
    """The mean exponent of the last levels if volumes are n^(m−1) p^(−2λn)."""
    last = np.arange(levels - tail, levels)
    return float(value) - (multiplicity - 1) * float(np.mean(np.log((last + 1) / last)) / np.log(PRIME)) / 2


def lightning_outputs(architecture: Architecture, vectors: np.ndarray, modulus: int, X: np.ndarray) -> np.ndarray:
    """The outputs of many weights (M, N) at inputs (S, d, t), mod a power of p, as rows (M, ·)."""
    place, Y = 0, np.broadcast_to(X[None], (len(vectors), *X.shape)) % modulus
    shapes = iter(architecture.tensor_shapes())
    for _ in range(architecture.num_layers):
        total: Any = 0
        for _ in range(architecture.heads):
            tensors = []
            for _ in range(4 if architecture.is_factored else 3):
                _, (rows, columns) = next(shapes)
                tensors.append(vectors[:, place : place + rows * columns].reshape(-1, 1, rows, columns))
                place += rows * columns
            Q, K, *values = tensors
            scores = np.swapaxes(K @ Y % modulus, -1, -2) @ (Q @ Y % modulus) % modulus
            if architecture.causal:
                scores = np.triu(scores)
            V = Y
            for matrix in values:
                V = matrix @ V % modulus
            total = (total + V @ scores) % modulus
        Y = (total + Y) % modulus if architecture.residual else total
    return Y.reshape(len(vectors), -1)


def listed(weights: Weights) -> np.ndarray:
    """Integer weights as a vector."""
    return np.array([int(x) for _, array in weights.tensors() for x in array.ravel()], dtype=np.int64)


def random_tensor(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Small integers of a random rank, the same over Q and over GF(p)."""
    largest = min(rows, columns)
    rank = int(rng.integers(0, largest + 1)) if rng.random() < 0.55 else largest
    while True:
        found = rng.integers(-1, 2, size=(rows, rank)) @ rng.integers(-1, 2, size=(rank, columns))
        if np.linalg.matrix_rank(found) == rank == len(reduced(found.astype(np.int64), PRIME)[2]):
            return found


def draw_factors(rng: np.random.Generator, length: int, widest: int) -> list[np.ndarray]:
    """Factors of random ranks, zero ones among them, whose products have the same ranks over Q and over GF(3)."""
    while True:
        widths = [int(x) for x in rng.integers(1, widest + 1, length + 1)]
        factors = [random_tensor(rng, b, a).astype(np.int64) for a, b in pairwise(widths)]
        ranks = product_ranks([QQ.convert(F) for F in factors], QQ)
        if all(ranks[a, b] == rank_mod(factors[a:b]) for a, b in ranks if a < b):
            return factors


def rank_mod(factors: list[np.ndarray]) -> int:
    """The rank over GF(3) of the product."""
    total = factors[0]
    for F in factors[1:]:
        total = F @ total
    return len(reduced(total, PRIME)[2])


def multiply(factors: list[np.ndarray]) -> Run:
    """The product of the factors, as a map of the vector of all their entries."""

    def run(vectors: np.ndarray, modulus: int) -> np.ndarray:
        place, total = 0, None
        for F in factors:
            own = vectors[:, place : place + F.size].reshape(-1, *F.shape)
            place += F.size
            total = own if total is None else own @ total % modulus
        assert total is not None
        return total.reshape(len(vectors), -1)

    return run


def draw_softmax(rng: np.random.Generator) -> Weights:
    """Deep softmax of one head: blind and skew layers, equal and zero factors, narrow and wide hidden layers."""
    hidden = int(rng.integers(1, 3))
    widths = [hidden + int(rng.integers(0, 2)), *[hidden] * int(rng.integers(1, 3)), int(rng.integers(1, 3))]
    if rng.random() < 0.3:
        widths = [int(x) for x in rng.integers(1, 3, len(widths))]
    a = int(rng.integers(1, 3))
    architecture = Architecture(widths, a, tokens=int(rng.integers(2, 4)), kind="softmax")
    tensors = {}
    for layer, (d, e) in enumerate(pairwise(widths)):
        Q, K, V = (random_tensor(rng, rows, d) for rows in (a, a, e))
        case = rng.random()
        if case < 0.15:
            K = 0 * K
        elif case < 0.3 and d == a == 2:
            K, Q = np.array([[1, 0], [0, 1]]), np.array([[0, 1], [-1, 0]])
        elif case < 0.4:
            Q = K
        tensors |= {f"layers.{layer}.{name}": QQ.convert(x) for name, x in zip("QKV", (Q, K, V))}
    return Weights.from_tensors(architecture, tensors, QQ)


def virtual_weights(architecture: Architecture, seen: int) -> Run:
    """w ↦ (M_1, …, M_s, L) mod a number."""

    def run(vectors: np.ndarray, modulus: int) -> np.ndarray:
        place, parts = 0, []
        L = np.repeat(np.eye(architecture.widths[0], dtype=np.int64)[None], len(vectors), axis=0)
        for layer in range(architecture.num_layers):
            tensors = []
            for rows, columns in architecture.layer(layer).tensor_shapes.values():
                tensors.append(vectors[:, place : place + rows * columns].reshape(-1, rows, columns))
                place += rows * columns
            Q, K, V = tensors
            if layer < seen:
                M = np.swapaxes(K @ L % modulus, 1, 2) @ (Q @ L % modulus) % modulus
                parts.append(M.reshape(len(vectors), -1))
            L = V @ L % modulus
        return np.concatenate([*parts, L.reshape(len(vectors), -1)], axis=1)

    return run


def matrices(weights: Weights) -> tuple[list[np.ndarray], np.ndarray]:
    """M_1, …, M_l and L as floats."""
    point = weights.virtual()
    return [np.array(M.tolist(), dtype=float) for M in point.M], np.array(point.L.tolist(), dtype=float)


def seen_layers(weights: Weights) -> int:
    """s, by its definition."""
    M, _ = matrices(weights)
    is_blind = [not np.any(m + m.T if weights.architecture.tokens == 2 else m) for m in M[:-1]]
    return is_blind.index(True) + 1 if True in is_blind else len(M)


def same_ranks(weights: Weights) -> bool:
    """Whether all ranks that the theorems speak of are the same over GF(3)."""
    M, L = matrices(weights)
    tensors = [np.array(x.tolist(), dtype=float) for _, x in weights.tensors()]
    products = [K.T @ Q for Q, K, _ in zip(*[iter(tensors)] * 3)]
    values = tensors[2::3]
    for a in range(len(values)):
        for b in range(a + 2, len(values) + 1):
            products.append(np.linalg.multi_dot(values[a:b][::-1]))
    stacked = [np.concatenate([L, *(x for m in M[1:n] for x in (m, m.T))]) for n in range(1, len(M) + 1)]
    listed_matrices = [*tensors, *products, *M, *stacked, L]
    ranks = [(np.linalg.matrix_rank(x), len(reduced(np.rint(x).astype(np.int64), PRIME)[2])) for x in listed_matrices]
    return all(first == second for first, second in ranks)
