"""Layers and networks at inputs: outputs, derivatives along directions in weight space, and the transpose of these.

This is the only place where attention is differentiated; every domain and every kind of attention goes through it.
Inside, tokens are rows: X has shape (..., t, d), so that a projection of a whole batch is one matrix product. Leading
axes of inputs, directions and cotangents broadcast: a stack of p directions moves a batch of N inputs to (p, N, t, d).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.network.attention import Attention
from attngeom.network.weights import Head, Weights

Changes = tuple[Array | None, ...]
Formal = Sequence[Sequence[Array | None]]
"""Formal attention weights for each layer and head, or None where the scores are used."""


class Gradient(NamedTuple):
    """The derivative of ⟨C, φ(X)⟩ along one tensor, factored over the tokens: barᵀ source."""

    bar: Array
    source: Array

    def product(self, domain: Domain, start: int = 0) -> Array:
        """The gradient of every sample, (..., rows, columns from ``start``)."""
        return domain.matmul(swap(self.bar), self.source[..., start:])


def project(X: Array, matrix: Array, domain: Domain) -> Array:
    """X matrixᵀ for tokens in rows, as one product; a stack of matrices (p, ·, ·) gives a stack (p, ...)."""
    flat = X.reshape(-1, X.shape[-1])
    if matrix.ndim == 2:
        return domain.matmul(flat, matrix.T).reshape(*X.shape[:-1], matrix.shape[0])
    rows = matrix.reshape(-1, matrix.shape[-1])
    stacked = domain.matmul(flat, rows.T).reshape(*X.shape[:-1], *matrix.shape[:-1])
    lead = matrix.ndim - 2
    return np.moveaxis(stacked, range(X.ndim - 1, X.ndim - 1 + lead), range(lead))


def _sum(domain: Domain, terms: Sequence[Array | None]) -> Array | None:
    """The sum of the terms that are there."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else domain.add(total, term)
    return total


def _two_products(domain: Domain, a: Array | None, b: Array, c: Array, d: Array | None) -> Array | None:
    """a b + c d, where None stands for zero."""
    if a is None:
        return None if d is None else domain.matmul(c, d)
    return domain.matmul(a, b) if d is None else domain.add_products(a, b, c, d)


