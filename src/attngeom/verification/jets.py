"""Forward derivatives of a network mod p, with respect to chosen weights: first ones, and second ones in one direction.

Nothing here comes from the search, which propagates back. A network is evaluated over the ring
GF(p)[ε, η_1, …, η_n]/(ε², η_i η_j): with weights w + ε v + Σ η_i e_i the coefficient of η_i of f is ∂f/∂w_i, that of
ε η_i is entry i of the Hessian times v.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np

from attngeom.exact.domains import Array, BalancedField
from attngeom.limits.memory import JETS_AT_ONCE
from attngeom.limits.recheck import HEAD_OVERHEAD, JACOBIAN_PRODUCTS, SAMPLE_ENTRIES
from attngeom.network.architecture import Architecture
from attngeom.network.weights import Weights
from attngeom.verification.budget import afford


def afford_jets(architecture: Architecture, directions: int, evaluations: int, tokens: int, what: str) -> None:
    """Bound the memory of the tangents of states and scores in all directions, and the work to carry them forward."""
    width = max(architecture.widths)
    inner = max(width, *(max(layer.attention, layer.value_width or 0) for layer in architecture.layers))
    afford(directions * tokens * max(inner, tokens), SAMPLE_ENTRIES, "entries of tangents")
    # Scores are also reduced and masked, entry by entry.
    per_head = HEAD_OVERHEAD + directions * tokens * (inner * (width + tokens) + 4 * tokens)
    work = evaluations * architecture.num_layers * architecture.heads * per_head
    afford(work, JACOBIAN_PRODUCTS, f"multiplications for {what}")


Samples = tuple[Array, Array, list[list[Array]] | None]
"""Inputs (N, t, d_0), cotangents (N, t, d_l), and formal attention (N, t, t) of all layers and heads, or None."""


Heads = list[list[list[Array]]]
"""The tensors Q, K, V, and O if there is one, of each head of each layer; or a single table, see :class:`JetPoint`."""


def tensors_of(weights: Weights) -> Heads:
    """The tensors of all heads."""
    return [[list(head.tensors.values()) for head in heads] for heads in weights.layers]


class JetPoint:
    """A network and samples mod p, with balanced residues, whose products are BLAS calls.

    ``columns`` are the weights that vary, as places in the vector of all weights; scores are divided by the
    ``temperature``. A head that is a table T = 0 of size d'×(d(d+1)/2 · d) varies the map x_i ↦ T (Σ_j x_j x_j ⊗ x_i).
    """

    def __init__(
        self,
        architecture: Architecture,
        heads: Heads,
        p: int,
        samples: Samples,
        columns: Sequence[int] = (),
        temperature: Fraction | int = 1,
    ) -> None:
        self.field = BalancedField(p)
        convert, (inputs, cotangents, attention) = self.field.from_residues, samples
        self.architecture, self.temperature = architecture, temperature
        self.columns = np.array(columns, dtype=np.int64)
        self.heads = [[[convert(tensor) for tensor in head] for head in layer] for layer in heads]
        self.inputs, self.cotangents = (np.swapaxes(convert(x), 1, 2) for x in (inputs, cotangents))
        self.attention = None if attention is None else [[convert(P) for P in layer] for layer in attention]

    def chunks(self, samples: Sequence[int], directions: int) -> Iterator[list[int]]:
        """The samples in chunks whose tangents in so many directions fit into the cache."""
        step = max(1, JETS_AT_ONCE // ((1 + directions) * max(self.architecture.widths) * self.inputs.shape[-1]))
        return (list(samples[start : start + step]) for start in range(0, len(samples), step))

    def gradients(self, samples: Sequence[int]) -> Array:
        """The gradients of ⟨C, φ(X)⟩ for these samples in the chosen weights, one row each."""
        size = len(self.columns)
        gradients = [self._differentiate(chunk, None)[0] for chunk in self.chunks(samples, size)]
        return np.concatenate([np.zeros((0, size), dtype=self.field.dtype), *gradients])

    def hessian_product(self, sample: int, direction: Array) -> Array:
        """The Hessian of ⟨C, φ(X)⟩ for one sample, times a direction in all weights."""
        return np.asarray(self._differentiate([sample], direction)[1, 0])

    def push(self, directions: Array, samples: Sequence[int]) -> Array:
        """The derivatives of the outputs along directions (q, N) in all weights: shape (q, samples, d_l, t)."""
        start, tensors = 0, []
        directions = self.field.from_residues(directions)
        for tensor in (tensor for layer in self.heads for head in layer for tensor in head):
            stop = start + tensor.size
            tensors.append(MovedMatrix(tensor, directions[:, start:stop].reshape(-1, 1, *tensor.shape)))
            start = stop
        return np.asarray(self.run(iter(tensors), list(samples), 1, len(directions)).output.parts[0, 1:])

    def outputs(self) -> Array:
        """The outputs at all samples, (N, d_l, t)."""
        tensors = (MovedMatrix(tensor, None) for layer in self.heads for head in layer for tensor in head)
        return np.asarray(self.run(tensors, list(range(len(self.inputs))), 1, 0).output.parts[0, 0])

    def _differentiate(self, samples: list[int], direction: Array | None) -> Array:
        """For each sample the coefficients of all η_i and, if there is a direction, of all ε η_i."""
        orders, size = 1 if direction is None else 2, len(self.columns)
        output = self.run(self._varied(direction), samples, orders, size).output
        tangents = np.swapaxes(output.parts[:, 1:], 1, 2).reshape(orders, len(samples), size, -1)
        return np.asarray(self.field.matmul(tangents, self.cotangents[samples].reshape(len(samples), -1, 1))[..., 0])

    def run(self, tensors: Iterator[JetMatrix], samples: list[int], orders: int, size: int) -> Pass:
        """The network with these tensors at samples, over the ring with ``size`` variables η, and ε for two orders."""
        inputs = self.inputs[samples]
        X = np.zeros((orders, 1 + size, *inputs.shape), dtype=self.field.dtype)
        X[0, 0] = inputs
        after = Jet(X, self.field)
        for index, layer in enumerate(self.heads):
            state, attention, mixed = after, [], []
            outs = [state] if self.architecture.residual else []
            for place, head in enumerate(layer):
                first, *others = (next(tensors) for _ in head)
                if not others:
                    assert isinstance(first, VariedMatrix)
                    outs.append(first.vary(self._cubics(state.parts[0, 0]), state))
                    continue
                K, V, *O = others
                given = None if self.attention is None else self.attention[index][place][samples]
                attention.append(self._attend((K @ state).T @ (first @ state), given))
                mixed.append((V @ state) @ attention[-1])
                outs.append(O[0] @ mixed[-1] if O else mixed[-1])
            after = reduce(Jet.__add__, outs)
        return Pass(after, state, attention, mixed)

    def _cubics(self, x: Array) -> Array:
        """Column i: Σ_j x_j^(k) x_j^(l) x_i^(m), k ≤ l, with j ≤ i if masked, in place (k, l, m)."""
        field = self.field
        k, l = np.triu_indices(x.shape[1])
        visible = np.ones((x.shape[2],) * 2, dtype=field.dtype)
        squares = field.matmul(
            field.times(x[:, k], x[:, l]), np.triu(visible) if self.architecture.mask.hides else visible
        )
        return np.asarray(field.times(squares[:, :, None], x[:, None]).reshape(len(x), -1, x.shape[2]))

    def _attend(self, scores: Jet, given: Array | None) -> Jet:
        """The attention weights of scores S_0 + n, n nilpotent: S itself, or by Taylor's formula from those at S_0."""
        field, architecture = scores.field, self.architecture
        if given is None:
            visible = np.triu(np.ones(scores.parts.shape[-2:], dtype=field.dtype))
            return scores.scaled(visible) if architecture.mask.hides else scores
        n = scores.nilpotent
        if self.temperature != 1:
            n = n.scaled(field.convert([1 / self.temperature]))
        # Without ε the product of two nilpotents is zero.
        square = (n * n).scaled(field.convert([Fraction(1, 2)])) if len(n.parts) == 2 else n.constant(0)
        if architecture.kind == "sigmoid":
            slope = field.times(given, field.reduce(1 - given))
            curvature = field.times(slope, field.reduce(1 - 2 * given))
            return n.constant(given) + n.scaled(slope) + square.scaled(curvature)
        # P exp(n) / Σ P exp(n), exp(n) = 1 + n + n²/2; the sum is 1 + m, its inverse 1 − m + m².
        powers = n.constant(given) + (n + square).scaled(given)
        m = Jet(field.reduce(powers.parts.sum(axis=-2, keepdims=True)), field).nilpotent
        return powers * (m.constant(1) - m + m * m)

    def _varied(self, direction: Array | None) -> Iterator[JetMatrix]:
        """The varied weights, tensor by tensor."""
        start = 0
        for tensor in (tensor for layer in self.heads for head in layer for tensor in head):
            stop = start + tensor.size
            places = np.flatnonzero((start <= self.columns) & (self.columns < stop))
            rows, columns = np.divmod(self.columns[places] - start, tensor.shape[1])
            own = None if direction is None else direction[start:stop].reshape(tensor.shape)
            yield VariedMatrix(tensor, own, 1 + places, rows, columns)
            start = stop


