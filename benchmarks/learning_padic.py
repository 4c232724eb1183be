"""Learning coefficients against p-adic volumes: an exact count in place of sampling near a point.

    python benchmarks/learning_padic.py [--random N --seed S] [--quick]

The measure of {w ∈ w_0 + p Z_p^N : f(w) ≡ f(w_0) mod p^n} falls like n^(m−1) p^(−2λn), f the outputs at random integer
inputs. A solution mod p^n has solutions mod p^(n+1) above it if and only if one linear system over GF(p) is solvable,
and they are then an affine space of known size: particles are lifted without rejection of their own, and only the share
of solvable systems is estimated. Lightning networks of any depth, heads, mask and skip. Where all particles die out the
row says so. ``--random`` draws weights of random ranks and compares `learning_coefficient` wherever it decides.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.learning.cases import POINTS

from attngeom.exact import QQ
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights
from contract import emit, require

PRIME, LEVELS, TAIL = 3, 13, 8
PARTICLES = 12000
MAX_PARAMETERS = 40
AGREES = 0.1
DRAWN = (
    Architecture((2, 2), 1, 2), Architecture((2, 2), 2, 2), Architecture((2, 1), 2, 2), Architecture((2, 3), 1, 2),
    Architecture((3, 2), 1, 2), Architecture((2, 2), 1, 2, causal=True), Architecture((2, 2), 2, 3, causal=True),
    Architecture((2, 2), 1, 2, heads=2, value_width=1), Architecture((2, 2, 2), 1, 2),
    Architecture((2, 2, 2), (1, 2), 2, residual=True), Architecture((2, 2), 1, 2, residual=True),
    Architecture((2, 2), 2, 2, heads=1, value_width=2), Architecture((2, 2, 1), 2, 2), Architecture((3, 3), 2, 2),
)  # fmt: skip


def outputs(architecture: Architecture, vectors: np.ndarray, X: np.ndarray, modulus: int) -> np.ndarray:
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


def exponents(weights: Weights, seed: int) -> list[float]:
    """−log_p of the ratios of successive volumes, half of them: they tend to λ from below if m > 1."""
    architecture, p = weights.architecture, PRIME
    modulus, rng = p**LEVELS, np.random.default_rng(seed)
    start = np.array([int(x) for _, array in weights.tensors() for x in array.ravel()], dtype=np.int64)
    count = len(start)
    samples = 2 * count // (architecture.widths[-1] * architecture.tokens) + 5
    X = rng.integers(-4, 5, size=(samples, architecture.widths[0], architecture.tokens))
    target = outputs(architecture, start[None] % modulus, X, modulus)[0]
    steps = (start + p**6 * np.eye(count, dtype=np.int64)) % modulus
    jacobian = (outputs(architecture, steps, X, modulus) - target) % modulus // p**6 % p
    R, U, pivots = reduced(jacobian.T, p)
    rank, free = len(pivots), [c for c in range(count) if c not in pivots]
    w, found = np.repeat(start[None] % modulus, PARTICLES, axis=0), []
    for level in range(1, LEVELS):
        gaps = (outputs(architecture, w, X, modulus) - target) % modulus // p**level
        right = -gaps @ U.T % p
        alive = np.flatnonzero(~right[:, rank:].any(axis=1))
        if not len(alive):
            return []
        found.append((rank - np.log(len(alive) / PARTICLES) / np.log(p)) / 2)
        chosen = rng.choice(alive, PARTICLES)
        step = np.zeros((PARTICLES, count), dtype=np.int64)
        step[:, free] = rng.integers(0, p, size=(PARTICLES, len(free)))
        step[:, pivots] = (right[chosen, :rank] - step[:, free] @ R[:rank][:, free].T) % p
        w = (w[chosen] + p**level * step) % modulus
    return found


def compare(name: str, weights: Weights, value: Any, multiplicity: int, seeds: tuple[int, ...] = (0, 1)) -> bool | None:
    """Print and emit one row: the mean exponent of the last levels for each seed, and what (λ, m) predicts there."""
    levels = np.arange(LEVELS - TAIL, LEVELS)
    logs = np.mean(np.log((levels + 1) / levels)) / np.log(PRIME)
    predicted = float(value) - (multiplicity - 1) * logs / 2
    means = [float(np.mean(found[-TAIL:])) for seed in seeds if (found := exponents(weights, seed))]
    verdict = max(abs(mean - predicted) for mean in means) <= AGREES if means else None
    for seed, mean in zip(seeds, means):
        emit("exponent of p-adic volumes", f"{name}, run {seed + 1}", round(mean, 3), unit="exponent")
        emit("exponent of p-adic volumes", f"{name}, run {seed + 1}", round(predicted, 3), "(λ, m)", unit="exponent")
    require(verdict is not False, f"the exponents of {name} are those of (λ, m)")
    word = {True: "agrees", False: "DISAGREES", None: "no particle is left"}[verdict]
    shown = " ".join(f"{mean:.3f}" for mean in means)
    print(f"{name:40} ({value}, {multiplicity})  predicted {predicted:.3f}  counted {shown}  {word}", flush=True)
    return verdict


def random_tensor(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Small integers of a random rank, the same over Q and over GF(p)."""
    largest = min(rows, columns)
    rank = int(rng.integers(0, largest + 1)) if rng.random() < 0.55 else largest
    while True:
        found = rng.integers(-1, 2, size=(rows, rank)) @ rng.integers(-1, 2, size=(rank, columns))
        if np.linalg.matrix_rank(found) == rank == len(reduced(found.astype(np.int64), PRIME)[2]):
            return found


def draw(number: int, seed: int) -> None:
    """Random points; what is not decided is counted, not compared."""
    rng = np.random.default_rng(seed)
    verdicts: list[bool | None] = []
    undecided = 0
    for index in range(number):
        architecture = DRAWN[index % len(DRAWN)]
        tensors = {name: random_tensor(rng, *shape) for name, shape in architecture.tensor_shapes()}
        weights = Weights.from_tensors(architecture, {name: QQ.convert(x) for name, x in tensors.items()}, QQ)
        answer = learning_coefficient(weights)
        if answer.value is None or answer.multiplicity is None:
            undecided += 1
            continue
        name = f"{architecture.widths} {answer.theorem} #{index}"
        verdicts.append(compare(name, weights, answer.value, answer.multiplicity, (0,)))
    print(
        f"{verdicts.count(True)} agree, {verdicts.count(False)} disagree, {verdicts.count(None)} died out,"
        f" {undecided} undecided of {number}, seed {seed}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0, help="random points instead of the table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="the first point alone")
    arguments = parser.parse_args()
    if arguments.random:
        draw(arguments.random, arguments.seed)
        return 0
    points = [point for point in POINTS if point.weights.architecture.rule.is_polynomial]
    points = [point for point in points if point.weights.architecture.num_parameters <= MAX_PARAMETERS]
    require(points, "there are points to count")
    for point in points[:1] if arguments.quick else points:
        compare(point.name, point.weights, point.value, point.multiplicity)
    return 0


if __name__ == "__main__":
    sys.exit(main())
