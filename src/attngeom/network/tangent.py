"""First and second derivatives of W ↦ (φ_W(X_1), …, φ_W(X_N)) at given weights, for inputs with tokens as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from math import prod

import numpy as np

from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.limits.memory import TANGENTS_AT_ONCE
from attngeom.network.layer import Changes, Formal, Gradient, Layer, Passes, project
from attngeom.network.weights import Weights


def passes(weights: Weights, X: Array, formal: Formal | None = None) -> Passes:
    """The network at inputs X with tokens in rows, (..., t, d_0)."""
    architecture = weights.architecture
    return Passes.at(weights.layers, X, architecture.rule, weights.domain, architecture.residual, formal)


def jacobian(weights: Weights, X: Array) -> Array:
    """Rows ∂φ/∂w for every parameter w, columns the outputs at the inputs X (N, d, t).

    Over every domain that can evaluate the network. One cotangent for each output is propagated back.

    >>> from attngeom.exact import GF
    >>> from attngeom.network import Architecture, random_weights
    >>> jacobian(random_weights(Architecture((2, 2), 1), GF(7), seed=0), np.ones((3, 2, 2), dtype=np.int64)).shape
    (8, 12)
    """
    domain, (N, _, t) = weights.domain, X.shape
    d_out, size = weights.architecture.widths[-1], weights.architecture.num_parameters
    # Output (o, i) is row i, column o with tokens in rows.
    units = swap(domain.eye(d_out * t).reshape(1, d_out * t, d_out, t))
    step = max(1, TANGENTS_AT_ONCE // (d_out * t * size))
    parts = []
    with domain.working():
        for start in range(0, N, step):
            gradients = passes(weights, swap(X[start : start + step])[:, None]).pull(units)
            products = [gradient.product(domain) for gradient in gradients]
            parts.append(np.concatenate([g.reshape(*g.shape[:2], -1) for g in products], axis=-1))
    return np.concatenate(parts).reshape(-1, size).T


def gradient(weights: Weights, X: Array, C: Array) -> Array:
    """The gradient of Σ_n ⟨C_n, φ_W(X_n)⟩ in the weights, as a vector in storage order; C has shape (N, d_l, t).

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1), 1), QQ.convert([2, 3, 5]), QQ)
    >>> gradient(w, QQ.convert([[[1]]]), QQ.convert([[[1]]])).tolist()
    [15, 10, 6]
    """
    domain = weights.domain
    with domain.working():
        gradients = passes(weights, swap(X)).pull(swap(C))
        totals = []
        for bar, source in gradients:
            rows = prod(bar.shape[:-1])
            totals.append(domain.matmul(bar.reshape(rows, -1).T, source.reshape(rows, -1)).ravel())
    return np.concatenate(totals)


def hessian_products(passes: Passes, cotangent: Array, directions: Sequence[Array]) -> list[Array]:
    """d/dε of the gradients at weights + ε · direction, for each tensor: (..., rows, columns), in storage order.

    Directions have the shapes of the tensors, (rows, columns), or are stacks of p, (p, rows, columns); then passes at
    inputs (N, t, d) give arrays (p, N, rows, columns). For one sample this is the Hessian times the direction.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, Weights
    >>> from attngeom.network.tangent import passes
    >>> w = Weights.from_vector(Architecture((1, 1), 1), QQ.convert([2, 3, 5]), QQ)
    >>> one = QQ.convert([[1]])
    >>> [x.item() for x in hessian_products(passes(w, one), one, [one, 0 * one, 0 * one])]
    [0, 5, 3]
    """
    domain = passes.layers[0].domain
    lead = directions[0].shape[:-2]
    remaining = iter(directions)
    dX: Array | None = domain.zeros((*lead, *passes.layers[0].X.shape))
    motions = []
    for layer in passes.layers:
        own = [next(remaining) for trace in layer.traces for _ in trace.head.tensors]
        moved, changes = layer.move(dX, iter(own))
        motions.append((np.asarray(dX), changes, own))
        dX = moved
    change = domain.zeros((*lead, *cotangent.shape))
    rows: list[Array] = []
    for (layer, bar, gradients), (before, inside, own) in zip(passes.backward(cotangent), reversed(motions)):
        bent = list(_second_derivative(layer, before, inside, bar, change, iter(own)))
        # The derivatives of barᵀ source.
        products = (_bilinear(swap(g.bar), swap(dg.bar), g.source, dg.source, domain) for g, dg in zip(gradients, bent))
        rows = [*products, *rows]
        change = _input_second_derivative(layer, change, gradients, bent, own)
    return rows


def _bilinear(a: Array, da: Array, b: Array, db: Array, domain: Domain) -> Array:
    """The derivative of a matrix product a b."""
    return domain.add_products(da, b, a, db)


def _second_derivative(
    layer: Layer, dX: Array, inside: list[Changes], cotangent: Array, change: Array, directions: Iterator[Array]
) -> Iterator[Gradient]:
    """The changes of the factors of all gradients that :meth:`Layer.pull` lists."""
    domain, rule = layer.domain, layer.rule
    for trace, changes in zip(layer.traces, inside):
        dq, dk, dv, dP, dmixed = map(np.asarray, changes)
        O = trace.head.O
        for _ in range(3):
            next(directions)
        mixed, dbar = cotangent, change
        if O is not None:
            mixed = project(cotangent, O.T, domain)
            dbar = np.asarray(layer.derivative(cotangent, change, O.T, swap(next(directions))))
        inner = domain.matmul(trace.v, swap(mixed))
        scores = rule.pull(trace.P, inner, domain)
        dinner = _bilinear(trace.v, dv, swap(mixed), swap(dbar), domain)
        dscores = domain.add(rule.pull(trace.P, dinner, domain), rule.second_derivative(trace.P, dP, inner, domain))
        yield Gradient(_bilinear(swap(scores), swap(dscores), trace.k, dk, domain), dX)
        yield Gradient(_bilinear(scores, dscores, trace.q, dq, domain), dX)
        yield Gradient(_bilinear(trace.P, dP, mixed, dbar, domain), dX)
        if O is not None:
            yield Gradient(change, dmixed)


def _input_second_derivative(
    layer: Layer, change: Array, gradients: list[Gradient], bent: list[Gradient], directions: list[Array]
) -> Array:
    """The change of the cotangent of the input."""
    parts = [change] if layer.residual else []
    listed = zip(gradients, bent, directions)
    for trace in layer.traces:
        for letter, matrix in trace.head.tensors.items():
            gradient, moved, direction = next(listed)
            if letter != "O":
                parts.append(np.asarray(layer.derivative(gradient.bar, moved.bar, matrix.T, swap(direction))))
    return reduce(layer.domain.add, parts)
