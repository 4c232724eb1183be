"""Weights with given virtual weights (M_1..M_l, L)."""

from __future__ import annotations

import numpy as np

from attngeom.canonical.echelon import row_gauge
from attngeom.canonical.restore import pad_head
from attngeom.errors import InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.groups.balance import balanced_factors
from attngeom.network import Architecture, VirtualWeights, Weights


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
    multiply, layers = domain.matmul, []
    before_dual = domain.eye(architecture.widths[0])
    for index, shape in enumerate(architecture.layers):
        A = multiply(before_dual.T, multiply(virtual.M[index], before_dual))
        after, after_dual = virtual.L, before_dual
        if index < architecture.num_layers - 1:
            after, after_dual = _span(virtual, index + 1, shape.d_out, domain)
        values = multiply(after, before_dual)
        K, Q = _factors(A, shape.attention, f"M_{index + 1}", domain)
        tensors = {"Q": Q, "K": K, "V": values}
        if shape.value_width is not None:
            S, tensors["V"] = _factors(values, shape.value_width, "a value map", domain)
            tensors["O"] = S.T
        layers.append((pad_head(shape, domain, **tensors),))
        before_dual = after_dual
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


def _factors(W: Array, width: int, name: str, domain: Domain) -> tuple[Array, Array]:
    """S and T of at most ``width`` rows with Sᵀ T = W."""
    if domain.rounds:
        factors = balanced_factors(W, width)
        return factors.S, factors.T
    gauge = row_gauge(W, domain)
    if len(gauge.pivots) > width:
        raise InputError(f"{name} of rank {len(gauge.pivots)} given; at most {width} fits")
    return gauge.basis.T, gauge.rows
