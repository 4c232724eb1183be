"""Training from two symmetric starts: which optimisers keep the two networks the same function?

A small lightning network is trained on a teacher from a start w and from g · w, for group elements g of three kinds.
Gradient descent commutes with orthogonal g, Adam only with signed permutations; for other g the two runs start with the
same function and drift apart. Writes the trained weights of one pair, to be compared on the command line:

    python examples/symmetric_training.py --out runs
    attngeom compare runs/first.safetensors runs/second.safetensors
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attngeom.canonical.least_norm import loss, loss_gradient
from attngeom.comparison import compare
from attngeom.exact import RR
from attngeom.interop import write_weights
from attngeom.network import Architecture, Symmetry, Weights, forward, random_weights
from attngeom.network.symmetry import infinitesimal_action, linear_factors

ARCHITECTURE = Architecture((3, 2, 3), 2, tokens=3)
Optimiser = Callable[[np.ndarray, np.ndarray, dict[str, np.ndarray]], np.ndarray]


def gradient_descent(vector: np.ndarray, gradient: np.ndarray, state: dict[str, np.ndarray]) -> np.ndarray:
    return vector - 0.001 * gradient


def adam(vector: np.ndarray, gradient: np.ndarray, state: dict[str, np.ndarray]) -> np.ndarray:
    step = state.get("step", np.zeros(1)) + 1
    first = 0.9 * state.get("first", np.zeros_like(vector)) + 0.1 * gradient
    second = 0.999 * state.get("second", np.zeros_like(vector)) + 0.001 * gradient**2
    state.update(step=step, first=first, second=second)
    return vector - 0.005 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)


def orthogonal(size: int, rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def signed_permutation(size: int, rng: np.random.Generator) -> np.ndarray:
    return np.eye(size)[rng.permutation(size)] * rng.choice([-1.0, 1.0], size=size)


def near_identity(size: int, rng: np.random.Generator) -> np.ndarray:
    return np.eye(size) + 0.3 * rng.standard_normal((size, size))


def symmetry_from(draw: Callable[[int, np.random.Generator], np.ndarray], seed: int) -> Symmetry:
    """A group element whose matrices are drawn by ``draw`` and whose scales are signs."""
    rng = np.random.default_rng(seed)
    return Symmetry(
        ARCHITECTURE,
        RR,
        {
            factor: rng.choice([-1.0, 1.0], size=(1, 1)) if factor.name == "scale" else draw(factor.size, rng)
            for factor in linear_factors(ARCHITECTURE)
        },
    )


def train(weights: Weights, X: np.ndarray, Y: np.ndarray, optimiser: Optimiser, steps: int) -> Weights:
    state: dict[str, np.ndarray] = {}
    for _ in range(steps):
        vector = optimiser(weights.vector(), loss_gradient(weights, X, Y), state)
        weights = Weights.from_vector(ARCHITECTURE, vector, RR)
    return weights


def data() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((12, 3, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = forward(random_weights(ARCHITECTURE, RR, 100), X)
    return X, Y / np.sqrt(np.mean(Y**2))


def start() -> Weights:
    """Random weights, scaled so that the outputs are of size one."""
    weights = random_weights(ARCHITECTURE, RR, 7)
    size = np.sqrt(np.mean(forward(weights, data()[0]) ** 2))
    # The function has degree 3 + 9 in the weights of both layers together.
    return Weights.from_vector(ARCHITECTURE, weights.vector() * size ** (-1 / 12), RR)


def runs(steps: int) -> list[tuple[str, str, Weights, Weights]]:
    """Optimiser, kind of group element, and the weights trained from w and from g · w."""
    X, Y = data()
    kinds = {
        "signed permutation": symmetry_from(signed_permutation, 1),
        "orthogonal": symmetry_from(orthogonal, 1),
        "general": symmetry_from(near_identity, 1),
    }
    found = []
    for name, optimiser in (("gradient descent", gradient_descent), ("Adam", adam)):
        first = train(start(), X, Y, optimiser, steps)
        for kind, g in kinds.items():
            found.append((name, kind, first, train(g.apply(start()), X, Y, optimiser, steps)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, help="folder for the weights of the first pair")
    options = parser.parse_args()
    X, Y = data()
    print(f"loss at the start {loss(start(), X, Y):.4f}")
    for name, kind, first, second in runs(options.steps):
        verdict = compare(first, second, tolerance=1e-7)
        print(
            f"{name:16} {kind:18} losses {loss(first, X, Y):.4f} and {loss(second, X, Y):.4f}: "
            f"{ {True: 'same function', False: 'different functions', None: 'cannot be told'}[verdict.same_function] }"
        )
    gradient = loss_gradient(start(), X, Y)
    step = adam(start().vector(), gradient, {}) - start().vector()
    fiber = infinitesimal_action(start()).T
    for name, vector in (("gradient", gradient), ("first step of Adam", step)):
        along = fiber @ np.linalg.lstsq(fiber, vector)[0]
        print(f"{name}: {np.linalg.norm(along) / np.linalg.norm(vector):.0%} of its length lies along the fiber")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        _, _, first, second = runs(options.steps)[1]
        write_weights(first, options.out / "first.safetensors")
        write_weights(second, options.out / "second.safetensors")


if __name__ == "__main__":
    main()
