"""Recheck two ranks at given weights mod p: of the differential in the products Θ, and of the symmetries on Θ.

Nothing here comes from the search, which propagates back through the layers with factors: here every direction of Θ
is a pair of matrices (Ȧ, V̇), or a table for a head with A = 0 = V, and all of them are carried forward, token by token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.modular import rank_mod_p
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Head, Weights
from attngeom.verification.budget import MAX_SAMPLE_ENTRIES, afford
from attngeom.verification.reading import read_integer, require
from attngeom.verification.upper_bound import count_upper_bound

if TYPE_CHECKING:
    from attngeom.verification.learning import RankedMatrix

MAX_WORK = 3 * 10**9
"""Multiplications mod p; about ten seconds."""
PRODUCT = 200
"""What the products of small matrices take besides their multiplications, for one direction of one head."""
MAX_DIRECTIONS = 3000
MAX_SAMPLES = 10**5
CHUNK = 2**20
"""Entries of tangents that are carried at once."""


@dataclass(frozen=True, eq=False)
class Directions:
    """Tangent directions of one head: Ȧ (n, d, d), V̇ (n, d', d), or tables, each with a one at a place (r, k, l, m)."""

    A: Array
    V: Array
    T: Array


@dataclass(frozen=True, eq=False)
class HeadPoint:
    """A head of one layer at the point, with what its matrices add to Θ."""

    layer: int
    head: Head
    A: RankedMatrix
    V: RankedMatrix

    @property
    def sizes(self) -> tuple[int, int]:
        """d and d'."""
        return int(self.head.K.shape[1]), int((self.head.V if self.head.O is None else self.head.O).shape[0])

    @property
    def is_dead(self) -> bool:
        return self.A.rank == self.V.rank == 0

    @property
    def num_tables(self) -> int:
        d, d_out = self.sizes
        return d_out * d * d * (d + 1) // 2

    @property
    def dimension(self) -> int:
        """What the head adds to dim Θ: a table if both are zero, the zero matrix alone if one is, else both."""
        if self.is_dead:
            return self.num_tables
        return (self.A.dimension if self.V.rank else 0) + (self.V.dimension if self.A.rank else 0)

    def count_directions(self, in_theta: bool) -> int:
        """An upper bound for the number of directions, before any of them is made."""
        d, d_out = self.sizes
        factors = int(self.head.K.size + self.head.Q.size)
        values = int(self.head.V.size) + (0 if self.head.O is None else int(self.head.O.size))
        if not in_theta:
            return factors + values
        return self.num_tables if self.is_dead else max(factors, d * d) + max(values, d * d_out)

    def directions(self, in_theta: bool, p: int) -> Directions:
        """A basis of all matrices, or tangents K̇ᵀQ and KᵀQ̇ along each entry of the factors; tables for a dead head."""
        (d, d_out), head = self.sizes, self.head
        A, V, T = (np.zeros((0, *shape), dtype=np.int64) for shape in ((d, d), (d_out, d), (4,)))
        if in_theta and self.is_dead:
            places = [(r, k, l, m) for r in range(d_out) for k in range(d) for l in range(k, d) for m in range(d)]
            T = np.array(places)
        else:
            if not in_theta or self.V.rank:
                A = _changes(head.K.T, head.Q, in_theta and not self.A.is_full)
            if not in_theta or self.A.rank:
                free = in_theta and not self.V.is_full
                V = _units(d_out, d) if head.O is None else _changes(head.O, head.V, free)
        dA = np.concatenate([A, np.zeros((len(V) + len(T), d, d), dtype=np.int64)])
        dV = np.concatenate([np.zeros((len(A), d_out, d), dtype=np.int64), V, np.zeros((len(T), d_out, d), np.int64)])
        return Directions(dA % p, dV % p, T)


def check_ranks(
    weights: Weights, matrices: list[tuple[RankedMatrix, RankedMatrix]], theorem: str, witness: Mapping[str, Any]
) -> tuple[int, int]:
    """The ranks that Theorem B (they add up to dim Θ), R (the largest rank) or the two bounds need."""
    architecture = weights.architecture
    field = GF(read_integer(witness["prime"], 2, 2**31 - 1, "prime"))
    seed = read_integer(witness["seed"], 0, 2**63 - 1, "seed")
    samples = read_integer(witness["samples"], 1, MAX_SAMPLES, "samples")
    tokens = read_integer(witness["tokens"], 1, architecture.tokens, "tokens")
    given = [(index, head) for index, layer in enumerate(weights.layers) for head in layer]
    heads = [HeadPoint(index, head, *pair) for (index, head), pair in zip(given, matrices)]
    in_theta = theorem == "B"
    size = sum(head.count_directions(in_theta) for head in heads)
    _afford(weights, size, samples, tokens)
    heads = [replace(x, head=Head(*(field.convert(array) for array in x.head.tensors.values()))) for x in heads]
    directions = [head.directions(in_theta, field.p) for head in heads]
    rng = np.random.default_rng(seed)
    X = field.random((samples, tokens, architecture.widths[0]), rng)
    C = field.random((samples, tokens, architecture.widths[-1]), rng)
    X, C = np.swapaxes(X, 1, 2)[:, None], np.swapaxes(C, 1, 2)
    step = max(1, CHUNK // (size * tokens * max(architecture.widths)))
    parts = [slice(start, start + step) for start in range(0, samples, step)]
    rows = [_rows(architecture, heads, directions, X[part], C[part], field) for part in parts]
    jacobian = rank_mod_p(np.concatenate(rows), field.p)
    action = rank_mod_p(_action(architecture, heads, field), field.p)
    if theorem == "B":
        total = sum(head.dimension for head in heads)
        require(jacobian + action == total, f"the ranks mod p are {jacobian} and {action}; they must add up to {total}")
    elif theorem == "R":
        most = count_upper_bound(architecture)
        require(jacobian == most, f"the rank mod p is {jacobian}; the largest possible one is {most}")
    return jacobian, action


def _afford(weights: Weights, directions: int, samples: int, tokens: int) -> None:
    """Bound memory and work before anything is drawn."""
    architecture = weights.architecture
    width = max(architecture.widths)
    afford(directions, MAX_DIRECTIONS, "directions")
    afford(samples * max(directions, tokens * 2 * width), MAX_SAMPLE_ENTRIES, "entries of a Jacobian")
    afford(directions * width**2, MAX_SAMPLE_ENTRIES, "entries of directions")
    per_head = directions * (PRODUCT + tokens * width * (width + tokens))
    afford(samples * architecture.num_layers * architecture.heads * per_head, MAX_WORK, "multiplications for the ranks")
    generators = sum(x**2 for x in architecture.widths[1:-1]) + architecture.num_layers * architecture.heads
    entries = sum(layer.heads * layer.d_in * (layer.d_in + layer.d_out) for layer in architecture.layers)
    afford(generators * entries, MAX_SAMPLE_ENTRIES, "entries of infinitesimal symmetries")


def _units(rows: int, columns: int) -> Array:
    return np.eye(rows * columns, dtype=np.int64).reshape(-1, rows, columns)


def _changes(left: Array, right: Array, free: bool) -> Array:
    """Directions of a product: all matrices if it is free, else along every entry of both factors."""
    m, n = left.shape[0], right.shape[1]
    if free:
        return _units(m, n)
    of_left = np.eye(m, dtype=np.int64)[:, None, :, None] * right[None, :, None, :]
    of_right = left.T[:, None, :, None] * np.eye(n, dtype=np.int64)[None, :, None, :]
    return np.concatenate([of_left.reshape(-1, m, n), of_right.reshape(-1, m, n)])


def _rows(
    architecture: Architecture,
    heads: list[HeadPoint],
    directions: list[Directions],
    X: Array,
    C: Array,
    field: PrimeField,
) -> Array:
    """⟨C, φ̇⟩ along every direction of all heads at inputs X (N, 1, d, t): tangents are carried through the layers."""
    multiply, p = field.matmul, field.p
    N, count, t = len(X), sum(len(moves.A) for moves in directions), X.shape[-1]
    tangent = np.zeros((N, count, *X.shape[2:]), dtype=np.int64)
    start = 0
    for index in range(architecture.num_layers):
        width, earlier = architecture.widths[index + 1], start
        total = X if architecture.residual else np.zeros((N, 1, width, t), dtype=np.int64)
        moved = tangent if architecture.residual else np.zeros((N, count, width, t), dtype=np.int64)
        for at, moves in zip(heads, directions):
            if at.layer != index:
                continue
            A, V = at.head.attention_matrix(field), at.head.value_matrix(field)
            AX, VX, XT = multiply(A, X), multiply(V, X), np.swapaxes(X, -1, -2)
            S = _hide(multiply(XT, AX), architecture.causal)
            # Directions of earlier layers move the input of this one; its own move A and V; later ones nothing yet.
            dX = tangent[:, :earlier]
            dS = (multiply(np.swapaxes(dX, -1, -2), AX) + multiply(XT, multiply(A, dX))) % p
            changes = (multiply(multiply(V, dX), S) + multiply(VX, _hide(dS, architecture.causal))) % p
            own = _hide(multiply(XT, multiply(moves.A, X)), architecture.causal)
            mine = (multiply(multiply(moves.V, X), S) + multiply(VX, own)) % p
            if len(moves.T):
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


def _action(architecture: Architecture, heads: list[HeadPoint], field: PrimeField) -> Array:
    """Rows: the scales (A_h, −V_h), and 1 + E between layers: V̇ = EV, next layer Ȧ = −(EᵀA + AE), V̇ = −VE.

    A matrix on which the function does not depend at this point is not part of Θ: V_h if A_h = 0, A_h if V_h = 0.
    """
    matrices = [(x.head.attention_matrix(field), x.head.value_matrix(field)) for x in heads]
    zero = [(np.zeros_like(A), np.zeros_like(V)) for A, V in matrices]
    rows = []
    for index, (A, V) in enumerate(matrices):
        rows.append(_join([(A, -V) if other == index else zero[other] for other in range(len(heads))], heads))
    for layer, width in enumerate(() if architecture.residual else architecture.widths[1:-1]):
        for E in _units(width, width):
            changes = list(zero)
            for index, (A, V) in enumerate(matrices):
                if heads[index].layer == layer:
                    changes[index] = zero[index][0], field.matmul(E, V)
                elif heads[index].layer == layer + 1:
                    changes[index] = -(field.matmul(E.T, A) + field.matmul(A, E)), -field.matmul(V, E)
            rows.append(_join(changes, heads))
    return np.stack(rows) % field.p


def _join(changes: list[tuple[Array, Array]], heads: list[HeadPoint]) -> Array:
    parts = [np.zeros(1, dtype=np.int64)]
    for (dA, dV), head in zip(changes, heads):
        parts += [dA.ravel()] if head.V.rank else []
        parts += [dV.ravel()] if head.A.rank else []
    return np.concatenate(parts)