@dataclass(frozen=True)
class Jet:
    """Matrices over the ring of the module, one for each sample: ``parts[i, j]`` belong to ε^i and to 1 (j = 0) or η_j.

    Without a direction no ε is needed, and ``parts`` has length one.
    """

    parts: Array
    field: BalancedField

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.field.reduce(self.parts + other.parts), self.field)

    def __sub__(self, other: Jet) -> Jet:
        return Jet(self.field.reduce(self.parts - other.parts), self.field)

    def __matmul__(self, other: Jet) -> Jet:
        return Jet(_multiply(self.parts, other.parts, self.field.matmul, self.field), self.field)

    def __mul__(self, other: Jet) -> Jet:
        """Entry by entry."""
        return Jet(_multiply(self.parts, other.parts, self.field.times, self.field), self.field)

    def scaled(self, factor: Array) -> Jet:
        """Every part times a number, or entry by entry times a matrix of numbers."""
        return Jet(self.field.times(self.parts, factor), self.field)

    def constant(self, value: Array | float) -> Jet:
        """A jet of the same shape that is constant."""
        parts = np.zeros_like(self.parts)
        parts[0, 0] = value
        return Jet(parts, self.field)

    @property
    def T(self) -> Jet:
        return Jet(np.swapaxes(self.parts, -1, -2), self.field)

    @property
    def nilpotent(self) -> Jet:
        """The jet without its constant; the product of three of these is zero."""
        parts = self.parts.copy()
        parts[0, 0] = 0
        return Jet(parts, self.field)


