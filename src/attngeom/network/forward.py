"""Forward passes: the definition, and the forms that cost less.

One head computes, for X of shape d×t with tokens as columns, column i = Σ_j w_ji V x_j with scores x_jᵀ A x_i: the
weights w are the scores themselves (lightning) or their softmax over j. Causal attention sums over j ≤ i. All
functions take arrays X of shape (..., d, t) over the domain of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import RR, Array, Balls, Domain
from attngeom.network.weights import Head, Weights

Order = Literal["quadratic", "linear"]
CAUSAL_CHUNK = 128


def choose_order(d_out: int, attention: int, tokens: int) -> Order:
    """The order of multiplication with fewer flops once QX, KX and VX are known: t×t scores, or d_out×a sums.

    (VX)((KX)ᵀ(QX)) costs t²(a + d_out); ((VX)(KX)ᵀ)(QX) costs 2 t a d_out.

    >>> choose_order(4, 4, 3), choose_order(4, 4, 5)
    ('quadratic', 'linear')
    """
    return "linear" if 2 * attention * d_out < tokens * (attention + d_out) else "quadratic"


def attend_definition(head: Head, X: Array, domain: Domain, causal: bool = False) -> Array:
    """Column i is Σ_j (x_jᵀ A x_i) V x_j, token by token as it is defined."""
    multiply = domain.matmul
    A, V = head.attention_matrix(domain), head.value_matrix(domain)
    t = X.shape[-1]
    columns = []
    for i in range(t):
        total = domain.zeros((*X.shape[:-2], V.shape[0], 1))
        for j in range(i + 1 if causal else t):
            x_i, x_j = X[..., i : i + 1], X[..., j : j + 1]
            score = multiply(np.swapaxes(x_j, -1, -2), multiply(A, x_i))
            total = domain.reduce(total + domain.reduce(score * multiply(V, x_j)))
        columns.append(total)
    return np.concatenate(columns, axis=-1)


def scores(head: Head, X: Array, domain: Domain) -> Array:
    """S = (KX)ᵀ (QX), of shape t×t: entry (j, i) is the score of token j for token i."""
    keys = domain.matmul(head.K, X)
    return domain.matmul(np.swapaxes(keys, -1, -2), domain.matmul(head.Q, X))


def attend_quadratic(head: Head, X: Array, domain: Domain, causal: bool = False) -> Array:
    """V X (Xᵀ A X), through the t×t matrix of scores (its upper triangle if causal)."""
    S = scores(head, X, domain)
    if causal:
        S = S * np.triu(np.ones(S.shape[-2:], dtype=np.int64))
    return _values(head, domain.matmul(domain.matmul(head.V, X), S), domain)


def attend_linear(head: Head, X: Array, domain: Domain, causal: bool = False) -> Array:
    """(V X (K X)ᵀ) (Q X): time and memory linear in the number of tokens.

    Causal: the sums Σ_{n ≤ i} V x_n (K x_n)ᵀ run along the tokens in chunks; inside a chunk the triangle of scores
    is used, so memory stays O(chunk² + v a) beyond input and output.
    """
    multiply = domain.matmul
    if not causal:
        keys = np.swapaxes(multiply(head.K, X), -1, -2)
        context = multiply(multiply(head.V, X), keys)
        return _values(head, multiply(context, multiply(head.Q, X)), domain)
    state = domain.zeros((*X.shape[:-2], head.V.shape[0], head.K.shape[0]))
    parts = []
    for start in range(0, X.shape[-1], CAUSAL_CHUNK):
        chunk = X[..., start : start + CAUSAL_CHUNK]
        values, keys, queries = (multiply(matrix, chunk) for matrix in (head.V, head.K, head.Q))
        keys = np.swapaxes(keys, -1, -2)
        inside = multiply(keys, queries) * np.triu(np.ones((chunk.shape[-1],) * 2, dtype=np.int64))
        parts.append(domain.reduce(multiply(state, queries) + multiply(values, inside)))
        state = domain.reduce(state + multiply(values, keys))
    return _values(head, np.concatenate(parts, axis=-1), domain)


def attend_lightning(head: Head, X: Array, domain: Domain, causal: bool = False) -> Array:
    """One lightning head in the cheaper order."""
    order = choose_order(head.V.shape[0], head.Q.shape[0], X.shape[-1])
    return (attend_linear if order == "linear" else attend_quadratic)(head, X, domain, causal)


def attend_softmax(head: Head, X: Array, domain: Domain, causal: bool = False) -> Array:
    """One softmax head: column i = Σ_j P_ji V x_j, P the exponentials of the scores normalised over j.

    Over floats and balls only.
    """
    S = scores(head, X, domain)
    visible = np.triu(np.ones(S.shape[-2:], dtype=bool)) if causal else np.ones(S.shape[-2:], dtype=bool)
    P = softmax_columns(S, visible, domain)
    return _values(head, domain.matmul(domain.matmul(head.V, X), P), domain)


def softmax_columns(S: Array, visible: Array, domain: Domain) -> Array:
    """exp(S) normalised over each column, zero where not visible.

    >>> softmax_columns(np.zeros((2, 2)), np.ones((2, 2), dtype=bool), RR)[0, 0].item()
    0.5
    """
    if domain == RR:
        shifted = np.where(visible, S, -np.inf)
        powers = np.exp(shifted - shifted.max(axis=-2, keepdims=True))
        return powers / powers.sum(axis=-2, keepdims=True)
    if isinstance(domain, Balls):
        exponential = np.frompyfunc(lambda x: x.exp(), 1, 1)
        powers = exponential(S) * visible.astype(np.int64)
        return powers / powers.sum(axis=-2, keepdims=True)
    raise DomainError(f"softmax over {domain.name} was asked for; exponentials need floats or balls")


def _values(head: Head, Y: Array, domain: Domain) -> Array:
    return Y if head.O is None else domain.matmul(head.O, Y)


def check_input(weights: Weights, X: Array) -> None:
    """X must have shape (..., d_0, t) with at least one token."""
    d = weights.architecture.widths[0]
    if X.ndim < 2 or X.shape[-2] != d or X.shape[-1] < 1:
        raise InputError(f"input of shape {X.shape} given; shape (..., {d}, tokens) is required")


def forward_with(attend: Callable[[Head, Array, Domain, bool], Array], weights: Weights, X: Array) -> Array:
    """The network with a given implementation of one head: sum over heads, skip connection, composition."""
    check_input(weights, X)
    domain, architecture = weights.domain, weights.architecture
    with domain.working():
        for heads in weights.layers:
            total = X if architecture.residual else None
            for head in heads:
                part = attend(head, X, domain, architecture.causal)
                total = part if total is None else domain.reduce(total + part)
            X = np.asarray(total)
    return X


def forward(weights: Weights, X: Array) -> Array:
    """phi_W(X) for X of shape (..., d_0, t), by the cheapest form of each layer.

    The number of tokens is taken from X; the function is defined for every t.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network.architecture import Architecture
    >>> ones = {f"layers.0.{name}": [[1]] for name in "QKV"}
    >>> forward(Weights.from_tensors(Architecture((1, 1), 1), ones, QQ), QQ.array([[1, 2]])).tolist()
    [[5, 10]]
    """
    kind = weights.architecture.kind
    return forward_with(attend_softmax if kind == "softmax" else attend_lightning, weights, X)


def forward_definition(weights: Weights, X: Array) -> Array:
    """phi_W(X) straight from the definition, as the reference for the other forms."""
    if weights.architecture.kind == "softmax":
        return forward_with(attend_softmax, weights, X)
    return forward_with(attend_definition, weights, X)
