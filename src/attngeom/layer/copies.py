"""All columns of a layer carry one function: which copies must agree, with and without mask."""

from __future__ import annotations

import numpy as np

from attngeom.exact.domains import Array
from attngeom.layer.coefficients import Coefficients, symmetrize
from attngeom.network.mask import Mask
from attngeom.results import Failure


def apparent_mask(coefficients: Coefficients) -> Mask:
    """The mask that the coefficients show: token 0 sees no other token although token 1 does."""
    domain = coefficients.domain
    return Mask(domain.is_zero(coefficients.cross[:, 0]) and not domain.is_zero(coefficients.cross[:, 1, 0]))


def check_copies(coefficients: Coefficients, mask: Mask, tolerance: float) -> Failure | None:
    """All columns must carry the same layer: cross parts are copies, single parts their symmetrization."""
    domain = coefficients.domain
    if coefficients.outside:
        return _failure(f"the monomial {coefficients.outside[0].monomial} does not occur in a layer of attention")
    block = coefficients.cross[:, 1, 0]
    single = symmetrize(block, coefficients.d, domain)

    def same(a: Array, b: Array) -> bool:
        """Whether every block a[:, n] is b[:, n]."""
        if domain.rounds:
            misses = np.sqrt(np.sum((a - b) ** 2, axis=(0, *range(2, a.ndim))))
            return bool(np.all(misses <= tolerance * max(float(np.linalg.norm(block)), 1e-300)))
        return not np.any(a != b)

    for j in range(coefficients.t):
        if not same(coefficients.single[:, j, None], single[:, None]):
            return _failure(f"the coefficients of token {j} alone do not fit those of pairs of tokens (symmetrization)")
        seen = len(mask.others(j, coefficients.t - 1))
        row = coefficients.cross[:, j]
        if not (same(row[:, :seen], block[:, None]) and same(row[:, seen:], (block - block)[:, None])):
            return _failure(f"the coefficients of target token {j} are no copy of those of token 1 (sequence copy)")
    return None


def _failure(reason: str) -> Failure:
    return Failure(stage="coefficients", reason=reason)
