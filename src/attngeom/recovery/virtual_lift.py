"""Weights with given virtual weights (M_1..M_l, L)."""

from __future__ import annotations

import numpy as np

from attngeom.canonical.echelon import row_gauge
from attngeom.canonical.restore import fill_corner
from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.network import Architecture, Head, VirtualWeights, Weights
from attngeom.network.balance import balanced_factors
from attngeom.network.factorization import factor_attention


def lift_virtual(virtual: VirtualWeights, architecture: Architecture) -> Weights:
    """Weights of one head whose virtual weights are the given ones, if the architecture can hold them.

    Layer i+1 sees inputs in the span U_i of the rows of L and of M_j, M_jᵀ for j > i; coordinates in a basis of U_i
    give V_i and A_i, padded by zeros. Over floats the spans and the factors of A_i are cut to the widths by singular
    values; over exact domains a rank that does not fit is an error.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import random_weights
    >>> v = random_weights(Architecture((3, 2, 2), 2), QQ, seed=0).virtual()
    >>> QQ.equal(lift_virtual(v, Architecture((3, 2, 2), 2)).virtual().M[1], v.M[1])
    True
    """
    domain = virtual.domain
    if not architecture.has_virtual_weights or architecture.num_layers != len(virtual.M):
        raise InputError(f"{len(virtual.M)} virtual layers given; a network of that depth with one head is required")
    layers = []
    before = domain.eye(architecture.widths[0])
    before_dual = before
    for index, shape in enumerate(architecture.layers):
        multiply = domain.matmul
        A = multiply(before_dual.T, multiply(virtual.M[index], before_dual))
        if index == architecture.num_layers - 1:
            values = multiply(virtual.L, before_dual)
            after, after_dual = before, before_dual
        else:
            after, after_dual = _span(virtual, index + 1, shape.d_out, domain)
            values = multiply(after, before_dual)
        V = fill_corner(values, (shape.d_out, shape.d_in), domain)
        if domain.rounds:
            found = balanced_factors(A, shape.attention)
            Q, K = (fill_corner(x, (shape.attention, shape.d_in), domain) for x in (found.T, found.S))
        else:
            if domain.rank(A) > shape.attention:
                raise InputError(f"M_{index + 1} of rank {domain.rank(A)} given; at most {shape.attention} fits")
            Q, K = factor_attention(fill_corner(A, (shape.d_in, shape.d_in), domain), shape.attention, domain)
        if shape.value_width is None:
            layers.append((Head(Q, K, V),))
        else:
            O, inner = _factor_values(V, shape.value_width, domain)
            layers.append((Head(Q, K, inner, O),))
        before, before_dual = after, after_dual
    return Weights(architecture, domain, tuple(layers))


def _span(virtual: VirtualWeights, layer: int, width: int, domain: Domain) -> tuple[Array, Array]:
    """A basis R (r×d_0) of the visible span after ``layer`` layers, and S (d_0×r) with R S = I."""
    parts = [virtual.L]
    for M in virtual.M[layer:]:
        parts += [M, M.T]
    if domain.rounds:
        stacked = np.concatenate([part / (np.linalg.norm(part) or 1.0) for part in parts])
        basis = lapack.svd(stacked)[2][: min(width, stacked.shape[1])]
        return basis, basis.T
    gauge = row_gauge(np.concatenate(parts), domain)
    if len(gauge.pivots) > width:
        raise InputError(f"virtual weights that need {len(gauge.pivots)} coordinates given; layer {layer} has {width}")
    dual = domain.zeros((virtual.L.shape[1], len(gauge.pivots)))
    dual[list(gauge.pivots)] = domain.eye(len(gauge.pivots))
    return gauge.rows, dual


def _factor_values(V: Array, width: int, domain: Domain) -> tuple[Array, Array]:
    """O and V' with O V' = V through the value width."""
    if domain.rounds:
        found = balanced_factors(V, width)
        return fill_corner(found.S.T, (V.shape[0], width), domain), fill_corner(found.T, (width, V.shape[1]), domain)
    gauge = row_gauge(V, domain)
    if len(gauge.pivots) > width:
        raise InputError(f"a value map of rank {len(gauge.pivots)} given; value width {width} is too small")
    return fill_corner(gauge.basis, (V.shape[0], width), domain), fill_corner(gauge.rows, (width, V.shape[1]), domain)
