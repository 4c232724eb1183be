"""The forward pass straight from the definition, score by score: the reference for all other forms."""

import numpy as np

from attngeom.exact.domains import Array
from attngeom.network.weights import Head, Weights


def forward_definition(weights: Weights, X: Array) -> Array:
    """phi_W(X): every head adds V X P, with P from the matrix of all scores x_jᵀ A x_i."""
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
    """Column i is Σ_j P_ji V x_j."""
    domain, t = weights.domain, X.shape[-1]
    A, V = head.attention_matrix(domain), head.value_matrix(domain)
    tokens = [X[..., i : i + 1] for i in range(t)]
    scores = [[domain.matmul(np.swapaxes(x_j, -1, -2), domain.matmul(A, x_i)) for x_i in tokens] for x_j in tokens]
    P = weights.architecture.rule.weights(np.block(scores), domain)
    columns = []
    for i in range(t):
        total = domain.zeros((*X.shape[:-2], V.shape[0], 1))
        for j in range(t):
            total = domain.reduce(total + domain.times(P[..., j : j + 1, i : i + 1], domain.matmul(V, tokens[j])))
        columns.append(total)
    return np.concatenate(columns, axis=-1)
