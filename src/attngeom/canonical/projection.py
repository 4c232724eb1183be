"""Vectors in weight space, split into a part along the fiber and a part normal to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attngeom.errors import DomainError, InputError, SizeError
from attngeom.exact import lapack
from attngeom.exact.domains import Array
from attngeom.network import Weights, forward
from attngeom.network.symmetry import count_generators, infinitesimal_action
from attngeom.network.tangent import gradient

MAX_ENTRIES = 10**8


@dataclass(frozen=True, eq=False)
class FiberSplit:
    """v = along + normal, orthogonal: moving by ``along`` does not change the function to first order."""

    along: Array
    normal: Array


def split_along_fiber(weights: Weights, vector: Array) -> FiberSplit:
    """The orthogonal projections of a vector on the tangent space of the group orbit and on its complement; floats.

    The gradient of any loss of the function is normal already; steps of optimisers such as Adam need not be.

    >>> from attngeom.exact import RR
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((1, 1), 1), RR, seed=0)
    >>> bool(np.allclose(split_along_fiber(w, w.vector()).normal @ infinitesimal_action(w).rows.T, 0))
    True
    """
    if not weights.domain.rounds:
        raise DomainError(f"weights over {weights.domain.name} given; orthogonal projections need float weights")
    size = weights.architecture.num_parameters
    if vector.shape != (size,):
        raise InputError(f"vector of shape {vector.shape} given; length {size} is required")
    if sum(count_generators(weights.architecture).values()) * size > MAX_ENTRIES:
        raise SizeError(f"{size} parameters given; the tangent vectors of the fiber would not fit in memory")
    rows = infinitesimal_action(weights).rows
    _, values, right = lapack.svd(rows, full_matrices=False)
    basis = right[values > 1e-12 * values[0]] if values.size and values[0] else right[:0]
    along = basis.T @ (basis @ vector)
    return FiberSplit(along, vector - along)


def loss(weights: Weights, X: Array, Y: Array) -> float:
    """The mean over N inputs X (N, d, t) of ‖φ(X) − Y‖²."""
    return float(np.sum((forward(weights, X) - Y) ** 2) / len(X))


def loss_gradient(weights: Weights, X: Array, Y: Array) -> Array:
    """The gradient of :func:`loss` in the weights, as a vector in storage order.

    >>> from attngeom.exact import RR
    >>> from attngeom.network import Architecture, random_weights
    >>> w = random_weights(Architecture((2, 2), 1), RR, seed=0)
    >>> float(np.abs(loss_gradient(w, np.ones((1, 2, 2)), forward(w, np.ones((1, 2, 2))))).max())
    0.0
    """
    return 2 * gradient(weights, X, forward(weights, X) - Y) / len(X)
