"""All columns of a layer carry one function: which copies must agree, with and without causal mask."""

from __future__ import annotations

import numpy as np

from attngeom.exact.domains import Array
from attngeom.layer.coefficients import Coefficients, symmetrize
from attngeom.results import Failure


def looks_causal(coefficients: Coefficients) -> bool:
    """Whether token 0 sees no other token although token 1 does."""
    domain = coefficients.domain
    return domain.is_zero(coefficients.cross[:, 0]) and not domain.is_zero(coefficients.cross[:, 1, 0])


def check_copies(coefficients: Coefficients, causal: bool, tolerance: float) -> Failure | None:
    """All columns must carry the same layer: cross parts are copies, single parts their symmetrization."""
    domain = coefficients.domain
    if coefficients.outside:
        return _failure(f"the monomial {coefficients.outside[0].monomial} does not occur in a layer of attention")
    block = coefficients.cross[:, 1, 0]
    single = symmetrize(block, coefficients.d, domain)

    def same(a: Array, b: Array) -> bool:
        if domain.rounds:
            return bool(np.linalg.norm(a - b) <= tolerance * max(float(np.linalg.norm(block)), 1e-300))
        return domain.equal(a, b)

    for j in range(coefficients.t):
        if not same(coefficients.single[:, j], single):
            return _failure(f"the coefficients of token {j} alone do not fit those of pairs of tokens (symmetrization)")
        for n in range(coefficients.t - 1):
            expected = block - block if causal and n >= j else block
            if not same(coefficients.cross[:, j, n], expected):
                return _failure(f"the coefficients of target token {j} are no copy of those of token 1 (sequence copy)")
    return None


def _failure(reason: str) -> Failure:
    return Failure(stage="coefficients", reason=reason)
