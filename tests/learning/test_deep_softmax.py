"""Theorems C, C2, C3 in two independent steps: what the function shows to first order, and counts mod 3ⁿ of that.

The proofs say that K is comparable to ‖L − L_0‖² + Σ_{i ≤ s} ‖M_i − M_i0‖². Here the derivative of the function in
these matrices is taken by complex steps, and the volumes of {M_i(w) ≡ M_i0, L(w) ≡ L_0 mod 3ⁿ} are counted in the
weights.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from attngeom.learning import LearningCoefficient, learning_coefficient
from attngeom.network import Weights
from tests.learning.padic import (
    draw_softmax,
    listed,
    matrices,
    predicted_exponent,
    same_ranks,
    seen_layers,
    virtual_weights,
    volume_exponents,
)

SCALES = (1.0, 0.6, 0.35, 0.2)
"""Sizes of inputs: large scores saturate softmax, small ones hide later layers."""


def outputs(M: list[np.ndarray], L: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The network of virtual weights at inputs (N, d, t), for complex weights too."""
    Z = X.astype(complex)
    for own in M:
        S = np.swapaxes(Z, 1, 2) @ own @ Z
        P = np.exp(S - S.real.max(axis=1, keepdims=True))
        Z = Z @ (P / P.sum(axis=1, keepdims=True))
    return (L @ Z).reshape(-1)


def check_first_order(weights: Weights, rng: np.random.Generator) -> None:
    """The derivative in (M_1, …, M_s, L) is injective, and the function at the point does not see later M_i."""
    architecture, seen = weights.architecture, seen_layers(weights)
    (M, L), step = matrices(weights), 1e-30
    X = rng.normal(size=(60, architecture.widths[0], architecture.tokens)) * np.resize(SCALES, 60)[:, None, None]
    columns = []
    for place, matrix in enumerate([*M[:seen], L]):
        for index in np.ndindex(matrix.shape):
            moved = [m.astype(complex) for m in [*M, L]]
            moved[place if place < seen else -1][index] += 1j * step
            columns.append(outputs(moved[:-1], moved[-1], X).imag / step)
    J = np.stack(columns, axis=1)
    values = np.linalg.svd(J / np.linalg.norm(J, axis=0), compute_uv=False)
    assert values[-1] > 1e-9 * values[0]
    others = [*M[:seen], *(rng.normal(size=m.shape) for m in M[seen:])]
    assert np.allclose(outputs(M, L, X), outputs(others, L, X))


def check_volume(found: LearningCoefficient, seed: int, particles: int = 3000) -> float | None:
    """The exponent counted less that of (λ, m); None if no particle is left."""
    weights = found.weights
    run = virtual_weights(weights.architecture, seen_layers(weights))
    exponents = volume_exponents(run, listed(weights), seed, particles, 10)
    assert found.value is not None and found.multiplicity is not None
    predicted = predicted_exponent(found.value, found.multiplicity, 10, 5)
    return float(np.mean(exponents[-5:])) - predicted if exponents else None


@pytest.mark.parametrize("seed", range(10))
def test_deep_softmax_at_random_points(seed: int) -> None:
    """m = 1: exponents within 0.1; m > 1: rare solutions carry the volume, and the exponent may be up to 0.25 more."""
    rng = np.random.default_rng([8, seed])
    theorems: Counter[str] = Counter()
    while theorems.total() < 5:
        weights = draw_softmax(rng)
        found = learning_coefficient(weights) if same_ranks(weights) else None
        if found is None or found.theorem not in ("C", "C2", "C3"):
            continue
        theorems[found.theorem] += 1
        if np.any(matrices(weights)[1]):
            check_first_order(weights, rng)
            difference = check_volume(found, seed)
            assert difference is None or -0.1 <= difference <= (0.1 if found.multiplicity == 1 else 0.25), found.stratum


def test_the_generator_draws_all_cases() -> None:
    rng = np.random.default_rng(9)
    drawn = [learning_coefficient(draw_softmax(rng)) for _ in range(60)]
    assert {found.theorem for found in drawn} >= {"C", "C2", "C3", "none"}
    assert {found.multiplicity for found in drawn} >= {1, 2}
