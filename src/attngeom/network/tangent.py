"""The Jacobian of W ↦ (φ_W(X_1), …, φ_W(X_N)) at given weights, by forward propagation of all tangent vectors."""

from __future__ import annotations

import numpy as np

from attngeom.errors import DomainError
from attngeom.exact.domains import RR, Array, Domain
from attngeom.network import Head, Weights
from attngeom.network.forward import softmax_columns


def _swap(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


class _Layer:
    """One layer at inputs X (N, d, t) with the derivative of its output in the input and in its parameters."""

    def __init__(self, heads: tuple[Head, ...], X: Array, weights: Weights) -> None:
        self.domain: Domain = weights.domain
        architecture = weights.architecture
        t = X.shape[-1]
        self.X, self.heads, self.residual = X, heads, architecture.residual
        self.softmax = architecture.kind == "softmax"
        visible = np.triu(np.ones((t, t), dtype=np.int64)) if architecture.causal else np.ones((t, t), dtype=np.int64)
        self.visible = visible if self.domain != RR else visible.astype(float)
        multiply = self.domain.matmul
        self.A = [head.attention_matrix(self.domain) for head in heads]
        self.W = [head.value_matrix(self.domain) for head in heads]
        self.scores = [multiply(_swap(X), multiply(A, X)) for A in self.A]
        if self.softmax:
            self.mixing = [softmax_columns(S, visible.astype(bool), self.domain) for S in self.scores]
        else:
            self.mixing = [S * self.visible for S in self.scores]

    def output(self) -> Array:
        total = self.X if self.residual else None
        for W, P in zip(self.W, self.mixing):
            part = self.domain.matmul(W, self.domain.matmul(self.X, P))
            total = part if total is None else self.domain.reduce(total + part)
        return np.asarray(total)

    def _weigh(self, h: int, dS: Array) -> Array:
        """The derivative of the attention weights along a derivative of the scores."""
        if not self.softmax:
            return self.domain.reduce(dS * self.visible)
        P = self.mixing[h]
        return P * (dS - np.sum(P * dS, axis=-2, keepdims=True))

    def push(self, dX: Array) -> Array:
        """Derivatives of the output along dX of shape (p, N, d, t)."""
        multiply, reduce, X = self.domain.matmul, self.domain.reduce, self.X
        total = dX if self.residual else None
        for h, (A, W) in enumerate(zip(self.A, self.W)):
            dS = reduce(multiply(_swap(dX), multiply(A, X)) + multiply(_swap(X), multiply(A, dX)))
            inner = reduce(multiply(dX, self.mixing[h]) + multiply(X, self._weigh(h, dS)))
            part = multiply(W, inner)
            total = part if total is None else reduce(total + part)
        return np.asarray(total)

    def parameters(self) -> Array:
        """Derivatives of the output along every parameter of the layer, in storage order: (p, N, d_out, t)."""
        multiply, reduce, X = self.domain.matmul, self.domain.reduce, self.X
        parts = []
        d_out = self.W[0].shape[0]
        for h, head in enumerate(self.heads):
            keys, queries = multiply(head.K, X), multiply(head.Q, X)
            values = multiply(self.W[h], X)
            for letter in "QK":
                # Q_aj: dS = (K X)_aᵀ X_j; K_aj: dS = X_jᵀ (Q X)_a.
                left, right = (keys, X) if letter == "Q" else (X, queries)
                first, second = (0, 1) if letter == "Q" else (1, 0)
                a, j = np.divmod(np.arange(head.Q.size), head.Q.shape[1])
                index = (a, j)
                rows = np.moveaxis(left, 1, 0)[index[first]]
                columns = np.moveaxis(right, 1, 0)[index[second]]
                dS = reduce(rows[..., :, None] * columns[..., None, :])
                parts.append(multiply(values, self._weigh(h, dS)))
            mixed = multiply(X, self.mixing[h])
            rows = np.moveaxis(mixed, 1, 0)
            if head.O is None:
                parts.append(self._place(rows, d_out))
                continue
            # V_vj: O[:, v] ⊗ (X P)_j; O_ov: e_o ⊗ (V X P)_v.
            v, j = np.divmod(np.arange(head.V.size), head.V.shape[1])
            parts.append(reduce(head.O.T[v][:, None, :, None] * rows[j][:, :, None, :]))
            parts.append(self._place(np.moveaxis(multiply(head.V, mixed), 1, 0), d_out))
        return np.concatenate(parts)

    def _place(self, rows: Array, d_out: int) -> Array:
        """For every output row o and every row j the array with row j at place o."""
        count, samples, t = rows.shape
        out = self.domain.zeros((d_out, count, samples, d_out, t))
        for o in range(d_out):
            out[o, :, :, o] = rows
        return out.reshape(d_out * count, samples, d_out, t)


def jacobian(weights: Weights, X: Array) -> Array:
    """Rows ∂φ/∂w for every parameter w, columns the outputs at the inputs X (N, d, t); over floats or GF(p).

    >>> from attngeom.exact import GF
    >>> from attngeom.network import Architecture, random_weights
    >>> jacobian(random_weights(Architecture((2, 2), 1), GF(7), seed=0), np.ones((3, 2, 2), dtype=np.int64)).shape
    (8, 12)
    """
    if weights.domain != RR and not weights.domain.is_exact:
        raise DomainError(f"a Jacobian over {weights.domain.name} was asked for; floats or GF(p) are required")
    if weights.domain != RR and weights.architecture.kind == "softmax":
        raise DomainError("a Jacobian of softmax attention over an exact domain was asked for; floats are required")
    tangents: Array | None = None
    for heads in weights.layers:
        layer = _Layer(heads, X, weights)
        own = layer.parameters()
        tangents = own if tangents is None else np.concatenate([layer.push(tangents), own])
        X = layer.output()
    stacked = np.asarray(tangents)
    return stacked.reshape(stacked.shape[0], -1)
