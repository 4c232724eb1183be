"""Second derivatives of a network: the gradients of ⟨C, φ(X)⟩ differentiated along directions in weight space.

The passes of :mod:`attngeom.network.layer` are differentiated once more by the product rule, so a Hessian is never
formed: H v costs a few times what a gradient costs. Tokens are rows, as there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.network.attention.rule import swap
from attngeom.network.layer import Gradient, Layer, Passes, project


@dataclass(frozen=True, eq=False)
class _Motion:
    """How the inputs of a layer and what its heads computed move along the directions."""

    dX: Array
    heads: tuple[tuple[Array, ...], ...]
    """For each head the changes of q, k, v, P and of the mixed values."""


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
    moved = domain.zeros((*lead, *passes.layers[0].X.shape))
    motions, used = [], []
    for layer in passes.layers:
        own = [next(remaining) for trace in layer.traces for _ in trace.head.tensors]
        motion, moved = _move(layer, moved, iter(own))
        motions.append(motion)
        used.append(own)
    change = domain.zeros((*lead, *cotangent.shape))
    found: list[Array] = []
    for layer, motion, own in zip(reversed(passes.layers), reversed(motions), reversed(used)):
        gradients = layer.pull(cotangent)
        changes = _bend(layer, motion, cotangent, change, iter(own))
        found = [_product_rule(g, dg, domain) for g, dg in zip(gradients, changes)] + found
        change = _bend_input(layer, change, gradients, changes, own)
        cotangent = layer.pull_input(cotangent, gradients)
    return found


def _derivative(X: Array, dX: Array, matrix: Array, change: Array, domain: Domain) -> Array:
    """The derivative of X matrixᵀ."""
    return domain.reduce(project(X, change, domain) + project(dX, matrix, domain))


def _bilinear(a: Array, da: Array, b: Array, db: Array, domain: Domain) -> Array:
    """The derivative of a matrix product a b."""
    return domain.reduce(domain.matmul(da, b) + domain.matmul(a, db))


def _move(layer: Layer, dX: Array, directions: Iterator[Array]) -> tuple[_Motion, Array]:
    """The changes inside a layer, and that of its output."""
    domain, X = layer.domain, layer.X
    heads = []
    output = dX if layer.residual else domain.zeros((1,))
    for trace in layer.traces:
        head = trace.head
        dq, dk, dv = (_derivative(X, dX, matrix, next(directions), domain) for matrix in (head.Q, head.K, head.V))
        dS = _bilinear(trace.k, dk, swap(trace.q), swap(dq), domain)
        dP = layer.rule.push(trace.P, dS, domain)
        mixed = _bilinear(swap(trace.P), swap(dP), trace.v, dv, domain)
        heads.append((dq, dk, dv, dP, mixed))
        part = mixed if head.O is None else _derivative(trace.mixed, mixed, head.O, next(directions), domain)
        output = domain.reduce(output + part)
    return _Motion(dX, tuple(heads)), np.asarray(output)


def _bend(
    layer: Layer, motion: _Motion, cotangent: Array, change: Array, directions: Iterator[Array]
) -> list[Gradient]:
    """The changes of the factors of all gradients that :meth:`Layer.pull` lists."""
    domain, rule = layer.domain, layer.rule
    found = []
    for trace, (dq, dk, dv, dP, dmixed) in zip(layer.traces, motion.heads):
        O = trace.head.O
        for _ in range(3):
            next(directions)
        mixed, dbar = cotangent, change
        if O is not None:
            mixed = project(cotangent, O.T, domain)
            dbar = _derivative(cotangent, change, O.T, swap(next(directions)), domain)
        inner = domain.matmul(trace.v, swap(mixed))
        scores = rule.pull(trace.P, inner, domain)
        dinner = _bilinear(trace.v, dv, swap(mixed), swap(dbar), domain)
        dscores = domain.reduce(rule.pull(trace.P, dinner, domain) + rule.bend(trace.P, dP, inner, domain))
        found.append(Gradient(_bilinear(swap(scores), swap(dscores), trace.k, dk, domain), motion.dX))
        found.append(Gradient(_bilinear(scores, dscores, trace.q, dq, domain), motion.dX))
        found.append(Gradient(_bilinear(trace.P, dP, mixed, dbar, domain), motion.dX))
        if O is not None:
            found.append(Gradient(change, dmixed))
    return found


def _product_rule(gradient: Gradient, change: Gradient, domain: Domain) -> Array:
    """The derivative of barᵀ source."""
    return _bilinear(swap(gradient.bar), swap(change.bar), gradient.source, change.source, domain)


def _bend_input(
    layer: Layer, change: Array, gradients: list[Gradient], changes: list[Gradient], directions: list[Array]
) -> Array:
    """The change of the cotangent of the input."""
    domain = layer.domain
    total = change if layer.residual else domain.zeros((1,))
    pairs = zip(gradients, changes, directions)
    for trace in layer.traces:
        for letter, matrix in trace.head.tensors.items():
            gradient, moved, direction = next(pairs)
            if letter != "O":
                part = _derivative(gradient.bar, moved.bar, matrix.T, swap(direction), domain)
                total = domain.reduce(total + part)
    return np.asarray(total)
