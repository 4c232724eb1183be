"""The coefficients of V X Xᵀ A X from the definition, written independently of :mod:`attngeom.layer`."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from attngeom.exact.domains import Array, Domain


def expand_row(A: Array, v: Array, domain: Domain) -> tuple[Array, Array]:
    """Single and cross coefficients, (C(d+2,3),) and (C(d+1,2), d), of the output row Σ_s (v·x_s)(x_sᵀ A x_j).

    For s ≠ j the monomial x_ks x_ls x_mj, k ≤ l, has the coefficient v_k A_lm, plus v_l A_km if k < l; for s = j the
    terms v_k A_lm x_k x_l x_m are added up over all orders of the monomial.

    >>> from attngeom.exact import QQ
    >>> expand_row(QQ.convert([[1, 2], [3, 4]]), QQ.convert([5, 6]), QQ)[1].tolist()
    [[5, 10], [21, 32], [18, 24]]
    """
    d = len(A)
    k, l = np.array(list(combinations_with_replacement(range(d), 2))).T
    cross = domain.reduce(v[k][:, None] * A[l])
    mixed = k < l
    cross[mixed] = domain.reduce(cross[mixed] + v[l[mixed]][:, None] * A[k[mixed]])
    places = {R: place for place, R in enumerate(combinations_with_replacement(range(d), 3))}
    single = domain.zeros((len(places),))
    for s, (first, second) in enumerate(zip(k.tolist(), l.tolist())):
        for m in range(d):
            x, y, z = sorted((first, second, m))
            single[places[x, y, z]] = single[places[x, y, z]] + cross[s, m]
    return single, cross
