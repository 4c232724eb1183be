"""Recheck two ranks at given weights mod p: of the differential in the products Θ, and of the symmetries on Θ.

Nothing here comes from the search, which propagates back through the layers with factors: here every direction of Θ
is a pair of matrices (Ȧ, V̇), or a table for a head with A = 0 = V, and all of them are carried forward, token by token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.modular import rank_mod_p
from attngeom.network.weights import Head, Weights
from attngeom.verification.budget import MAX_SAMPLE_ENTRIES, afford
from attngeom.verification.reading import read_integer, require
from attngeom.verification.upper_bound import count_upper_bound

MAX_WORK = 3 * 10**9
"""Multiplications mod p; about ten seconds."""
MAX_DIRECTIONS = 3000
MAX_SAMPLES = 10**5
CHUNK = 2**20
"""Entries of tangents that are carried at once."""


@dataclass(frozen=True)
class Shape:
    """The dimension that a matrix adds to Θ; whether its factors stay (its rank is the largest); whether it is zero."""

    dimension: int
    is_full: bool
    is_zero: bool


@dataclass(frozen=True)
class Found:
    """Ranks mod p."""

    jacobian: int
    action: int


@dataclass(frozen=True, eq=False)
class Directions:
    """Tangent directions of one head: Ȧ (n, d, d), V̇ (n, d', d), or tables, each with a one at a place (r, k, l, m)."""

    A: Array
    V: Array
    T: Array | None


def check_ranks(weights: Weights, shapes: list[tuple[Shape, Shape]], theorem: str, witness: Mapping[str, Any]) -> Found:
    """The ranks that Theorem B (they add up to dim Θ), R (the largest rank) or the two bounds need."""
    architecture = weights.architecture
    field = GF(read_integer(witness["prime"], 2, 2**31 - 1, "prime"))
    seed = read_integer(witness["seed"], 0, 2**63 - 1, "seed")
    samples = read_integer(witness["samples"], 1, MAX_SAMPLES, "samples")
    tokens = read_integer(witness["tokens"], 1, architecture.tokens, "tokens")
    heads = [(index, head) for index, layer in enumerate(weights.layers) for head in layer]
    in_theta = theorem == "B"
    sizes = [_count(head, A, V, in_theta) for (_, head), (A, V) in zip(heads, shapes)]
    _afford(weights, sum(sizes), samples, tokens)
    reduced = [_reduce(head, field) for _, head in heads]
    directions = [_directions(head, A, V, in_theta, field) for head, (A, V) in zip(reduced, shapes)]
    rng = np.random.default_rng(seed)
    X = field.random((samples, tokens, architecture.widths[0]), rng)
    C = field.random((samples, tokens, architecture.widths[-1]), rng)
    places = [index for index, _ in heads]
    X, C = np.swapaxes(X, 1, 2)[:, None], np.swapaxes(C, 1, 2)
    step = max(1, CHUNK // (sum(sizes) * tokens * max(architecture.widths)))
    parts = [slice(start, start + step) for start in range(0, samples, step)]
    rows = [_rows(weights, reduced, places, directions, X[part], C[part], field) for part in parts]
    jacobian = rank_mod_p(np.concatenate(rows), field.p)
    action = rank_mod_p(_action(weights, reduced, places, shapes, field), field.p)
    if theorem == "B":
        total = sum(_dimension(head, A, V) for (_, head), (A, V) in zip(heads, shapes))
        require(jacobian + action == total, f"the ranks mod p are {jacobian} and {action}; they must add up to {total}")
    elif theorem == "R":
        most = count_upper_bound(architecture)
        require(jacobian == most, f"the rank mod p is {jacobian}; the largest possible one is {most}")
    return Found(jacobian, action)


def _is_dead(A: Shape, V: Shape) -> bool:
    return A.is_zero and V.is_zero


def _sizes(head: Head) -> tuple[int, int]:
    """d and d'."""
    return int(head.K.shape[1]), int((head.V if head.O is None else head.O).shape[0])


def _tables(head: Head) -> int:
    d, d_out = _sizes(head)
    return d_out * d * d * (d + 1) // 2


def _dimension(head: Head, A: Shape, V: Shape) -> int:
    """What the head adds to dim Θ: a table if both are zero, the zero matrix alone if one is, else both."""
    if _is_dead(A, V):
        return _tables(head)
    return (0 if V.is_zero else A.dimension) + (0 if A.is_zero else V.dimension)


def _count(head: Head, A: Shape, V: Shape, in_theta: bool) -> int:
    """An upper bound for the number of directions, before any of them is made."""
    d, d_out = _sizes(head)
    factors = int(head.K.size + head.Q.size)
    values = int(head.V.size) + (0 if head.O is None else int(head.O.size))
    if not in_theta:
        return factors + values
    if _is_dead(A, V):
        return _tables(head)
    return max(factors, d * d) + max(values, d * d_out)


def _afford(weights: Weights, directions: int, samples: int, tokens: int) -> None:
    """Bound memory and work before anything is drawn."""
    architecture = weights.architecture
    width = max(architecture.widths)
    afford(directions, MAX_DIRECTIONS, "directions")
    afford(samples * max(directions, tokens * 2 * width), MAX_SAMPLE_ENTRIES, "entries of a Jacobian")
    afford(directions * width**2, MAX_SAMPLE_ENTRIES, "entries of directions")
    per_head = directions * tokens * width * (width + tokens)
    afford(samples * architecture.num_layers * architecture.heads * per_head, MAX_WORK, "multiplications for the ranks")
    generators = sum(x**2 for x in architecture.widths[1:-1]) + architecture.num_layers * architecture.heads
    entries = sum(layer.heads * layer.d_in * (layer.d_in + layer.d_out) for layer in architecture.layers)
    afford(generators * entries, MAX_SAMPLE_ENTRIES, "entries of infinitesimal symmetries")


def _reduce(head: Head, field: PrimeField) -> Head:
    return Head(*(field.convert(array) for array in head.tensors.values()))


def _directions(head: Head, A: Shape, V: Shape, in_theta: bool, field: PrimeField) -> Directions:
    """A basis of all matrices, or tangents K̇ᵀQ and KᵀQ̇ along each entry of the factors; a table for a dead head."""
    (d, d_out), p = _sizes(head), field.p
    if in_theta and _is_dead(A, V):
        places = [(r, k, l, m) for r in range(d_out) for k in range(d) for l in range(k, d) for m in range(d)]
        n = len(places)
        return Directions(np.zeros((n, d, d), np.int64), np.zeros((n, d_out, d), np.int64), np.array(places))
    keep_A = not in_theta or not V.is_zero
    keep_V = not in_theta or not A.is_zero
    changes_A = _changes(head.K.T, head.Q, in_theta and not A.is_full, d, d) if keep_A else []
    if not keep_V:
        changes_V: list[Array] = []
    elif head.O is None:
        changes_V = _units(d_out, d)
    else:
        changes_V = _changes(head.O, head.V, in_theta and not V.is_full, d_out, d)
    count = len(changes_A) + len(changes_V)
    dA, dV = np.zeros((count, d, d), dtype=np.int64), np.zeros((count, d_out, d), dtype=np.int64)
    for index, change in enumerate(changes_A):
        dA[index] = change % p
    for index, change in enumerate(changes_V):
        dV[len(changes_A) + index] = change % p
    return Directions(dA, dV, None)


def _units(rows: int, columns: int) -> list[Array]:
    return list(np.eye(rows * columns, dtype=np.int64).reshape(-1, rows, columns))


def _changes(left: Array, right: Array, free: bool, rows: int, columns: int) -> list[Array]:
    """Directions of a product: all matrices if it is free, else along every entry of both factors."""
    if free:
        return _units(rows, columns)
    found = []
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            change = np.zeros((rows, columns), dtype=np.int64)
            change[i] = right[j]
            found.append(change)
    for i in range(right.shape[0]):
        for j in range(right.shape[1]):
            change = np.zeros((rows, columns), dtype=np.int64)
            change[:, j] = left[:, i]
            found.append(change)
    return found


def _rows(
    weights: Weights,
    heads: list[Head],
    places: list[int],
    directions: list[Directions],
    X: Array,
    C: Array,
    field: PrimeField,
) -> Array:
    """⟨C, φ̇⟩ along every direction of all heads at inputs X (N, 1, d, t): tangents are carried through the layers."""
    multiply, p = field.matmul, field.p
    architecture = weights.architecture
    N, count, t = len(X), sum(len(moves.A) for moves in directions), X.shape[-1]
    tangent = np.zeros((N, count, *X.shape[2:]), dtype=np.int64)
    start = 0
    for index in range(architecture.num_layers):
        width, earlier = architecture.widths[index + 1], start
        total = X if architecture.residual else np.zeros((N, 1, width, t), dtype=np.int64)
        moved = tangent if architecture.residual else np.zeros((N, count, width, t), dtype=np.int64)
        for place, head, moves in zip(places, heads, directions):
            if place != index:
                continue
            A, V = head.attention_matrix(field), head.value_matrix(field)
            AX, VX, XT = multiply(A, X), multiply(V, X), np.swapaxes(X, -1, -2)
            S = _hide(multiply(XT, AX), architecture.causal)
            # Directions of earlier layers move the input of this one; its own move A and V; later ones nothing yet.
            dX = tangent[:, :earlier]
            dS = (multiply(np.swapaxes(dX, -1, -2), AX) + multiply(XT, multiply(A, dX))) % p
            changes = (multiply(multiply(V, dX), S) + multiply(VX, _hide(dS, architecture.causal))) % p
            own = _hide(multiply(XT, multiply(moves.A, X)), architecture.causal)
            mine = (multiply(multiply(moves.V, X), S) + multiply(VX, own)) % p
            if moves.T is not None:
                mine = (mine + _evaluate(moves.T, X[:, 0], width, architecture.causal, p)) % p
            stop = start + mine.shape[1]
            parts = [moved[:, :earlier] + changes, moved[:, earlier:start], mine, moved[:, stop:]]
            moved, total = np.concatenate(parts, axis=1) % p, (total + multiply(VX, S)) % p
            start = stop
        X, tangent = total, moved
    return multiply(tangent.reshape(N, count, -1), C.reshape(N, -1, 1)).reshape(N, count)


def _hide(S: Array, causal: bool) -> Array:
    return np.triu(S) if causal else S


def _evaluate(T: Array, X: Array, d_out: int, causal: bool, p: int) -> Array:
    """Column i of the table of a place (r, k, l, m): row r is Σ_j x_j^(k) x_j^(l) x_i^(m), j ≤ i if causal."""
    out = np.zeros((len(X), len(T), d_out, X.shape[-1]), dtype=np.int64)
    r, k, l, m = T.T
    for i in range(X.shape[-1]):
        seen = X[:, :, : i + 1] if causal else X
        squares = (seen[:, k] * seen[:, l] % p).sum(axis=-1) % p
        out[:, np.arange(len(T)), r, i] = squares * X[:, m, i] % p
    return out


def _action(
    weights: Weights, heads: list[Head], places: list[int], shapes: list[tuple[Shape, Shape]], field: PrimeField
) -> Array:
    """Rows: the scales (A_h, −V_h), and 1 + E between layers: V̇ = EV, next layer Ȧ = −(EᵀA + AE), V̇ = −VE.

    A matrix on which the function does not depend at this point is not part of Θ: V_h if A_h = 0, A_h if V_h = 0.
    """
    matrices = [(head.attention_matrix(field), head.value_matrix(field)) for head in heads]
    zero = [(np.zeros_like(A), np.zeros_like(V)) for A, V in matrices]
    rows = []
    for index, (A, V) in enumerate(matrices):
        rows.append(_join([(A, -V) if other == index else zero[other] for other in range(len(heads))], shapes))
    if not weights.architecture.residual:
        for layer, width in enumerate(weights.architecture.widths[1:-1]):
            for E in _units(width, width):
                changes = []
                for index, (A, V) in enumerate(matrices):
                    if places[index] == layer:
                        changes.append((zero[index][0], field.matmul(E, V)))
                    elif places[index] == layer + 1:
                        changes.append((-(field.matmul(E.T, A) + field.matmul(A, E)), -field.matmul(V, E)))
                    else:
                        changes.append(zero[index])
                rows.append(_join(changes, shapes))
    return np.stack(rows) % field.p


def _join(changes: list[tuple[Array, Array]], shapes: list[tuple[Shape, Shape]]) -> Array:
    parts = [np.zeros(1, dtype=np.int64)]
    for (dA, dV), (A, V) in zip(changes, shapes):
        parts += [] if V.is_zero else [dA.ravel()]
        parts += [] if A.is_zero else [dV.ravel()]
    return np.concatenate(parts)
