"""Proofs of equality that need no group element: virtual weights, and layer by layer up to a change of basis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.comparison.gauges import is_invertible, ratio, solve_left
from attngeom.exact.domains import Array, Domain
from attngeom.layer.coefficients import expand_matrices
from attngeom.network import Head, Weights

MAX_TABLE = 300_000


def virtual_scales(first: Weights, second: Weights) -> tuple[object, ...] | None:
    """The scales (λ_1..λ_l, ρ) with M'_i = λ_i M_i, L' = ρ L and ρ Π λ_i^(3^(l-i)) = 1, or None.

    If they exist the functions are equal: [G] Eq 13, which needs no hypothesis. For softmax all must be 1. A zero
    factor on both sides makes both functions zero and leaves its scale free: it is given as 1.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((3, 2), 2), QQ, seed=0)
    >>> virtual_scales(w, w)
    (1, 1)
    """
    if not first.architecture.has_virtual_weights:
        return None
    domain = first.domain
    one, two = first.virtual(), second.virtual()
    pairs = [*zip(one.M, two.M), (one.L, two.L)]
    scales = []
    has_zero = False
    for a, b in pairs:
        if domain.is_zero(a) or domain.is_zero(b):
            if not (domain.is_zero(a) and domain.is_zero(b)):
                return None
            has_zero = True
            scales.append(domain.eye(1)[0, 0])
            continue
        scale = ratio(a, b, domain)
        if scale is None or not domain.equal(domain.reduce(a * scale), b):
            return None
        scales.append(scale)
    if first.architecture.kind == "softmax":
        return tuple(scales) if all(scale == 1 for scale in scales) else None
    if has_zero:
        return tuple(scales)
    # Horner's rule for the exponents: after layer i the product holds λ_1^(3^(i-1)) … λ_i.
    total = domain.eye(1)
    for scale in scales[:-1]:
        total = domain.reduce(domain.matmul(total, domain.matmul(total, total)) * scale)
    return tuple(scales) if domain.equal(domain.reduce(total * scales[-1]), domain.eye(1)) else None


@dataclass(frozen=True, eq=False)
class LayerEquality:
    """D_1..D_{l-1} such that layer i of the second network is D_i φ_i(D_{i-1}^{-1} X), and mixings of heads.

    ``mixings[i]`` is the H×H matrix G with A'_h = Σ_k G_hk A_k in the basis of the first network, where one exists.
    """

    between: tuple[Array, ...]
    mixings: tuple[Array | None, ...]


def _pull_back(head: Head, D: Array | None, domain: Domain) -> Head:
    """The head of layer i in the coordinates D^{-1} X of its input: Q D, K D, V D."""
    if D is None:
        return head
    return Head(domain.matmul(head.Q, D), domain.matmul(head.K, D), domain.matmul(head.V, D), head.O)


def _layer_table(heads: list[Head], domain: Domain, tokens: int) -> Array:
    """All coefficients of a lightning layer, one row for each output row."""
    single: Array | None = None
    cross: Array | None = None
    for head in heads:
        parts = expand_matrices(head.attention_matrix(domain), head.value_matrix(domain), domain)
        single = parts[0] if single is None else domain.reduce(single + parts[0])
        cross = parts[1] if cross is None else domain.reduce(cross + parts[1])
    table = np.asarray(single if tokens == 1 else cross)
    return table.reshape(table.shape[0], -1)


def layerwise_equality(first: Weights, second: Weights) -> LayerEquality | None:
    """A proof that two lightning networks are equal layer by layer, up to a change of basis between the layers.

    It covers heads that are mixed or merged, both points of a two-point fiber and any attention width. None if it is
    not so, if a change of basis is not determined, or if the tables would be too large.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1), QQ, seed=0)
    >>> layerwise_equality(w, w).mixings[0].tolist()
    [[1]]
    """
    architecture, domain = first.architecture, first.domain
    if architecture.kind != "lightning":
        return None
    if any(layer.d_out * layer.d_in**2 * (layer.d_in + 1) // 2 > MAX_TABLE for layer in architecture.layers):
        return None
    D: Array | None = None
    between: list[Array] = []
    mixings: list[Array | None] = []
    for index, heads in enumerate(first.layers):
        moved = [_pull_back(head, D, domain) for head in second.layers[index]]
        table = _layer_table(list(heads), domain, architecture.tokens)
        moved_table = _layer_table(moved, domain, architecture.tokens)
        D = None
        if not architecture.residual and index < architecture.num_layers - 1:
            D = solve_left(table, moved_table, domain)
            if D is None or not is_invertible(D, domain):
                return None
            between.append(D)
            table = domain.matmul(D, table)
        if not domain.equal(table, moved_table):
            return None
        mixings.append(_mixing(list(heads), moved, domain))
    return LayerEquality(tuple(between), tuple(mixings))


def _mixing(heads: list[Head], moved: list[Head], domain: Domain) -> Array | None:
    """The G with A'_h = Σ_k G_hk A_k, if the attention matrices are independent and span the same space."""
    A = np.stack([head.attention_matrix(domain).ravel() for head in heads])
    moved_A = np.stack([head.attention_matrix(domain).ravel() for head in moved])
    G = solve_left(A, moved_A, domain)
    return G if G is not None and domain.equal(domain.matmul(G, A), moved_A) else None
