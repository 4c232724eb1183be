"""The infinitesimal action of the symmetries: vectors in weight space tangent to the fiber at a point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attngeom.exact.domains import Array
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights

Generator = Literal["query-key", "scale", "value-output", "between"]
GENERATORS: tuple[Generator, ...] = ("query-key", "scale", "value-output", "between")


@dataclass(frozen=True, eq=False)
class TangentVectors:
    """Rows tangent to the fiber, over the domain of the weights, each with the symmetry that it comes from."""

    rows: Array
    sources: tuple[Generator, ...]


def count_generators(architecture: Architecture) -> dict[Generator, int]:
    """The dimension of each factor of the symmetry group; their sum bounds the fiber dimension only if independent.

    >>> count_generators(Architecture((3, 2, 3), 2))
    {'query-key': 8, 'scale': 2, 'value-output': 0, 'between': 4}
    """
    layers = architecture.layers
    between = 0 if architecture.residual else sum(width**2 for width in architecture.widths[1:-1])
    return {
        "query-key": sum(layer.heads * layer.attention**2 for layer in layers),
        "scale": 0 if architecture.kind == "softmax" else sum(layer.heads for layer in layers),
        "value-output": sum(layer.heads * (layer.value_width or 0) ** 2 for layer in layers),
        "between": between,
    }


def _slots(architecture: Architecture) -> dict[str, slice]:
    """Where each tensor lies in the weight vector."""
    slots, start = {}, 0
    for name, (rows, columns) in architecture.tensor_shapes():
        slots[name] = slice(start, start + rows * columns)
        start += rows * columns
    return slots


def infinitesimal_action(weights: Weights) -> TangentVectors:
    """One row for each generator of the Lie algebra: the derivative of g · W at the identity.

    Each row lies in the kernel of the Jacobian of W ↦ phi_W at W. Rows: K̇ = E K, Q̇ = -Eᵀ Q for the query-key group;
    Q̇ = Q, V̇ = -V for scales; V̇ = E V, Ȯ = -O E inside factored heads; V̇_i = E V_i (or Ȯ_i = E O_i) with
    K̇ = -K E, Q̇ = -Q E, V̇ = -V E in layer i+1 between layers. E runs over the elementary matrices.

    >>> from attngeom.exact import GF
    >>> from attngeom.network.weights import random_weights
    >>> infinitesimal_action(random_weights(Architecture((3, 2, 3), 2), GF(7), seed=0)).rows.shape
    (14, 32)
    """
    domain, architecture = weights.domain, weights.architecture
    slots = _slots(architecture)
    rows: list[Array] = []
    sources: list[Generator] = []
    with domain.working():
        for source, parts in _generators(weights):
            row = domain.zeros((architecture.num_parameters,))
            for name, part in parts.items():
                row[slots[name]] = domain.reduce(part).ravel()
            rows.append(row)
            sources.append(source)
    stacked = np.stack(rows) if rows else domain.zeros((0, architecture.num_parameters))
    return TangentVectors(stacked, tuple(sources))


def _left(matrix: Array, i: int, j: int) -> Array:
    """E_ij times the matrix: row j moved to row i."""
    out = matrix - matrix
    out[i] = matrix[j]
    return out


def _right(matrix: Array, i: int, j: int) -> Array:
    """The matrix times E_ij: column i moved to column j."""
    out = matrix - matrix
    out[:, j] = matrix[:, i]
    return out


def _generators(weights: Weights) -> Iterator[tuple[Generator, dict[str, Array]]]:
    architecture = weights.architecture
    tensors = dict(weights.tensors())
    prefixes = [
        [f"layers.{i}.heads.{h}" if architecture.is_factored else f"layers.{i}" for h in range(architecture.heads)]
        for i in range(architecture.num_layers)
    ]
    for layer, names in zip(architecture.layers, prefixes):
        for name in names:
            Q, K, V = (tensors[f"{name}.{letter}"] for letter in "QKV")
            for i, j in np.ndindex(layer.attention, layer.attention):
                yield "query-key", {f"{name}.K": _left(K, i, j), f"{name}.Q": -_left(Q, j, i)}
            if architecture.kind == "lightning":
                yield "scale", {f"{name}.Q": Q, f"{name}.V": -V}
            if layer.value_width is not None:
                O = tensors[f"{name}.O"]
                for i, j in np.ndindex(layer.value_width, layer.value_width):
                    yield "value-output", {f"{name}.V": _left(V, i, j), f"{name}.O": -_right(O, i, j)}
    if architecture.residual:
        return
    last = "O" if architecture.is_factored else "V"
    for index, width in enumerate(architecture.widths[1:-1]):
        for i, j in np.ndindex(width, width):
            parts = {f"{name}.{last}": _left(tensors[f"{name}.{last}"], i, j) for name in prefixes[index]}
            for name in prefixes[index + 1]:
                for letter in "QKV":
                    parts[f"{name}.{letter}"] = -_right(tensors[f"{name}.{letter}"], i, j)
            yield "between", parts
