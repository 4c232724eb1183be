"""λ of softmax and sigmoid networks against derivatives of the true function, taken by complex steps.

Half the rank of the derivative in the weights is at most λ, at every point; it is λ where all factors and products have
the largest rank that their sizes allow, because then all blocks of Theorem B are coordinates.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attngeom.exact.domains import QQ
from attngeom.learning import learning_coefficient
from attngeom.network import Architecture, Weights
from tests.effort import repeat

SCALES = (0.8, 0.5, 1.1, 0.3, 0.15)


def attend(S: np.ndarray, architecture: Architecture) -> np.ndarray:
    """Attention weights of complex scores, by the definitions."""
    seen = np.triu(np.ones(S.shape[1:], dtype=bool)) if architecture.causal else np.ones(S.shape[1:], dtype=bool)
    if architecture.kind == "softmax":
        S = np.where(seen, S, -1e4)
        E = np.exp(S - S.real.max(axis=1, keepdims=True)) * seen
        return np.asarray(E / E.sum(axis=1, keepdims=True))
    E = np.exp(np.where(S.real > 0, -S, S))
    return np.asarray(seen * np.where(S.real > 0, 1 / (1 + E), E / (1 + E)))


def outputs(architecture: Architecture, tensors: dict[str, np.ndarray], X: np.ndarray) -> np.ndarray:
    """The network at inputs (N, d, t), for complex weights."""
    Y = X.astype(complex)
    for layer in range(architecture.num_layers):
        total = Y if architecture.residual else 0
        for head in range(architecture.heads):
            own = {x: tensors.get(architecture.tensor_name(layer, head, x)) for x in "QKVO"}
            S = np.swapaxes(own["K"] @ Y, 1, 2) @ (own["Q"] @ Y) / float(architecture.rule.temperature)
            values = own["V"] @ Y if own["O"] is None else own["O"] @ (own["V"] @ Y)
            total = total + values @ attend(S, architecture)
        Y = total
    return np.asarray(Y).ravel()


def true_rank(architecture: Architecture, tensors: dict[str, np.ndarray]) -> tuple[int, float]:
    """The rank of the derivative in the weights, and the smallest singular value that counts."""
    size = sum(x.size for x in tensors.values())
    count = max(30, 6 * size // (architecture.widths[-1] * architecture.tokens))
    X = np.random.default_rng(7).normal(size=(count, architecture.widths[0], architecture.tokens))
    X, columns = X * np.resize(SCALES, count)[:, None, None], []
    for name, tensor in tensors.items():
        for index in np.ndindex(tensor.shape):
            moved = {key: x.astype(complex) for key, x in tensors.items()}
            moved[name][index] += 1e-30j
            columns.append(outputs(architecture, moved, X).imag / 1e-30)
    J = np.stack(columns, axis=1)
    norms = np.linalg.norm(J, axis=0)
    J = J[:, norms > 1e-9 * max(norms.max(), 1)]
    values = np.linalg.svd(J / np.linalg.norm(J, axis=0), compute_uv=False) if J.size else np.zeros(0)
    rank = int(np.sum(values > 3e-13 * values[0])) if len(values) else 0
    return rank, float(values[rank - 1] / values[0]) if rank else 1.0


def draw(rng: np.random.Generator) -> tuple[Architecture, dict[str, np.ndarray]]:
    """One to three layers and heads, masks and skips; zero, symmetric, equal and proportional A_h, zero values."""
    while True:
        layers, heads, residual = int(rng.integers(1, 4)), int(rng.integers(1, 4)), bool(rng.random() < 0.7)
        widths = [int(rng.integers(1, 4))] * (layers + 1) if residual else rng.integers(1, 4, layers + 1).tolist()
        options: dict[str, Any] = {"kind": str(rng.choice(["softmax", "sigmoid"])), "heads": heads}
        options |= {"tokens": int(rng.integers(1, 4)), "residual": residual, "causal": bool(rng.random() < 0.35)}
        options |= {"temperature": str(rng.choice(["1", "1/2", "7/3"]))}
        value_width = int(rng.integers(1, 3)) if heads > 1 or rng.random() < 0.4 else None
        architecture = Architecture(widths, int(rng.integers(1, 3)), value_width=value_width, **options)
        if architecture.num_parameters <= 48:
            break
    tensors = {name: rng.integers(-1, 2, size=shape) for name, shape in architecture.tensor_shapes()}
    for layer in range(layers):
        for head in range(heads):
            Q, K, V = (architecture.tensor_name(layer, head, x) for x in "QKV")
            other = [architecture.tensor_name(layer, int(rng.integers(heads)), x) for x in "QK"]
            case = int(rng.integers(8))
            if case < 2:
                tensors[Q], tensors[K] = tensors[other[0]].copy(), (1, -3)[case] * tensors[other[1]]
            elif case < 4:
                tensors[Q] = (0, 1)[case - 2] * tensors[K]
            elif case == 4:
                tensors[V] = 0 * tensors[V]
    return architecture, tensors


def is_full(architecture: Architecture, tensors: dict[str, np.ndarray]) -> bool:
    """Whether all factors and the products KᵀQ, OV have the largest rank that sizes allow."""
    matrices = [(x, min(x.shape)) for x in tensors.values()]
    for layer in range(architecture.num_layers):
        for head in range(architecture.heads):
            Q, K, V, O = (tensors.get(architecture.tensor_name(layer, head, x)) for x in "QKVO")
            assert Q is not None and K is not None and V is not None
            matrices.append((K.T @ Q, min(K.shape)))
            if O is not None:
                matrices.append((O @ V, min(*O.shape, *V.shape)))
    return all(np.linalg.matrix_rank(x) == most for x, most in matrices)


@pytest.mark.parametrize("seed", range(4))
def test_half_the_rank_is_at_most_lambda_and_equal_at_full_ranks(seed: int) -> None:
    rng, seen = np.random.default_rng([102, seed]), Counter[str]()
    trials = repeat(25)
    for _ in trials:
        architecture, tensors = draw(rng)
        found = learning_coefficient(
            Weights.from_tensors(architecture, {name: QQ.convert(x) for name, x in tensors.items()}, QQ)
        )
        rank, gap = true_rank(architecture, {name: x.astype(float) for name, x in tensors.items()})
        if gap < 1e-9:
            seen["unclear"] += 1
        elif found.value is None:
            seen["undecided"] += 1
            assert found.lower is None or found.lower <= Fraction(rank, 2)
            assert found.upper is None or found.upper >= Fraction(rank, 2)
        else:
            full = is_full(architecture, tensors)
            seen["full" if full else "decided"] += 1
            assert found.value == Fraction(rank, 2) if full else found.value >= Fraction(rank, 2), (
                architecture,
                tensors,
            )
    assert seen["decided"] + seen["full"] >= len(trials) // 3 and seen["unclear"] <= len(trials) // 8, seen
