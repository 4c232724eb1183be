"""Points with known learning coefficients: weights by their ranks, and the table of published and derived values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attngeom.exact import QQ
from attngeom.network import Architecture, Weights


def matrix(rows: int, columns: int, rank: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """A random integer matrix of given rank."""
    while True:
        found = rng.integers(-3, 4, (rows, rank)) @ rng.integers(-3, 4, (rank, columns))
        if np.linalg.matrix_rank(found) == rank:
            return np.asarray(found)


def factors(a: int, d: int, ranks: tuple[int, int, int], rng: np.random.Generator) -> tuple[Any, Any]:
    """K and Q, a×d, with given ranks and a given rank of Kᵀ Q: unit vectors that overlap, and random bases."""
    k, q, r = ranks
    first, second = np.zeros((a, d), dtype=int), np.zeros((a, d), dtype=int)
    for i in range(k):
        first[i, i] = 1
    for i in range(q):
        second[i if i < r else k + i - r, i] = 1
    left, right = (matrix(d, d, d, rng) for _ in range(2))
    lower, upper = np.tril(rng.integers(-1, 2, (2, a, a)), -1) + np.eye(a, dtype=int)
    inverses = [np.rint(np.linalg.inv(x)).astype(int) for x in (lower, upper)]
    # K → g K, Q → g^{-T} Q keeps Kᵀ Q.
    return lower @ upper @ first @ left, inverses[0].T @ inverses[1].T @ second @ right


@dataclass(frozen=True)
class Point:
    """An architecture, what its tensors are, and the pair (λ, m) that a theorem gives."""

    name: str
    weights: Weights
    value: Fraction
    multiplicity: int
    theorem: str


def build(architecture: Architecture, tensors: dict[str, Any]) -> Weights:
    """Weights from integer tensors, zero where none is given."""
    found = {name: np.zeros(shape, dtype=int) for name, shape in architecture.tensor_shapes()}
    assert not set(tensors) - set(found), set(tensors) - set(found)
    return Weights.from_tensors(architecture, {**found, **tensors}, QQ)


def head(
    d: int,
    d_out: int,
    a: int,
    ranks: tuple[int, int, int],
    value: Any,
    seed: int = 0,
    **options: Any,
) -> Weights:
    """One head with given ranks of K, Q and A; ``value`` is a matrix or a rank."""
    rng = np.random.default_rng(seed)
    K, Q = factors(a, d, ranks, rng)
    V = matrix(d_out, d, value, rng) if isinstance(value, int) else value
    architecture = Architecture((d, d_out), a, **{"tokens": 2, **options})
    return build(architecture, {"layers.0.K": K, "layers.0.Q": Q, "layers.0.V": V})


def aligned(d: int, d_out: int, a: int, ranks: tuple[int, int], seed: int = 0, **options: Any) -> Weights:
    """rk A = rk V = 1 with parallel directions."""
    weights = head(d, d_out, a, (*ranks, 1), 0, seed, **options)
    ((A,),) = weights.attention_matrices()
    column = next(np.array([int(x) for x in A[:, m]]) for m in range(d) if any(A[:, m]))
    tensors = dict(weights.tensors()) | {"layers.0.V": QQ.convert(np.outer(np.arange(1, d_out + 1), column))}
    return Weights.from_tensors(weights.architecture, tensors, QQ)


def network(
    widths: tuple[int, ...],
    a: int | tuple[int, ...],
    ranks: dict[tuple[int, int], tuple[int, int, int]],
    dead: tuple[tuple[int, int], ...] = (),
    seed: int = 0,
    **options: Any,
) -> Weights:
    """Random small integers, some attention matrices of given ranks, some heads with a value map of zero."""
    rng = np.random.default_rng(seed)
    architecture = Architecture(widths, a, **{"tokens": 3, **options})
    tensors: dict[str, Any] = {name: rng.integers(-3, 4, shape) for name, shape in architecture.tensor_shapes()}
    for (layer, h), wanted in ranks.items():
        shape = architecture.layer(layer)
        K, Q = factors(shape.attention, shape.d_in, wanted, rng)
        tensors[architecture.tensor_name(layer, h, "K")] = K
        tensors[architecture.tensor_name(layer, h, "Q")] = Q
    for layer, h in dead:
        for letter in architecture.layer(layer).tensor_shapes:
            name = architecture.tensor_name(layer, h, letter)
            if letter in ("V", "O"):
                tensors[name] = np.zeros_like(tensors[name])
    return build(architecture, tensors)


def point(name: str, weights: Weights, value: str, multiplicity: int, theorem: str) -> Point:
    return Point(name, weights, Fraction(value), multiplicity, theorem)


POINTS = [
    point("regular", head(2, 2, 1, (1, 1, 1), 2), "3", 1, "A1.2"),
    point("not aligned", head(2, 2, 1, (1, 1, 1), 1), "3", 1, "A1.2"),
    point("aligned", aligned(2, 2, 1, (1, 1)), "11/4", 1, "A1.3"),
    point("aligned, a = 2", aligned(2, 2, 2, (1, 1)), "13/4", 2, "A1.3"),
    point("rank one, V of rank two", head(2, 2, 2, (1, 1, 1), 2), "7/2", 2, "A1.2"),
    point("all zero", head(2, 2, 1, (0, 0, 0), 0), "1", 2, "A1.1"),
    point("Q = V = 0", head(2, 2, 1, (1, 0, 0), 0), "1", 1, "A1.1"),
    point("d' = 1, V = 0", head(2, 1, 1, (1, 1, 1), 0), "1", 1, "A1.1"),
    point("d' = 1, all zero", head(2, 1, 1, (0, 0, 0), 0), "1", 3, "A1.1"),
    point("a = 4, K = Q = 0", head(2, 2, 4, (0, 0, 0), 2), "2", 1, "A1.1"),
    point("d = 3, d' = 1, not aligned", head(3, 1, 3, (1, 1, 1), 1), "5", 1, "A1.2"),
    point("d = 3, d' = 1, aligned", aligned(3, 1, 3, (1, 1)), "9/2", 1, "A1.3"),
    point("softmax, K = Q = 0", head(2, 1, 2, (0, 0, 0), 1, kind="softmax"), "5/2", 1, "A2"),
    point("softmax, V = 0", head(2, 2, 1, (1, 1, 1), 0, kind="softmax"), "2", 1, "A2"),
    point("softmax, tempered", head(2, 1, 2, (0, 0, 0), 1, kind="softmax", temperature="1/3"), "5/2", 1, "A2"),
    point("sigmoid, K = Q = 0", head(2, 1, 2, (0, 0, 0), 1, kind="sigmoid"), "5/2", 1, "A3"),
    point("regular, d = 3", head(3, 3, 2, (2, 2, 2), 3), "8", 1, "A1.2"),
    point("rank one, d = 3", head(3, 3, 2, (1, 1, 1), 3), "15/2", 2, "A1.2"),
    point("aligned, d = 3", aligned(3, 3, 2, (1, 1)), "7", 2, "A1.3"),
    point("all zero, d = 3", head(3, 3, 2, (0, 0, 0), 0), "5/2", 1, "A1.1"),
    point("causal, aligned", aligned(2, 2, 1, (1, 1), causal=True), "11/4", 1, "A1.3"),
    point("skip, aligned", aligned(2, 2, 1, (1, 1), residual=True), "11/4", 1, "A1.3"),
    point("deep softmax", network((4, 4, 4, 4), 2, {}, kind="softmax"), "26", 1, "C"),
    point("deep softmax, K = Q = 0", network((4, 4, 4, 4), 2, {(2, 0): (0, 0, 0)}, kind="softmax"), "47/2", 1, "C"),
    point("two layers", network((3, 3, 3), 3, {}), "25/2", 1, "B"),
    point("two layers, rk Q_1 = 2", network((3, 3, 3), 3, {(0, 0): (3, 2, 2), (1, 0): (1, 1, 1)}), "12", 1, "B"),
    point("two layers, ranks 2, 1", network((3, 3, 3), 3, {(0, 0): (2, 2, 2), (1, 0): (1, 1, 1)}), "12", 2, "B"),
    point(
        "skip, ranks 1",
        network((3, 3, 3), 3, {(0, 0): (1, 1, 1), (1, 0): (1, 1, 1)}, residual=True),
        "16",
        1,
        "B",
    ),
    point("two heads", network((4, 4), 2, {}, heads=2), "23", 1, "H3"),
    point("two heads, rank 1", network((4, 4), 2, {(0, 0): (1, 1, 1)}, heads=2), "22", 2, "H3"),
    point(
        "four heads, ranks 1",
        network((8, 8), 2, {(0, 0): (1, 1, 1), (0, 1): (1, 1, 1)}, heads=4),
        "104",
        3,
        "H3",
    ),
    point(
        "skip, A_2 = 0",
        network((2, 2, 2), (1, 2), {(1, 0): (0, 0, 0)}, residual=True, tokens=2),
        "9/2",
        1,
        "B",
    ),
    point(
        "skip, A_2 = 0, a_1 = 2",
        network((2, 2, 2), 2, {(1, 0): (0, 0, 0)}, residual=True, tokens=2),
        "5",
        1,
        "B",
    ),
    point(
        "skip, dead layer",
        network((2, 2, 2), 1, {(1, 0): (0, 0, 0)}, ((1, 0),), residual=True, tokens=2),
        "4",
        2,
        "B",
    ),
    point(
        "residual softmax, two heads",
        network((2, 2, 2), 1, {}, heads=2, value_width=1, kind="softmax", residual=True),
        "12",
        1,
        "B",
    ),
    point(
        "residual softmax, ranks 1, 2, causal",
        network((2, 2, 2), 2, {(1, 0): (1, 1, 1)}, heads=1, kind="softmax", residual=True, causal=True),
        "8",
        2,
        "B",
    ),
]
