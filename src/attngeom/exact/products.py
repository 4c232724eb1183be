"""Products of matrices mod p in float64 BLAS, without rounding."""

from __future__ import annotations

import numpy as np

from attngeom.errors import DomainError, InputError


def matmul_mod(a: np.ndarray, b: np.ndarray, p: int) -> np.ndarray:
    """a b mod p for int64 residues and p < 2^31, exact, in float64 BLAS.

    Balanced residues are at most p/2, so an inner product of length k is exact while k p²/4 < 2^53; above
    that b is split into 16-bit halves and k into chunks.

    >>> matmul_mod(np.array([[2, 3]]), np.array([[4], [5]]), 7).tolist()
    [[2]]
    """
    if not p < 2**31:
        raise DomainError(f"modulus {p} given; float64 products are exact below 2^31 only")
    if a.shape[-1] != b.shape[-2]:
        raise InputError(f"matrices of shapes {a.shape} and {b.shape} given; inner sizes must agree")
    k = a.shape[-1]
    half = p // 2
    x = np.where(a > half, a - p, a).astype(np.float64)
    y = np.where(b > half, b - p, b)
    if k * (half + 1) ** 2 < 2**53:
        return _to_residues(np.matmul(x, y.astype(np.float64)), p)
    high = (y + 2**15) >> 16
    low = (y - (high << 16)).astype(np.float64)
    high = high.astype(np.float64)
    chunk = 128
    total = 0
    for start in range(0, k, chunk):
        part = slice(start, start + chunk)
        upper = _to_residues(np.matmul(x[..., part], high[..., part, :]), p)
        lower = _to_residues(np.matmul(x[..., part], low[..., part, :]), p)
        total = (total + (upper << 16) + lower) % p
    return np.asarray(total)


def _to_residues(x: np.ndarray, p: int) -> np.ndarray:
    """Integers of absolute value below 2^53, held in float64, as int64 residues in [0, p)."""
    x = x - p * np.rint(x * (1.0 / p))
    x[x < 0] += p
    return x.astype(np.int64)
