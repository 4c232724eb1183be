"""Points of the ambient space of a variety, and on it: given, random and generic ones, over any domain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from attngeom.equations.variety import Variety, coordinate_name
from attngeom.errors import InputError, SizeError
from attngeom.exact.domains import Array, Domain, PolynomialDomain
from attngeom.exact.multisets import pair_orbits, pairs, triple_orbits, triples
from attngeom.layer.coefficients import Coefficients, divide, quadric_table, symmetrize
from attngeom.limits.memory import RING_VARIABLES
from attngeom.network.attention.rule import swap


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

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch axes."""
        if self.cross is not None:
            return tuple(self.cross.shape[:-5])
        return () if self.single is None else tuple(self.single.shape[:-3])

    @classmethod
    def of(cls, coefficients: Coefficients) -> Points:
        """The point with these coefficients.

        >>> from attngeom.exact import QQ
        >>> from attngeom.network import Architecture, random_weights
        >>> from attngeom.layer.coefficients import coefficients
        >>> Points.of(coefficients(random_weights(Architecture((2, 1), 1, tokens=2), QQ, seed=0))).first_cross.shape
        (1, 3, 2)
        """
        return cls(coefficients.scaled_single, coefficients.scaled_cross, coefficients.domain)

    @classmethod
    def of_cross(cls, y: Array, domain: Domain) -> Points:
        """Points of one output row from cross-column coordinates alone, shape (…, C(d+1,2), targets)."""
        return cls(None, y[..., None, None, None, :, :], domain)


def cross_coordinates(A: Array, V: Array, domain: Domain) -> Array:
    """y_{(k,l),m} = (V_k A_lm + V_l A_km)/2 for every output row: (…, d_out, D, targets) from (…, d, m), (…, d_out, d).

    >>> from attngeom.exact import QQ
    >>> cross_coordinates(QQ.convert([[3], [4]]), QQ.convert([[1, 2]]), QQ).tolist()
    [[[3], [5], [8]]]
    """
    return divide(swap(quadric_table(A, V, domain)), pair_orbits(A.shape[-2])[:, None], domain)


def single_coordinates(cross: Array, d: int, domain: Domain) -> Array:
    """y_R, the mean of y_{S,m} over the choice of the target m among the three indices R, from (…, D, d)."""
    ordinary = domain.times(cross, domain.convert(pair_orbits(d))[:, None])
    return divide(symmetrize(ordinary, d, domain), triple_orbits(d), domain)


def place(A: Array, V: Array, variety: Variety, domain: Domain) -> Points:
    """The point with attention matrix A (…, d, targets) and value matrix V (…, d_out, d); heads add up before."""
    return spread(cross_coordinates(A, V, domain), variety, domain)


def spread(cross: Array, variety: Variety, domain: Domain) -> Points:
    """The points whose first cross-column coordinates are given, the same in all columns; a mask is not applied."""
    t = variety.tokens or 1
    contexts = 1 if variety.tokens is None else t - 1
    copies = np.broadcast_to(cross[..., None, None, :, :], (*cross.shape[:-2], t, contexts, *cross.shape[-2:]))
    if not variety.has_single:
        return Points(None, copies, domain)
    single = single_coordinates(cross, variety.d, domain)
    return Points(np.broadcast_to(single[..., None, :], (*single.shape[:-1], t, single.shape[-1])), copies, domain)


def random_cross(variety: Variety, count: int, domain: Domain, rng: np.random.Generator) -> Array:
    """y_{S,m} of ``count`` random layers, (count, d_out, D, targets), with A and V of the ranks that are allowed."""
    d, m, r, v = variety.d, variety.num_targets, variety.rank_bound, variety.value_rank
    heads = []
    for _ in range(variety.heads):
        A, V = _random_matrix(domain, count, d, m, r, rng), _random_matrix(domain, count, variety.d_out, d, v, rng)
        heads.append(cross_coordinates(A, V, domain))
    return domain.reduce(np.sum(heads, axis=0))