Product = Callable[[Array, Array], Array]


def _multiply(a: Array, b: Array, times: Product, field: BalancedField) -> Array:
    """The product of two jets: ε² = 0, and one η at most."""
    orders = [_first_order(a[0], b[0], times, field)]
    if len(a) == 2:
        orders.append(field.reduce(_first_order(a[0], b[1], times, field) + _first_order(a[1], b[0], times, field)))
    return np.stack(orders)


def _first_order(a: Array, b: Array, times: Product, field: BalancedField) -> Array:
    """(a_0 + Σ a_j η_j)(b_0 + Σ b_j η_j)."""
    out = times(a[:1], b)
    out[1:] = field.reduce(out[1:] + times(a[1:], b[:1]))
    return out


class Pass(NamedTuple):
    """The output of a network, and of its last layer the input, and attention and mixed values of each head."""

    output: Jet
    state: Jet
    attention: list[Jet]
    mixed: list[Jet]


class JetMatrix(Protocol):
    """A tensor of a network over the ring, which multiplies jets."""

    def __matmul__(self, x: Jet) -> Jet: ...


@dataclass(frozen=True)
class MovedMatrix:
    """W + Σ η_k D_k for one tensor; nothing moves it if there are no D_k (q, 1, rows, columns)."""

    value: Array
    moves: Array | None

    def __matmul__(self, x: Jet) -> Jet:
        out = x.field.matmul(self.value, x.parts)
        if self.moves is not None:
            out[0, 1:] = x.field.reduce(out[0, 1:] + x.field.matmul(self.moves, x.parts[0, 0]))
        return Jet(out, x.field)


@dataclass(frozen=True)
class VariedMatrix:
    """W + ε v + Σ η_i e_i for one tensor: entry (rows[k], columns[k]) is varied by η number places[k]."""

    value: Array
    direction: Array | None
    places: Array
    rows: Array
    columns: Array

    def __matmul__(self, x: Jet) -> Jet:
        """The product with a jet; the η of entry (r, c) puts row c of the constant into row r."""
        field = x.field
        out = field.matmul(self.value, x.parts)
        for order, constant in enumerate(x.parts[:, 0]):
            out[order][self.places, :, self.rows] += np.swapaxes(constant[:, self.columns], 0, 1)
        if self.direction is not None:
            out[1] += field.matmul(self.direction, x.parts[0])
        return Jet(field.reduce(out), field)

    def vary(self, constant: Array, like: Jet) -> Jet:
        """The product with matrices of numbers if the value is zero: only what varies is left."""
        out = np.zeros((*like.parts.shape[:3], len(self.value), constant.shape[-1]), dtype=constant.dtype)
        out[0][self.places, :, self.rows] = np.swapaxes(constant[:, self.columns], 0, 1)
        return Jet(out, like.field)
