"""Second derivatives of a network: the gradients of ⟨C, φ(X)⟩ differentiated along directions in weight space.

The passes of :mod:`attngeom.network.layer` are differentiated once more by the product rule, so a Hessian is never
formed: H v costs a few times what a gradient costs. Tokens are rows, as there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np

from attngeom.exact.domains import Array, Domain
from attngeom.network.attention.rule import swap
from attngeom.network.layer import Changes, Gradient, Layer, Passes, project


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
