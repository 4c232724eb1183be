"""The attention variety of one layer and points in its ambient space, over any domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_orbits, triple_orbits
from attngeom.layer.coefficients import Coefficients, expand_matrices


@dataclass(frozen=True)
class Variety:
    """The Zariski closure of the scaled coefficients of V X Xᵀ A X, V of size d_out×d and rank A ≤ a, X of size d×t.

    ``targets`` counts the columns of A (d in a network): the cross-column equations make sense for any number, and
    then the single-column coordinates are left out.

    >>> Variety(3, 2).num_pairs, Variety(3, 2).rank_bound
    (6, 2)
    """

    d: int
    a: int
    tokens: int = 2
    d_out: int = 1
    targets: int | None = None

    def __post_init__(self) -> None:
        for name in ("d", "a", "tokens", "d_out", "targets"):
            value = getattr(self, name)
            if value is None and name == "targets":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**6:
                raise InputError(f"{name} = {str(value)[:40]} given; an integer between 1 and 10^6 is required")

    @property
    def num_targets(self) -> int:
        return self.d if self.targets is None else self.targets

    @property
    def num_pairs(self) -> int:
        """D = C(d+1, 2), the pairs of context rows."""
        return comb(self.d + 1, 2)

    @property
    def rank_bound(self) -> int:
        """The largest rank of A: min(a, d, targets)."""
        return min(self.a, self.d, self.num_targets)

    @property
    def has_cross(self) -> bool:
        return self.tokens >= 2

    @property
    def has_single(self) -> bool:
        return self.num_targets == self.d


@dataclass(frozen=True, eq=False)
class Points:
    """Arrays of scaled coefficients with any leading batch axes.

    ``single`` has shape (…, d_out, t, C(d+2,3)), ``cross`` (…, d_out, t, t−1, C(d+1,2), targets); either may be None.
    """

    single: Array | None
    cross: Array | None
    domain: Domain

    @property
    def first_cross(self) -> Array:
        """y_{S,m} at target column 0 and its first context: shape (…, d_out, D, targets)."""
        if self.cross is None or self.cross.shape[-3] == 0:
            raise InputError("points without cross-column coordinates given; at least two tokens are required")
        return self.cross[..., 0, 0, :, :]

    @property
    def first_single(self) -> Array:
        """y_R at target column 0: shape (…, d_out, C(d+2,3))."""
        if self.single is None:
            raise InputError("points without single-column coordinates given; these invariants need them")
        return self.single[..., 0, :]

    @classmethod
    def of(cls, *coefficients: Coefficients) -> Points:
        """One point, or a batch of points of equal shape over one domain.

        >>> from attngeom.exact import QQ
        >>> from attngeom.network import Architecture, random_weights
        >>> from attngeom.layer.coefficients import coefficients
        >>> Points.of(coefficients(random_weights(Architecture((2, 1), 1, tokens=2), QQ, seed=0))).first_cross.shape
        (1, 3, 2)
        """
        if not coefficients:
            raise InputError("no coefficients given; at least one array is required")
        domain = coefficients[0].domain
        if len(coefficients) == 1:
            return cls(coefficients[0].scaled_single, coefficients[0].scaled_cross, domain)
        if len({(c.d, c.d_out, c.t) for c in coefficients}) > 1 or any(c.domain != domain for c in coefficients):
            raise InputError("coefficients of different shapes or domains given; a batch needs equal ones")
        single = np.stack([c.scaled_single for c in coefficients])
        return cls(single, np.stack([c.scaled_cross for c in coefficients]), domain)

    @classmethod
    def of_cross(cls, y: Array, domain: Domain) -> Points:
        """Points of one output row from cross-column coordinates alone, shape (…, C(d+1,2), targets)."""
        return cls(None, y[..., None, None, None, :, :], domain)


def random_points(
    variety: Variety, count: int, domain: Domain, rng: np.random.Generator, rank: int | None = None
) -> Points:
    """``count`` random points on the variety, rank A at most ``rank`` (by default the bound of the variety).

    >>> from attngeom.exact import GF
    >>> random_points(Variety(2, 1), 5, GF(101), np.random.default_rng(0)).first_cross.shape
    (5, 1, 3, 2)
    """
    d, m, r = variety.d, variety.num_targets, variety.rank_bound if rank is None else rank
    parts = [
        place(
            domain.matmul(domain.random((d, r), rng), domain.random((r, m), rng)),
            domain.random((variety.d_out, d), rng),
            variety,
            domain,
        )
        for _ in range(count)
    ]
    return stack(parts)


def stack(points: Sequence[Points]) -> Points:
    """One batch from several points of equal shape."""
    single = None if points[0].single is None else np.stack([p.single for p in points if p.single is not None])
    cross = None if points[0].cross is None else np.stack([p.cross for p in points if p.cross is not None])
    return Points(single, cross, points[0].domain)


def place(A: Array, V: Array, variety: Variety, domain: Domain) -> Points:
    """The point of the variety with attention matrix A (d×targets) and value matrix V (d_out×d)."""
    d, t = variety.d, variety.tokens
    if variety.has_single:
        single, cross = expand_matrices(A, V, domain)
    else:
        single, cross = None, expand_matrices_to_targets(A, V, domain)
    inverse = domain.convert([f"1/{n}" for n in pair_orbits(d)])
    scaled = domain.reduce(cross * inverse[:, None])
    all_cross = np.broadcast_to(scaled[:, None, None], (V.shape[0], t, t - 1, *scaled.shape[1:]))
    if single is None:
        return Points(None, all_cross, domain)
    thirds = domain.convert([f"1/{n}" for n in triple_orbits(d)])
    return Points(
        np.broadcast_to(domain.reduce(single * thirds)[:, None], (V.shape[0], t, single.shape[-1])), all_cross, domain
    )


def expand_matrices_to_targets(A: Array, V: Array, domain: Domain) -> Array:
    """The cross coefficients c(S, m) for an A with any number of columns: shape (d_out, C(d+1,2), targets)."""
    first, second = np.triu_indices(A.shape[0])
    straight = domain.reduce(V[:, first, None] * A[None, second, :])
    swapped = domain.reduce(V[:, second, None] * A[None, first, :])
    return domain.reduce(straight + swapped * (first != second).astype(np.int64)[None, :, None])
