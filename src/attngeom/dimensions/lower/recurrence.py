"""The linear complexity of a sequence over GF(p), by Berlekamp and Massey."""

from __future__ import annotations

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, BalancedField


def linear_complexity(sequence: Array, p: int) -> int:
    """The largest L such that the L×L Hankel matrix (s_{i+j}) is certainly nonsingular: the length of the recurrence.

    ``sequence`` has balanced residues, p < 2^23. Berlekamp and Massey find the shortest recurrence, of length L; if
    2L ≤ N its L×L Hankel matrix is nonsingular; otherwise the length before its last change is returned, for which
    that held at the time. Quadratic time, in vector operations.

    >>> linear_complexity(np.array([1.0, 1.0, 2.0, 3.0, 5.0, 8.0]), 101)
    2
    """
    if p > 2**23:
        raise InputError(f"modulus {p} given; sums of products fit in 64 bits for p < 2^23 only")
    residues = BalancedField(p)
    N = len(sequence)
    # Reversed, so that every discrepancy is the product of two contiguous pieces; |products| < 2^44 sum up in int64.
    backwards = np.ascontiguousarray(sequence[::-1].astype(np.int64))
    current, previous = np.zeros(N + 1), np.zeros(N + 1)
    current[0] = previous[0] = 1.0
    whole = np.zeros(N + 1, dtype=np.int64)
    whole[0] = 1
    size, length, before, gap, inverse = 1, 0, 0, 1, 1
    for n in range(N):
        reach = min(length, n) + 1
        discrepancy = int(whole[:reach] @ backwards[N - 1 - n : N - 1 - n + reach]) % p
        if discrepancy == 0:
            gap += 1
            continue
        factor = discrepancy * inverse % p
        factor -= p if 2 * factor > p else 0
        end = size + gap
        grows = 2 * length <= n
        saved = current[: length + 1].copy() if grows else None
        part = current[gap:end]
        part -= factor * previous[: len(part)]
        residues.balance(part)
        whole[gap:end] = part
        if saved is not None:
            size = length + 1
            previous[:size] = saved
            before, length = length, n + 1 - length
            inverse, gap = pow(discrepancy, -1, p), 1
        else:
            gap += 1
    return length if 2 * length <= N else before