def _random_matrix(domain: Domain, count: int, rows: int, columns: int, rank: int, rng: np.random.Generator) -> Array:
    if rank >= min(rows, columns):
        return domain.random((count, rows, columns), rng)
    return domain.matmul(domain.random((count, rows, rank), rng), domain.random((count, rank, columns), rng))


def random_points(variety: Variety, count: int, domain: Domain, rng: np.random.Generator) -> Points:
    """``count`` random points on the variety.

    >>> from attngeom.exact import GF
    >>> random_points(Variety(2, 1), 5, GF(101), np.random.default_rng(0)).first_cross.shape
    (5, 1, 3, 2)
    """
    return spread(random_cross(variety, count, domain, rng), variety, domain)


def generic_point(variety: Variety) -> tuple[Points, PolynomialDomain]:
    """The point of the variety with generic weights, a batch of one, and the ring of polynomials in them.

    >>> generic_point(Variety(1, 1))[0].first_cross[0, 0, 0, 0]
    V_0_0*A_0_0
    """
    cross, ring = generic_cross(variety)
    return spread(cross, variety, ring), ring


@lru_cache(maxsize=16)
def generic_cross(variety: Variety) -> tuple[Array, PolynomialDomain]:
    """y_{S,m} of a layer with generic weights, (1, d_out, D, targets), and the ring of polynomials in them.

    The weights are A and V, or factors K, Q with A = Kᵀ Q and O, W with V = O W where ranks are bounded, counted from
    0; those of several heads have the number of the head after the letter, and a residual stream adds u.
    """
    d, m, a, v = variety.d, variety.num_targets, variety.rank_bound, variety.value_rank
    heads = [""] if variety.heads == 1 else [str(h) for h in range(variety.heads)]
    has_low_rank, has_low_width = a < min(d, m), v < min(d, variety.d_out)
    shapes: dict[str, tuple[int, int]] = {}
    for h in heads:
        shapes |= {f"O{h}": (variety.d_out, v), f"W{h}": (v, d)} if has_low_width else {f"V{h}": (variety.d_out, d)}
        shapes |= {f"K{h}": (a, d), f"Q{h}": (a, m)} if has_low_rank else {f"A{h}": (d, m)}
    if variety.residual:
        shapes["u"] = (1, 1)
    ring = PolynomialDomain.of(0, **shapes)
    matrix = {letter: ring.matrix(letter, *shape) for letter, shape in shapes.items()}
    total = ring.zeros((variety.d_out, variety.num_pairs, m))
    for h in heads:
        A = ring.matmul(matrix[f"K{h}"].T, matrix[f"Q{h}"]) if has_low_rank else matrix[f"A{h}"]
        V = ring.matmul(matrix[f"O{h}"], matrix[f"W{h}"]) if has_low_width else matrix[f"V{h}"]
        total = total + cross_coordinates(A, V, ring)
    return total[None], ring


@lru_cache(maxsize=16)
def ambient_point(variety: Variety) -> Points:
    """The generic point of the ambient space, a batch of one: each coordinate of the first columns is a variable.

    >>> ambient_point(Variety(1, 1)).first_cross[0, 0, 0, 0]
    y_0_0_0
    """
    d, m, rows = variety.d, variety.num_targets, range(variety.d_out)
    count = variety.d_out * (comb(d + 2, 3) * variety.has_single + variety.num_pairs * m * variety.has_cross)
    if count > RING_VARIABLES:
        raise SizeError(
            f"a polynomial in {count:,} coordinates asked for; up to {RING_VARIABLES:,} are written:"
            " evaluate it instead"
        )
    single = [coordinate_name(variety, i, (0,), R) for i in rows for R in triples(d) if variety.has_single]
    indices = [(*S, k) for S in pairs(d) for k in range(m) if variety.has_cross]
    cross = [coordinate_name(variety, i, (0, 1), place) for i in rows for place in indices]
    ring = PolynomialDomain((*single, *cross))
    first, rest = np.split(ring.convert(list(ring.ring.gens())), [len(single)])
    return Points(
        first.reshape(1, variety.d_out, 1, -1) if single else None,
        rest.reshape(1, variety.d_out, 1, 1, variety.num_pairs, m) if cross else None,
        ring,
    )
