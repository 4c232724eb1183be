"""Derivatives of W ↦ (φ_W(X_1), …, φ_W(X_N)) at given weights, for inputs with tokens as columns."""

from __future__ import annotations

from math import prod

import numpy as np

from attngeom.exact.domains import Array
from attngeom.limits.memory import TANGENTS_AT_ONCE
from attngeom.network.attention.rule import swap
from attngeom.network.layer import Formal, Passes
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
