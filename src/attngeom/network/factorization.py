"""A matrix A as a product Kᵀ Q of the attention width."""

from __future__ import annotations

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact import lapack
from attngeom.exact.domains import Array, Domain
from attngeom.exact.scaling import split_scale
from attngeom.network.balance import balanced_factors


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
    Q, K = domain.zeros((attention, d)), domain.zeros((attention, d))
    if domain.is_exact:
        echelon = domain.rref(A)
        rank = echelon.rank
        _check_rank(rank, attention)
        Q[:rank] = echelon.matrix[:rank]
        K[:rank] = A[:, list(echelon.pivots)].T
        return Q, K
    if domain.encloses:
        raise DomainError("a rank factorization over balls was asked for; use exact or float weights")
    values = lapack.svdvals(split_scale(A)[0])
    _check_rank(int(np.sum(values > 1e-10 * values[0])), attention)
    found = balanced_factors(A, attention)
    Q[: len(found.T)], K[: len(found.S)] = found.T, found.S
    return Q, K


def _check_rank(rank: int, attention: int) -> None:
    if rank > attention:
        raise InputError(f"attention matrix of rank {rank} given; rank at most {attention} is required")
