"""Recheck two ranks at given weights mod p: of the differential in the products Θ, and of the symmetries on Θ.

Nothing here comes from the search, which propagates back: all directions of Θ are carried forward, see
:mod:`attngeom.verification.jets`, in a network whose weights are what is free in Θ. Softmax and sigmoid have formal
attention, if 1, the inputs and the scores of the weights are independent: Lemma 1 of docs/theorems/learning.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attngeom.exact.domains import GF, Array, PrimeField
from attngeom.exact.modular import rank_mod_p
from attngeom.limits.recheck import LOCAL_DIRECTIONS, LOCAL_SAMPLES, SAMPLE_ENTRIES
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Head, Weights
from attngeom.verification.budget import afford
from attngeom.verification.jets import JetPoint, afford_jets
from attngeom.verification.points import afford_samples, read_place
from attngeom.verification.reading import read_integer, require
from attngeom.verification.upper_bound import count_upper_bound

if TYPE_CHECKING:
    from attngeom.verification.learning_pairs import RankedMatrix


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
        """The number of directions, before any of them is made."""
        (d, d_out), head = self.sizes, self.head
        factors, values = int(head.K.size + head.Q.size), int(head.V.size + (0 if head.O is None else head.O.size))
        if not in_theta:
            return factors + values
        if self.is_dead:
            return self.num_tables
        return (factors if self.A.is_full else d * d) + (values if self.V.is_full else d * d_out)

    def tensors(self, in_theta: bool, field: PrimeField) -> list[tuple[Array, bool]]:
        """The tensors of the head, and whether each varies.

        In Θ a matrix that is not of full rank stands for its factors, beside a unit matrix; a table for a dead head.
        """
        (d, d_out), head = self.sizes, self.head
        if not in_theta:
            return [(tensor, True) for tensor in head.tensors.values()]
        if self.is_dead:
            return [(field.zeros((d_out, self.num_tables // d_out)), True)]
        Q, K = (head.Q, head.K) if self.A.is_full else (head.attention_matrix(field), None)
        V, O = (head.V, head.O) if self.V.is_full else (head.value_matrix(field), None)
        scores = [(Q, self.V.rank > 0), (field.eye(d), False) if K is None else (K, self.V.rank > 0)]
        return [*scores, (V, self.A.rank > 0), *([] if O is None else [(O, self.A.rank > 0)])]


def check_ranks(
    weights: Weights,
    matrices: list[tuple[RankedMatrix, RankedMatrix]],
    theorem: str,
    witness: Mapping[str, Any],
    inputs: Array | None = None,
) -> tuple[int, int]:
    """The ranks that Theorem B (they add up to dim Θ), R (the largest rank) or the two bounds need.

    At ``inputs`` (N, d_0, t) in place of the point of the witness, if they are given: then every output counts.
    """
    architecture, depth = weights.architecture, len(weights.layers)
    field = GF(read_integer(witness["prime"], 2, 2**31 - 1, "prime"))
    if inputs is None:
        place = read_place(witness)
        samples = read_integer(witness["samples"], 1, LOCAL_SAMPLES, "samples")
        tokens = read_integer(witness["tokens"], 1, architecture.tokens, "tokens")
    else:
        require(architecture.rule.is_polynomial, "ranks at given inputs are rechecked for lightning attention")
        tokens = architecture.tokens
        samples = len(inputs) * tokens * architecture.widths[-1]
        afford(samples, LOCAL_SAMPLES, "outputs at all inputs")
    given = [(index, head) for index, layer in enumerate(weights.layers) for head in layer]
    heads = [HeadPoint(index, head, *pair) for (index, head), pair in zip(given, matrices)]
    in_theta, formal = theorem == "B", not architecture.rule.is_polynomial
    size = sum(head.count_directions(in_theta) for head in heads)
    _afford(weights, size, samples, tokens)
    if formal:
        require(tokens >= 2 and all(x.A.rank for x in heads), "formal attention needs two tokens, and no A_h = 0")
        afford_samples(architecture, samples, tokens)
        afford(samples * (tokens * depth * architecture.heads) ** 2, SAMPLE_ENTRIES, "values of scores")
    heads = [replace(x, head=Head(*(field.convert(array) for array in x.head.tensors.values()))) for x in heads]
    tensors = [head.tensors(in_theta, field) for head in heads]
    columns = np.flatnonzero(np.concatenate([np.full(x.size, varies) for head in tensors for x, varies in head]))
    layers = [[[x for x, _ in own] for head, own in zip(heads, tensors) if head.layer == i] for i in range(depth)]
    if formal:
        temperature = architecture.rule.temperature
        require(all(x % field.p for x in temperature.as_integer_ratio()), "the temperature vanishes mod p")
        X, C, attention = place.samples(architecture, None, samples, tokens, field)
        assert attention is not None
        _check_scores(architecture, heads, X, attention, field)
        jets = JetPoint(architecture, layers, field.p, (X, C, attention), columns.tolist(), temperature)
    else:
        X, C = (
            _every_output(architecture, inputs, field)
            if inputs is not None
            else place.inputs(architecture, samples, tokens, field)
        )
        jets = JetPoint(architecture, layers, field.p, (X, C, None), columns.tolist())
    jacobian = rank_mod_p(jets.field.to_integers(jets.gradients(range(samples))), field.p)
    action = rank_mod_p(_action(architecture, heads, field), field.p)
    if theorem == "B":
        total = sum(head.dimension for head in heads)
        require(jacobian + action == total, f"the ranks mod p are {jacobian} and {action}; they must add up to {total}")
    elif theorem == "R":
        most = count_upper_bound(architecture)
        require(jacobian == most, f"the rank mod p is {jacobian}; the largest possible one is {most}")
    return jacobian, action


def _every_output(architecture: Architecture, inputs: Array, field: PrimeField) -> tuple[Array, Array]:
    """Inputs with tokens in rows, each once for every entry of the output."""
    t, d_out = inputs.shape[2], architecture.widths[-1]
    X = np.repeat(np.swapaxes(field.convert(inputs), 1, 2), t * d_out, axis=0)
    C = np.eye(t * d_out, dtype=np.int64).reshape(-1, t, d_out)
    return X, np.tile(C, (len(inputs), 1, 1))


def _check_scores(
    architecture: Architecture, heads: list[HeadPoint], X: Array, attention: list[list[Array]], field: PrimeField
) -> None:
    """1, the entries of X and the scores of all heads (softmax: less the one of the own token) are independent."""
    tokens, total = X.shape[1], list(X.reshape(len(X), -1).T)
    z = np.swapaxes(X, 1, 2)
    for index, own in enumerate(attention):
        here = [x.head for x in heads if x.layer == index]
        out = z if architecture.residual else 0
        for head, P in zip(here, own):
            S = field.matmul(np.swapaxes(z, 1, 2), field.matmul(head.attention_matrix(field), z))
            for i in range(tokens):
                for j in range(i + 1) if architecture.mask.hides else range(tokens):
                    if not architecture.rule.is_normalised:
                        total.append(S[:, j, i])
                    elif j != i:
                        total.append((S[:, j, i] - S[:, i, i]) % field.p)
            out = (out + field.matmul(field.matmul(head.value_matrix(field), z), P)) % field.p
        z = np.asarray(out)
    rank = rank_mod_p(np.stack([np.ones(len(X), dtype=np.int64), *total], axis=1), field.p)
    require(rank == 1 + len(total), "the scores at these weights are dependent, so that attention is not free")


def _afford(weights: Weights, directions: int, samples: int, tokens: int) -> None:
    """Bound memory and work before anything is drawn."""
    architecture = weights.architecture
    width = max(architecture.widths)
    afford(directions, LOCAL_DIRECTIONS, "directions")
    afford(samples * max(directions, tokens * 2 * width), SAMPLE_ENTRIES, "entries of a Jacobian")
    afford_jets(architecture, directions, samples, tokens, "the ranks")
    generators = sum(x**2 for x in architecture.widths[1:-1]) + architecture.num_layers * architecture.heads
    entries = sum(layer.heads * layer.d_in * (layer.d_in + layer.d_out) for layer in architecture.layers)
    afford(generators * entries, SAMPLE_ENTRIES, "entries of infinitesimal symmetries")


def _units(rows: int, columns: int) -> Array:
    return np.eye(rows * columns, dtype=np.int64).reshape(-1, rows, columns)


def _action(architecture: Architecture, heads: list[HeadPoint], field: PrimeField) -> Array:
    """Rows: scales (A_h, −V_h), if lightning, and 1 + E between layers: V̇ = EV, next layer Ȧ = −(EᵀA + AE), V̇ = −VE.

    The first row is zero. A matrix on which the function does not depend at this point is not part of Θ: V_h if A_h =
    0, A_h if V_h = 0.
    """
    matrices = [(x.head.attention_matrix(field), x.head.value_matrix(field)) for x in heads]
    zero = [(np.zeros_like(A), np.zeros_like(V)) for A, V in matrices]
    rows = [_join(zero, heads)]
    for index, (A, V) in enumerate(matrices if architecture.rule.is_polynomial else ()):
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
