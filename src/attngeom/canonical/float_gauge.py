"""The gauge of least norm of float weights, in which the changes of basis between equal networks are orthogonal."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from attngeom.exact.domains import RR, Array
from attngeom.network import Head, Symmetry, Weights, identity_symmetry
from attngeom.network.symmetries import HeadSymmetry

MAX_SWEEPS = 40
BALANCED = 1e-3
"""Sweeps stop when they change every factor by less than this; what is left is too small to matter for a start."""


class _Balance:
    """Coordinate descent to the least norm on the orbit: each factor of the group in turn at its optimum.

    Q and K enter through the factors of A with Q Qᵀ = K Kᵀ, so that attention wider than the input is allowed.
    """

    def __init__(self, weights: Weights) -> None:
        architecture = weights.architecture
        self.architecture = architecture
        self.layers = [[_reduce_attention(head) for head in heads] for heads in weights.layers]
        identity = identity_symmetry(architecture, RR)
        self.elements = [list(heads) for heads in identity.heads]
        self.between = list(identity.between)
        self.permutations = identity.permutations

    def sweep(self) -> float:
        """One pass over all factors; the largest change of one of them."""
        change = 0.0
        for index, heads in enumerate(self.layers):
            for place in range(len(heads)):
                change = max(change, self._balance_head(index, place))
            if index < len(self.between):
                change = max(change, self._balance_basis(index))
        return change

    def _balance_head(self, index: int, place: int) -> float:
        head, g = self.layers[index][place], self.elements[index][place]
        C, inverse = _mean_root(head.K @ head.K.T, head.Q @ head.Q.T)
        change = _distance(C)
        Q, K, V, O = inverse.T @ head.Q, C @ head.K, head.V, head.O
        C = C @ g.C if C.shape == g.C.shape else g.C
        B, scale = g.B, g.scale
        if O is not None and B is not None:
            step, inverse = _mean_root(V @ V.T, O.T @ O)
            V, O, B = step @ V, O @ inverse, step @ B
            change = max(change, _distance(step))
        if self.architecture.kind == "lightning":
            ratio = np.sqrt(np.linalg.norm(V) / np.linalg.norm(Q))
            if not 0 < ratio < np.inf:
                raise np.linalg.LinAlgError("zero values")
            Q, V, scale = Q * ratio, V / ratio, scale * ratio
            change = max(change, abs(ratio - 1))
        self.layers[index][place] = Head(Q, K, V, O)
        self.elements[index][place] = HeadSymmetry(C, scale, B)
        return float(change)

    def _balance_basis(self, index: int) -> float:
        heads, following = self.layers[index], self.layers[index + 1]
        outputs = sum(x @ x.T for x in (head.V if head.O is None else head.O for head in heads))
        inputs = sum(x.T @ x for head in following for x in (head.Q, head.K, head.V))
        D, inverse = _mean_root(np.asarray(outputs), np.asarray(inputs))
        self.layers[index] = [
            Head(head.Q, head.K, D @ head.V) if head.O is None else Head(head.Q, head.K, head.V, D @ head.O)
            for head in heads
        ]
        self.layers[index + 1] = [Head(x.Q @ inverse, x.K @ inverse, x.V @ inverse, x.O) for x in following]
        self.between[index] = D @ self.between[index]
        return _distance(D)

    def symmetry(self) -> Symmetry:
        heads = tuple(tuple(elements) for elements in self.elements)
        return Symmetry(self.architecture, RR, heads, tuple(self.between), self.permutations)


def balanced_gauge(weights: Weights) -> Symmetry | None:
    """The group element to about the least norm on the orbit; None if a Gram matrix is singular: then none is least.

    >>> from attngeom.network import Architecture
    >>> w = Weights.from_vector(Architecture((1, 1), 1), np.array([4.0, 1.0, 2.0]), RR)
    >>> balanced_gauge(w).apply(w).vector().round(6).tolist()
    [2.0, 2.0, 2.0]
    """
    balance = _Balance(weights)
    try:
        for _ in range(MAX_SWEEPS):
            if balance.sweep() < BALANCED:
                break
    except (np.linalg.LinAlgError, ValueError):
        return None
    return balance.symmetry()


def _reduce_attention(head: Head) -> Head:
    """The head with Q and K of at most d rows."""
    a, d = head.Q.shape
    if a <= d:
        return head
    left, values, right = np.linalg.svd(head.attention_matrix(RR))
    root = np.sqrt(values)[:, None]
    return Head(root * right, root * left.T, head.V, head.O)


def _distance(C: Array) -> float:
    """How far C is from orthogonal."""
    return float(np.linalg.norm(C.T @ C - np.eye(len(C))))


def _mean_root(P: Array, R: Array) -> tuple[Array, Array]:
    """A C, and its inverse, with C P Cᵀ = C^{-T} R C^{-1}: tr(C P Cᵀ) + tr(C^{-T} R C^{-1}) is least."""
    L = np.linalg.cholesky(P)
    values, vectors = np.linalg.eigh(L.T @ R @ L)
    if not values[0] > 0:
        raise np.linalg.LinAlgError("singular Gram matrix")
    root = values**0.25
    C = root[:, None] * scipy.linalg.solve_triangular(L, vectors, lower=True, trans="T").T
    return C, (L @ vectors) / root
