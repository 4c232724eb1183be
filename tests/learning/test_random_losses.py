"""Theorems X and E0 on drawn points: vocabularies and logits by counts mod 3ⁿ, layers without values by derivatives."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from attngeom.exact.domains import QQ
from attngeom.learning import learning_coefficient
from attngeom.learning.losses import all_sequences
from attngeom.network import Architecture, Weights
from tests.learning.padic import (
    PRIME,
    lightning_outputs,
    listed,
    predicted_exponent,
    random_tensor,
    reduced,
    volume_exponents,
)

LAYERS = (
    Architecture((2, 2), 1, 2),
    Architecture((2, 3), 2, 2),
    Architecture((1, 2), 1, 2),
    Architecture((2, 2), 1, 1),
    Architecture((2, 2), 1, 2, causal=True),
    Architecture((2, 2), 2, 2, residual=True),
    Architecture((2, 2), 1, 2, heads=2, value_width=1),
    Architecture((2, 1, 2), 1, 2),
)


def draw(rng: np.random.Generator, architecture: Architecture) -> Weights:
    """Zero values, equal rows and equal heads among random ranks; the ranks of A and V are the same over GF(3)."""
    while True:
        tensors = {name: random_tensor(rng, *shape) for name, shape in architecture.tensor_shapes()}
        case = rng.random()
        for name, tensor in list(tensors.items()):
            if case < 0.2 and name[-1] in "VO":
                tensors[name] = 0 * tensor
            elif case < 0.4 and name[-1] in "VO":
                tensors[name] = np.repeat(tensor[:1], len(tensor), axis=0)
            elif case < 0.5 and ".heads.1." in name:
                tensors[name] = tensors[name.replace(".heads.1.", ".heads.0.")]
        weights = Weights.from_tensors(architecture, {n: QQ.convert(x) for n, x in tensors.items()}, QQ)
        products = [A for layer in weights.attention_matrices() for A in layer]
        products += [V for layer in weights.value_matrices() for V in layer]
        integers = [np.array(x.tolist(), dtype=float).astype(np.int64) for x in products]
        if all(QQ.rank(x) == len(reduced(y, PRIME)[2]) for x, y in zip(products, integers)):
            return weights


def draw_vocabulary(rng: np.random.Generator, d: int) -> np.ndarray:
    """Few vectors, repeated ones, zero, multiples of one, or many."""
    size = int(rng.integers(1, 5))
    vectors = rng.integers(-1, 2, (d, size))
    case = rng.random()
    if case < 0.2:
        vectors[:, -1] = 0
    elif case < 0.4:
        vectors = np.repeat(vectors[:, :1], size, axis=1)
    elif case < 0.5:
        vectors = vectors[:, :1] * np.arange(1, size + 1)
    elif case < 0.8:
        vectors = rng.integers(-2, 3, (d, 5))
    return np.asarray(vectors)


def agrees(exponents: list[float], value: Fraction, multiplicity: int) -> bool:
    """Within 0.2; for m > 1 rare solutions carry the volume, and the exponent may be up to 0.3 more."""
    difference = np.mean(exponents[-5:]) - predicted_exponent(value, multiplicity, 10, 5)
    return bool(-0.2 <= difference <= (0.2 if multiplicity == 1 else 0.3))


@pytest.mark.parametrize("architecture", LAYERS, ids=range(len(LAYERS)))
def test_vocabularies_against_counts(architecture: Architecture) -> None:
    """f are the outputs at all sequences of the vocabulary and at nothing else."""
    rng = np.random.default_rng([21, *architecture.widths, architecture.heads, architecture.tokens])
    outcomes: Counter[bool] = Counter()
    for _ in range(8):
        weights, vocabulary = draw(rng, architecture), draw_vocabulary(rng, architecture.widths[0])
        found = learning_coefficient(weights, vocabulary=vocabulary)
        outcomes[found.is_proven] += 1
        X = np.array(all_sequences(vocabulary, weights).tolist(), dtype=float).astype(np.int64)
        exponents = volume_exponents(partial(lightning_outputs, architecture, X=X), listed(weights), 0, 2000, 10)
        if not exponents:
            continue
        assert float(found.lower) - 0.2 <= np.mean(exponents[-5:]) <= float(found.upper) + 0.3
        if found.value is not None and found.multiplicity is not None:
            assert agrees(exponents, found.value, found.multiplicity), (found.reason, vocabulary)
    # Few points of two heads on a plane, or of two layers, are decided.
    assert outcomes[True] or architecture.heads * architecture.num_layers > 1


@pytest.mark.parametrize("architecture", LAYERS, ids=range(len(LAYERS)))
def test_logits_against_counts(architecture: Architecture) -> None:
    """f are the differences of neighbouring logits, where the theorem takes those to the last one."""
    rng = np.random.default_rng([22, *architecture.widths, architecture.heads, architecture.tokens])
    d_out, t, outcomes = architecture.widths[-1], architecture.tokens, set()
    for _ in range(6):
        weights = draw(rng, architecture)
        found = learning_coefficient(weights, loss="cross-entropy")
        outcomes.add(found.is_proven)
        X = rng.integers(-4, 5, (2 * len(listed(weights)) // d_out + 5, architecture.widths[0], t))

        def differences(vectors: np.ndarray, modulus: int, X: np.ndarray = X) -> np.ndarray:
            logits = lightning_outputs(architecture, vectors, modulus, X).reshape(len(vectors), len(X), d_out, t)
            return ((logits[:, :, 1:] - logits[:, :, :-1]) % modulus).reshape(len(vectors), -1)

        exponents = volume_exponents(differences, listed(weights), 0, 2000, 10)
        if exponents and found.value is not None and found.multiplicity is not None:
            assert agrees(exponents, found.value, found.multiplicity), found.reason
    assert True in outcomes or architecture.heads * architecture.num_layers > 1


def silent(rng: np.random.Generator, kind: str, tokens: int) -> Weights:
    """Residual heads without values: some A_h equal, opposite, or zero, in one layer or in several."""
    architecture = Architecture(
        (2,) * int(rng.integers(2, 4)), 1, tokens, kind, 2, 1, residual=True, causal=bool(rng.integers(2))
    )
    tensors = {name: rng.integers(-1, 2, shape) for name, shape in architecture.tensor_shapes()}
    places = sorted({name.rpartition(".")[0] for name in tensors})
    for place in places:
        tensors[f"{place}.{'VO'[int(rng.integers(2))]}"] *= 0
        if rng.random() < 0.15:
            other = places[int(rng.integers(len(places)))]
            tensors |= {
                f"{place}.Q": int(rng.choice([-1, 1])) * tensors[f"{other}.Q"],
                f"{place}.K": tensors[f"{other}.K"],
            }
    return Weights.from_tensors(architecture, {n: QQ.convert(x) for n, x in tensors.items()}, QQ)


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize("tokens", [2, 3])
def test_layers_without_values_show_all_values_to_first_order(kind: str, tokens: int) -> None:
    """The derivative at V = 0 in all V_h, written down here, has full rank wherever Theorem E0 is cited."""
    rng = np.random.default_rng([23, tokens])
    cited = 0
    for _ in range(60):
        weights = silent(rng, kind, tokens)
        found = learning_coefficient(weights)
        X = rng.normal(size=(50, 2, tokens)) * np.resize([2.0, 1.0, 0.5], 50)[:, None, None]
        columns = []
        matrices = [np.array(A.tolist(), dtype=float) for layer in weights.attention_matrices() for A in layer]
        for A in matrices:
            S = np.swapaxes(X, 1, 2) @ A @ X
            P = np.exp(S) if kind == "softmax" else 1 / (1 + np.exp(-S))
            if weights.architecture.causal:
                P = np.triu(P)
            P = P / P.sum(axis=1, keepdims=True) if kind == "softmax" else P
            for i, j in np.ndindex(2, 2):
                unit = np.zeros((2, 2))
                unit[i, j] = 1
                columns.append((unit @ X @ P).ravel())
        values = np.linalg.svd(np.stack(columns, axis=1), compute_uv=False)
        is_full = bool(values[-1] > 1e-9 * values[0])
        same = any(np.array_equal(A, B) for n, A in enumerate(matrices) for B in matrices[:n])
        assert found.theorem != "E0" or is_full
        assert not same or (not is_full and found.theorem != "E0")
        cited += found.theorem == "E0"
        if found.theorem == "E0":
            parts = [block.pair for block in found.blocks if block.name[0] == "V"]
            assert found.value == sum((pair.value for pair in parts), Fraction(0))
            assert found.multiplicity == 1 + sum(pair.multiplicity - 1 for pair in parts)
    assert 5 <= cited < 60
