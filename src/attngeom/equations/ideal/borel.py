"""The Borel subgroup that fixes highest weight vectors: raising operators, a dense orbit, and what cannot occur.

Y is the D×targets matrix of ordinary coefficients: Y_ii = y_ii, Y_ij = 2 y_ij for i < j.
"""

from __future__ import annotations

import numpy as np

from attngeom.equations.ideal.operators import replace_index
from attngeom.equations.variety import Variety
from attngeom.exact.arrays import Array
from attngeom.exact.multisets import pair_orbits, pairs
from attngeom.exact.partitions import Partition, pad


def root_matrix(d: int, old: int, new: int) -> Array:
    """N with E Y = N Y for the operator E on coordinates that replaces the index ``old`` by ``new``, as a derivation.

    >>> root_matrix(2, 1, 0).tolist()
    [[0, 0, 0], [2, 0, 0], [0, 1, 0]]
    """
    orbits = pair_orbits(d)
    N = np.zeros((len(orbits), len(orbits)), dtype=np.int64)
    for row, image in enumerate(replace_index(Variety(d, 1, targets=1), 0, old, new)):
        for factor, target in image:
            N[row, target] += factor * orbits[row] // orbits[target]
    return N


def raising_matrix(d: int) -> Array:
    """The sum of the simple raising operators: Y_{s+1,s+1} → Y_{s,s+1}, Y_{s,s+1} → 2 Y_ss, Y_{s+1,j} → Y_sj.

    They move one weight space to different ones, so their sum kills a weight vector only if each does.
    """
    zero = np.zeros((len(pairs(d)),) * 2, dtype=np.int64)
    return sum((root_matrix(d, s + 1, s) for s in range(d - 1)), start=zero)


def borel_point(d: int, targets: int, a: int) -> Array:
    """An integer point of the variety with a dense Borel orbit: v = (1, …, 1), A the unit matrix of size a in a corner.

    Returns Y, D×targets. The tangent vectors of the orbit have the rank of the variety, which the tests compute.

    >>> borel_point(2, 2, 1).tolist()
    [[1, 0], [1, 0], [0, 0]]
    """
    A = np.eye(d, targets, dtype=np.int64)
    A[min(a, d, targets) :] = 0
    return np.array([A[i] if i == j else A[i] + A[j] for i, j in pairs(d)])


def is_excluded(lam: Partition, mu: Partition, a: int) -> bool:
    """Whether S_λV ⊗ S_μU is proven not to occur in the coordinate ring, given that it occurs in R_n.

    The coordinate ring lies in ⊕ SⁿV ⊗ S_μV ⊗ S_μU, ℓ(μ) ≤ a, so λ/μ must be a horizontal strip (Pieri). For μ =
    (n) one quadric v·a_1 is seen, and swapping its factors leaves S²(SⁿV): λ = (2n-k, k) with k even.

    >>> is_excluded((2, 2, 2), (3,), 3), is_excluded((3, 1), (2,), 3), is_excluded((2, 2), (2,), 1)
    (True, True, False)
    """
    inner, outer = pad(mu, len(lam)), pad(lam, len(mu))
    if len(mu) > a or any(x > y for x, y in zip(inner, outer)):
        return True
    if any(outer[i + 1] > inner[i] for i in range(len(outer) - 1)):
        return True
    return len(mu) == 1 and len(lam) == 2 and lam[1] % 2 == 1
