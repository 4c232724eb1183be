"""Attention matrices as products of queries and keys."""

from __future__ import annotations

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.numbers import split_scale


def factor_attention(A: Array, attention: int, domain: Domain) -> tuple[Array, Array]:
    """Q, K of shape a×d with Kᵀ Q = A, for a matrix A of rank at most a.

    Exact domains: Q holds the nonzero rows of the reduced echelon form and Kᵀ the pivot columns of A, so the factors
    are canonical. Floats: balanced factors from the singular value decomposition, K Kᵀ = Q Qᵀ; a rank above a is
    refused when the cut singular value exceeds 1e-10 times the largest.

    >>> from attngeom.exact import QQ
    >>> Q, K = factor_attention(QQ.convert([[2, 4], [1, 2]]), 1, QQ)
    >>> Q.tolist(), K.tolist()
    ([[1, 2]], [[2, 1]])
    """
    d = A.shape[0]
    if A.shape != (d, d):
        raise InputError(f"attention matrix of shape {A.shape} given; a square one is required")
    if domain.encloses:
        raise DomainError("a rank factorization over balls was asked for; use exact or float weights")
    if domain.is_exact:
        echelon = domain.rref(A)
        rank, T, S = echelon.rank, echelon.matrix, A[:, list(echelon.pivots)].T
    else:
        # Gauges of floats are no part of what a verifier loads.
        from attngeom.groups.balance import balanced_factors

        values = lapack.svdvals(split_scale(A)[0])
        factors = balanced_factors(A, attention)
        rank, T, S = int(np.sum(values > 1e-10 * values[0])), factors.T, factors.S
    if rank > attention:
        raise InputError(f"attention matrix of rank {rank} given; rank at most {attention} is required")
    Q, K = domain.zeros((attention, d)), domain.zeros((attention, d))
    Q[: len(T)], K[: len(S)] = T, S
    return Q, K
