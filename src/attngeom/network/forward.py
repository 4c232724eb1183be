"""Forward passes, in the form that costs least.

One head computes, for X of shape d×t with tokens as columns, column i = Σ_j P_ji V x_j; the weights P come from the
scores x_jᵀ A x_i by the rule of its kind of attention. All functions take arrays X of shape (..., d, t) over the
domain of the weights.
"""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array
from attngeom.network.attention.rule import swap
from attngeom.network.layer import project
from attngeom.network.weights import Weights


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
