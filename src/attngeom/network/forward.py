"""Forward passes: the definition, and the form that costs least.

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
from attngeom.network.weights import Head, Weights


def check_input(weights: Weights, X: Array) -> None:
    """X must have shape (..., d_0, t) with at least one token."""
    d = weights.architecture.widths[0]
    if X.ndim < 2 or X.shape[-2] != d or X.shape[-1] < 1:
        raise InputError(f"input of shape {X.shape} given; shape (..., {d}, tokens) is required")


def forward_layer(weights: Weights, index: int, X: Array) -> Array:
    """One layer of the network, counted from 0, at inputs X of shape (..., d_in, t)."""
    return swap(_run_layer(weights, index, swap(X)))


def _run_layer(weights: Weights, index: int, X: Array) -> Array:
    """One layer at inputs with tokens in rows."""
    domain, rule = weights.domain, weights.architecture.rule
    total = X if weights.architecture.residual else None
    for head in weights.layers[index]:
        q, k, v = (project(X, matrix, domain) for matrix in (head.Q, head.K, head.V))
        part = rule.mix(q, k, v, domain)
        part = part if head.O is None else project(part, head.O, domain)
        total = part if total is None else domain.reduce(total + part)
    return np.asarray(total)


def forward(weights: Weights, X: Array) -> Array:
    """phi_W(X) for X of shape (..., d_0, t), by the cheapest form of each layer.

    The number of tokens is taken from X; the function is defined for every t.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network.architecture import Architecture
    >>> ones = {f"layers.0.{name}": [[1]] for name in "QKV"}
    >>> forward(Weights.from_tensors(Architecture((1, 1), 1), ones, QQ), QQ.convert([[1, 2]])).tolist()
    [[5, 10]]
    """
    check_input(weights, X)
    with weights.domain.working():
        X = swap(X)
        for index in range(weights.architecture.num_layers):
            X = _run_layer(weights, index, X)
    return swap(X)


def forward_definition(weights: Weights, X: Array) -> Array:
    """phi_W(X) straight from the definition, score by score, as the reference for the other forms."""
    check_input(weights, X)
    domain, architecture = weights.domain, weights.architecture
    with domain.working():
        for heads in weights.layers:
            total = X if architecture.residual else None
            for head in heads:
                part = _attend(head, X, weights)
                total = part if total is None else domain.reduce(total + part)
            X = np.asarray(total)
    return X


def _attend(head: Head, X: Array, weights: Weights) -> Array:
    """Column i is Σ_j P_ji V x_j, with P from the t×t matrix of all scores x_jᵀ A x_i."""
    domain, t = weights.domain, X.shape[-1]
    multiply = domain.matmul
    A, V = head.attention_matrix(domain), head.value_matrix(domain)
    tokens = [X[..., i : i + 1] for i in range(t)]
    S = np.concatenate(
        [np.concatenate([multiply(swap(x_j), multiply(A, x_i)) for x_i in tokens], axis=-1) for x_j in tokens],
        axis=-2,
    )
    P = weights.architecture.rule.weights(S, domain)
    columns = []
    for i in range(t):
        total = domain.zeros((*X.shape[:-2], V.shape[0], 1))
        for j in range(t):
            total = domain.reduce(total + domain.times(P[..., j : j + 1, i : i + 1], multiply(V, tokens[j])))
        columns.append(total)
    return np.concatenate(columns, axis=-1)