@dataclass(frozen=True, eq=False)
class HeadTrace:
    """What one head computed: queries, keys, values (..., t, ·), attention P (..., t, t), mixed values Pᵀ v."""

    head: Head
    q: Array
    k: Array
    v: Array
    P: Array
    mixed: Array

    @classmethod
    def at(cls, head: Head, X: Array, rule: Attention, domain: Domain, formal: Array | None) -> HeadTrace:
        q, k, v = (project(X, matrix, domain) for matrix in (head.Q, head.K, head.V))
        P = rule.weights(domain.matmul(k, swap(q)), domain) if formal is None else formal
        return cls(head, q, k, v, P, domain.matmul(swap(P), v))


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer at inputs X, with what its derivatives need.

    Directions and gradients are listed in storage order: Q, K, V and, if factored, O of every head.
    """

    X: Array
    traces: tuple[HeadTrace, ...]
    rule: Attention
    domain: Domain
    residual: bool

    def output(self) -> Array:
        """The sum of the heads, and of the input if there is a skip connection."""
        parts = [
            trace.mixed if trace.head.O is None else project(trace.mixed, trace.head.O, self.domain)
            for trace in self.traces
        ]
        return np.asarray(_sum(self.domain, [self.X if self.residual else None, *parts]))

    def move(self, dX: Array | None, directions: Iterator[Array | None]) -> tuple[Array | None, list[Changes]]:
        """The derivatives along dX and the directions of the output, and for each head of q, k, v, P and mixed values.

        None stands for zero.
        """
        domain = self.domain
        parts = [dX if self.residual else None]
        changes: list[Changes] = []
        for trace in self.traces:
            head = trace.head
            dq, dk, dv = (self.derivative(self.X, dX, matrix, next(directions)) for matrix in (head.Q, head.K, head.V))
            dS = _two_products(domain, dk, swap(trace.q), trace.k, None if dq is None else swap(dq))
            dP = None if dS is None else self.rule.push(trace.P, dS, domain)
            mixed = _two_products(domain, None if dP is None else swap(dP), trace.v, swap(trace.P), dv)
            changes.append((dq, dk, dv, dP, mixed))
            parts.append(mixed if head.O is None else self.derivative(trace.mixed, mixed, head.O, next(directions)))
        return _sum(domain, parts), changes

    def derivative(self, X: Array, dX: Array | None, matrix: Array, direction: Array | None) -> Array | None:
        """The derivative of X matrixᵀ."""
        first = None if direction is None else project(X, direction, self.domain)
        second = None if dX is None else project(dX, matrix, self.domain)
        return _sum(self.domain, [first, second])

    def pull(self, cotangent: Array) -> list[Gradient]:
        """The gradients of all tensors for a cotangent of the output."""
        domain = self.domain
        gradients = []
        for trace in self.traces:
            O = trace.head.O
            mixed = cotangent if O is None else project(cotangent, O.T, domain)
            scores = self.rule.pull(trace.P, domain.matmul(trace.v, swap(mixed)), domain)
            gradients.append(Gradient(domain.matmul(swap(scores), trace.k), self.X))
            gradients.append(Gradient(domain.matmul(scores, trace.q), self.X))
            gradients.append(Gradient(domain.matmul(trace.P, mixed), self.X))
            if O is not None:
                gradients.append(Gradient(cotangent, trace.mixed))
        return gradients

    def pull_input(self, cotangent: Array, gradients: list[Gradient]) -> Array:
        """The cotangent of the input, from what :meth:`pull` found."""
        remaining = iter(gradients)
        parts = [cotangent if self.residual else None]
        for trace in self.traces:
            head = trace.head
            parts += [project(next(remaining).bar, matrix.T, self.domain) for matrix in (head.Q, head.K, head.V)]
            if head.O is not None:
                next(remaining)
        return np.asarray(_sum(self.domain, parts))


@dataclass(frozen=True, eq=False)
class Passes:
    """A network at inputs X (..., t, d_0): its output, and its derivative in both directions.

    Directions and gradients are listed in storage order, as in :meth:`Architecture.tensor_shapes`.
    """

    layers: tuple[Layer, ...]

    @classmethod
    def at(
        cls,
        layers: Sequence[Sequence[Head]],
        X: Array,
        rule: Attention,
        domain: Domain,
        residual: bool,
        formal: Formal | None = None,
    ) -> Passes:
        """Run the network forward; with formal attention weights the scores are not used."""
        evaluated: list[Layer] = []
        for index, heads in enumerate(layers):
            given = (None,) * len(heads) if formal is None else formal[index]
            X = evaluated[-1].output() if evaluated else X
            traces = tuple(HeadTrace.at(head, X, rule, domain, P) for head, P in zip(heads, given))
            evaluated.append(Layer(X, traces, rule, domain, residual))
        return cls(tuple(evaluated))

    def output(self) -> Array:
        return self.layers[-1].output()

    def push(self, directions: Sequence[Array | None]) -> Array | None:
        """The derivative of the output along directions in all tensors; None stands for zero."""
        remaining = iter(directions)
        moved = None
        for layer in self.layers:
            moved, _ = layer.move(moved, remaining)
        return moved

    def pull(self, cotangent: Array) -> list[Gradient]:
        """The gradients of ⟨cotangent, output⟩ along all tensors."""
        return [gradient for _, _, gradients in [*self.backward(cotangent)][::-1] for gradient in gradients]

    def backward(self, cotangent: Array) -> Iterator[tuple[Layer, Array, list[Gradient]]]:
        """The layers from the last one on, each with the cotangent of its output and its gradients."""
        for index, layer in reversed(list(enumerate(self.layers))):
            gradients = layer.pull(cotangent)
            yield layer, cotangent, gradients
            if index:
                cotangent = layer.pull_input(cotangent, gradients)


def forward_layer(weights: Weights, index: int, X: Array) -> Array:
    """One layer of the network, counted from 0, at inputs X of shape (..., d_in, t)."""
    domain, rule, X = weights.domain, weights.architecture.rule, swap(X)
    total = X if weights.architecture.residual else None
    for head in weights.layers[index]:
        q, k, v = (project(X, matrix, domain) for matrix in (head.Q, head.K, head.V))
        part = rule.mix(q, k, v, domain)
        part = part if head.O is None else project(part, head.O, domain)
        total = part if total is None else domain.reduce(total + part)
    return swap(np.asarray(total))


def forward(weights: Weights, X: Array) -> Array:
    """phi_W(X) for X of shape (..., d_0, t), by the cheapest form of each layer.

    The number of tokens is taken from X; the function is defined for every t.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network.architecture import Architecture
    >>> ones = {f"layers.0.{name}": [[1]] for name in "QKV"}
    >>> forward(Weights.from_tensors(Architecture((1, 1), 1), ones, QQ), QQ.convert([[1, 2]])).tolist()
    [[5, 10]]
    """
    d = weights.architecture.widths[0]
    if X.ndim < 2 or X.shape[-2] != d or X.shape[-1] < 1:
        raise InputError(f"input of shape {X.shape} given; shape (..., {d}, tokens) is required")
    if not weights.architecture.is_plain:
        # Loaded where it is needed: the verifier evaluates plain networks and loads no program.
        from attngeom.network.programs import run_network

        return run_network(weights, X)
    with weights.domain.working():
        for index in range(weights.architecture.num_layers):
            X = forward_layer(weights, index, X)
    return X
