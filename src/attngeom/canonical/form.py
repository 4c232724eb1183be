"""Canonical form: one representative for each generic fiber.

Layer by layer, in coordinates of the input that are already canonical: A_h is scaled so that one entry of its key
factor is 1 (lightning); Q_h, V_h (factored heads) and, before another layer and without skip connection, the stacked
outputs [O_1 … O_H] are in echelon gauge; heads are ordered by A_h. What the network cannot see (coordinates outside
the span of the outputs, factors beyond a rank) is zero. Over Q everything is rational; the scales end up in the last
layer. Over floats the scale is the same in every layer, κ, so that degrees 3^l do not overflow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from attngeom.canonical.echelon import row_gauge
from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import Array, Domain
from attngeom.network import Architecture, Head, Weights

Gauge = Literal["echelon", "balanced"]


@dataclass(frozen=True, eq=False)
class CanonicalHead:
    """K (α×r), Q (α×r, identity at ``query_pivots``), V (ν×r, identity at ``value_pivots``), O (ρ×ν).

    ``scale_pivot`` is the place of the entry 1 in K, or None (softmax, or a head that is zero).
    """

    K: Array
    Q: Array
    V: Array
    O: Array
    query_pivots: tuple[int, ...]
    value_pivots: tuple[int, ...]
    scale_pivot: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class CanonicalLayer:
    """Heads in canonical order; ``stack_pivots`` are the identity columns of [O_1 … O_H], None where O is free.

    ``size_in`` and ``size_out`` are the numbers of coordinates that are in use before and after the layer.
    """

    heads: tuple[CanonicalHead, ...]
    stack_pivots: tuple[int, ...] | None
    size_in: int
    size_out: int


@dataclass(frozen=True, eq=False)
class CanonicalForm:
    """All canonical layers; over floats the last outputs have largest entry ±1 and ``log_scale`` is log of the rest.

    ``log_scale`` is None where the scale is part of the last layer: over Q, for softmax and with skip connections.
    """

    architecture: Architecture
    domain: Domain
    layers: tuple[CanonicalLayer, ...]
    log_scale: float | None


def canonical_form(weights: Weights) -> CanonicalForm:
    """The canonical form of exact or float weights.

    Equal for all weights of one group orbit; one for each generic fiber where the widths do not decrease towards a
    narrower layer that hides part of an earlier one ([G] Cor 3.8's widths, and all networks with skip connections).

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> canonical_form(random_weights(Architecture((3, 2, 3), 2), QQ, seed=0)).layers[0].stack_pivots
    (0, 1)
    """
    domain, architecture = weights.domain, weights.architecture
    if domain.encloses:
        raise DomainError(f"weights over {domain.name} given; exact or float weights are required")
    has_scale = architecture.rule.has_scale
    follows_scale = has_scale and domain.rounds and not architecture.residual
    log_scale = 0.0
    embedding = domain.eye(architecture.widths[0])
    layers = []
    for index, heads in enumerate(weights.layers):
        seen = [_canonical_head(head, embedding, has_scale, domain) for head in heads]
        seen.sort(key=lambda head: _order_key(head, domain))
        is_hidden = index < architecture.num_layers - 1 and not architecture.residual
        stack = np.concatenate([head.O for head in seen], axis=1)
        pivots: tuple[int, ...] | None = None
        if is_hidden:
            gauge = row_gauge(stack, domain)
            stack, pivots, embedding = gauge.rows, gauge.pivots, gauge.basis
        if follows_scale:
            # A hidden layer scales what follows it cubed: keep the basis at size one and count its logarithm.
            size = float(np.abs(embedding).max(initial=0.0) if is_hidden else np.abs(stack).max(initial=0.0)) or 1.0
            if is_hidden:
                embedding = embedding / size
            else:
                stack = stack / size
            log_scale = 3 * log_scale + float(np.log(size))
        sizes = np.cumsum([head.O.shape[1] for head in seen])[:-1]
        outputs = np.split(stack, sizes, axis=1)
        layers.append(
            CanonicalLayer(
                tuple(replace(head, O=O) for head, O in zip(seen, outputs)),
                pivots,
                seen[0].K.shape[1],
                stack.shape[0],
            )
        )
        if not is_hidden:
            embedding = domain.eye(stack.shape[0])
    return CanonicalForm(architecture, domain, tuple(layers), log_scale if follows_scale else None)


def _canonical_head(head: Head, embedding: Array, has_scale: bool, domain: Domain) -> CanonicalHead:
    """The head in the coordinates given by the columns of ``embedding``, with O not yet in its gauge."""
    multiply = domain.matmul
    A = multiply(multiply(head.K, embedding).T, multiply(head.Q, embedding))
    gauge = row_gauge(A, domain)
    K, Q = gauge.basis.T, gauge.rows
    if head.O is None:
        V, O = domain.eye(embedding.shape[1]), multiply(head.V, embedding)
        value_pivots = tuple(range(embedding.shape[1]))
    else:
        values = row_gauge(multiply(head.O, multiply(head.V, embedding)), domain)
        V, O, value_pivots = values.rows, values.basis, values.pivots
    if not gauge.pivots:
        # A head with A = 0 adds nothing: its values are invisible.
        if head.O is not None:
            V, O, value_pivots = V[:0], O[:, :0], ()
        return CanonicalHead(K, Q, V, O - O, (), value_pivots, None)
    place = None
    if has_scale:
        flat = K.ravel()
        position = domain.pivot(flat)
        place = (position // K.shape[1], position % K.shape[1])
        scale = K[place]
        K = domain.times(K, domain.invert(scale))
        O = domain.reduce(O * scale)
    return CanonicalHead(K, Q, V, O, gauge.pivots, value_pivots, place)


def _order_key(head: CanonicalHead, domain: Domain) -> Any:
    """Heads are ordered by A: by its entries, or over floats by a generic linear form of A / ‖A‖, free of sign."""
    A = domain.matmul(head.K.T, head.Q)
    if domain.is_exact:
        return tuple(A.ravel().tolist())
    size = float(np.linalg.norm(A)) or 1.0
    return -abs(float(np.sum(A * np.cos(np.arange(1.0, A.size + 1)).reshape(A.shape)))) / size


def restore(form: CanonicalForm, gauge: Gauge = "echelon") -> Weights:
    """The weights of a canonical form, with zeros in the coordinates that the network cannot see.

    ``balanced`` (floats only): K Kᵀ = Q Qᵀ and V Vᵀ = Oᵀ O are diagonal and decreasing, by singular values.
    """
    architecture, domain = form.architecture, form.domain
    if gauge == "balanced" and not domain.rounds:
        raise InputError("balanced factors of exact weights were asked for; they need square roots, use echelon")
    factor = 1.0
    if form.log_scale is not None:
        factor = float(np.exp(form.log_scale * 2 / (3.0**architecture.num_layers - 1)))
    layers = []
    for layer, shape in zip(form.layers, architecture.layers):
        heads = []
        for head in layer.heads:
            O = head.O * factor if form.log_scale is not None else head.O
            K, Q, V = head.K, head.Q, head.V
            if gauge == "balanced":
                Q, K = balanced_factors(K.T @ Q, len(K))
            K, Q = (_pad(matrix, (shape.attention, shape.d_in), domain) for matrix in (K, Q))
            if shape.value_width is None:
                heads.append(Head(Q, K, _pad(domain.matmul(O, V), (shape.d_out, shape.d_in), domain)))
                continue
            if gauge == "balanced":
                V, transposed = balanced_factors(O @ V, len(V))
                O = transposed.T
            V = _pad(V, (shape.value_width, shape.d_in), domain)
            heads.append(Head(Q, K, V, _pad(O, (shape.d_out, shape.value_width), domain)))
        layers.append(tuple(heads))
    return Weights(architecture, domain, tuple(layers))


def _pad(matrix: Array, shape: tuple[int, int], domain: Domain) -> Array:
    out = domain.zeros(shape)
    out[: matrix.shape[0], : matrix.shape[1]] = matrix
    return out


def balanced_factors(A: Array, rank: int) -> tuple[Array, Array]:
    """Q and K with Kᵀ Q = A, K Kᵀ = Q Qᵀ diagonal and decreasing; the largest entry of each row of Q is positive.

    >>> Q, K = balanced_factors(np.array([[4.0]]), 1)
    >>> Q.item(), K.item()
    (2.0, 2.0)
    """
    left, values, right = np.linalg.svd(A, full_matrices=False)
    root = np.sqrt(values[:rank])[:, None]
    Q, K = root * right[:rank], root * left[:, :rank].T
    largest = np.argmax(np.abs(Q), axis=1) if Q.size else np.zeros(len(Q), dtype=int)
    signs = np.sign(Q[np.arange(len(Q)), largest])[:, None] if Q.size else np.ones((len(Q), 1))
    return Q * signs, K * signs


def canonical(weights: Weights, gauge: Gauge | None = None) -> Weights:
    """The canonical representative: canonical(g · w) = canonical(w), exactly over Q, to rounding over floats.

    ``gauge`` defaults to echelon over exact domains and to balanced over floats.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_symmetry, random_weights
    >>> w = random_weights(Architecture((3, 2, 3), 2), QQ, seed=0)
    >>> canonical(w).equals(canonical(w.act(random_symmetry(w.architecture, QQ, seed=1))))
    True
    """
    return restore(canonical_form(weights), gauge or ("balanced" if weights.domain.rounds else "echelon"))
