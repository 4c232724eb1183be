"""The attention variety of one layer: its sizes, its coordinates; points of its ambient space and on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain, PolynomialDomain
from attngeom.exact.multisets import pair_orbits, pairs, triple_orbits, triples
from attngeom.layer.coefficients import Coefficients, divide, quadric_table, symmetrize
from attngeom.limits.memory import RING_VARIABLES
from attngeom.limits.sizes import DEEP_LAYERS, VARIETY_SIZE
from attngeom.network.architecture import head_width
from attngeom.network.mask import Mask


@dataclass(frozen=True)
class Variety:
    """The Zariski closure of the scaled coefficients of Σ_h V_h X Xᵀ A_h X, X of size d×t, rank A_h ≤ a.

    ``tokens`` None means t ≥ 2 modulo the linear relations: the coordinates are y_{(k,l),m} of one target column and
    one context column alone, and A may have any number of ``targets`` columns (d in a network). With t tokens all
    coefficients are coordinates. V_h has d_out rows; several heads bound its rank by ``value_width``. ``residual`` adds
    one homogenising coordinate, the coefficient of x itself. ``hidden`` widths make a network of several layers of one
    head: all its functions for one token, or, with ``tokens`` None, for t ≥ d tokens.

    >>> Variety(3, 2).num_coordinates, Variety(3, 2, tokens=2).num_coordinates, Variety(3, 5).rank_bound
    (18, 56, 3)
    """

    d: int
    a: int
    tokens: int | None = None
    d_out: int = 1
    targets: int | None = None
    heads: int = 1
    value_width: int | None = None
    causal: bool = False
    residual: bool = False
    hidden: tuple[int, ...] = ()

    def __repr__(self) -> str:
        """The call that makes it, without what is as usual.

        >>> Variety(3, 2, tokens=2)
        Variety(d=3, a=2, tokens=2)
        """
        said = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return f"Variety({', '.join(f'{name}={value}' for name, value, usual in said if value != usual)})"

    def __post_init__(self) -> None:
        for name in ("d", "a", "tokens", "d_out", "targets", "heads", "value_width"):
            value = getattr(self, name)
            if value is None and name in ("tokens", "targets", "value_width"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= VARIETY_SIZE:
                raise InputError(f"{name} = {str(value)[:40]} given; an integer between 1 and 10^6 is required")
        self._check_hidden()
        if self.tokens is None and self.is_special:
            raise InputError("causal or residual layer given without tokens; the number of tokens is required")
        if self.residual and self.d_out != self.d:
            raise InputError(f"d_out = {self.d_out} given with d = {self.d}; a residual stream needs equal widths")
        # The value width of heads follows the rule of every network.
        object.__setattr__(self, "value_width", head_width(self.d_out, self.heads, self.value_width))

    def _check_hidden(self) -> None:
        for width in self.hidden:
            if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= VARIETY_SIZE:
                raise InputError(f"hidden width {str(width)[:40]} given; an integer between 1 and 10^6 is required")
        special = self.heads > 1 or self.value_width is not None or self.is_special
        if self.hidden and (special or self.targets not in (None, self.d)):
            raise InputError("a deep network with heads, targets, mask or skip given; one plain head is required")
        if self.hidden and self.tokens not in (None, 1):
            raise InputError(
                f"{self.tokens} tokens of a deep network given; take 1, or no number, which stands for d or more"
            )
        if self.layers > DEEP_LAYERS:
            raise InputError(f"{self.layers} layers given; at most {DEEP_LAYERS} are expanded")

    @property
    def mask(self) -> Mask:
        """Which tokens a token sees."""
        return Mask(self.causal)

    @property
    def is_special(self) -> bool:
        """Whether there is a mask or a skip connection."""
        return self.causal or self.residual

    @property
    def layers(self) -> int:
        return len(self.hidden) + 1

    @property
    def degree(self) -> int:
        """The degree 3^l of the functions in the entries of X."""
        return int(3**self.layers)

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
    def value_rank(self) -> int:
        """The largest rank of V: min(value width, d, d_out)."""
        return min(self.d, self.d_out, self.value_width or self.d)

    @property
    def has_cross(self) -> bool:
        return self.tokens is None or self.tokens >= 2

    @property
    def has_single(self) -> bool:
        return self.tokens is not None and self.num_targets == self.d

    @property
    def is_plain(self) -> bool:
        """One head without mask or skip: the families of equations are about these."""
        special = self.is_special or self.hidden
        return self.heads == 1 and self.value_rank == min(self.d, self.d_out) and not special

    @property
    def is_sum(self) -> bool:
        """Several heads without mask or skip."""
        return self.heads > 1 and not self.is_special

    @property
    def model(self) -> str:
        """The name of the coordinates in files: cross-column ones, or all coefficients of a layer."""
        if self.hidden:
            return "DeepNetwork"
        return "CrossColumn" if self.tokens is None else "LayerCoefficients"

    @property
    def groups(self) -> tuple[int, ...]:
        """The sizes of the general linear groups that act: rows (if several), context, targets (if independent)."""
        inner = (self.d, self.num_targets) if self.tokens is None and not self.hidden else (self.d,)
        return inner if self.d_out == 1 else (self.d_out, *inner)

    @property
    def degree_in_parameters(self) -> int:
        """The degree of the parametrization by (K, Q, O, W), or (A, V) where the ranks are free."""
        is_low = self.rank_bound < min(self.d, self.num_targets)
        own, degree = 2 + int(is_low) + int(self.value_width is not None), 0
        for _ in range(self.layers):
            degree = 3 * degree + own
        return degree

    @property
    def num_coordinates(self) -> int:
        block = self.num_pairs * self.num_targets
        if self.hidden:
            inner = (self.degree - 1) // 2
            single = comb(self.d + self.degree - 1, self.degree)
            return self.d_out * (single if self.tokens == 1 else self.d * comb(self.num_pairs + inner - 1, inner))
        if self.tokens is None:
            return self.d_out * block
        visible = self.mask.count(self.tokens * (self.tokens - 1))
        single = self.tokens * comb(self.d + 2, 3) if self.has_single else 0
        return self.d_out * (single + visible * block) + int(self.residual)

    def describe(self) -> dict[str, Any]:
        """The sizes as JSON values; what follows from others is filled in."""
        names = ["d", "a", "targets", "d_out", "heads", "value_width"]
        if self.tokens is not None:
            names = ["d", "a", "tokens", "d_out", "heads", "value_width", "causal", "residual"]
        if self.hidden:
            names = ["d", "hidden", "d_out", "a", "tokens"]
        values = {**asdict(self), "targets": self.num_targets, "hidden": list(self.hidden)}
        return {name: values[name] for name in names}

    def restrict(self, sizes: Sequence[int]) -> Variety:
        """The same variety for smaller groups: its coordinates are those whose indices are below the sizes.

        A polynomial in these coordinates vanishes on one variety if and only if it does on the other, because the upper
        left blocks of V and A are those of a layer of the smaller size.

        >>> Variety(9, 2).restrict((3, 2)).groups
        (3, 2)
        """
        if self.residual or self.hidden:
            return self
        # With one row there would be no group for the rows any more.
        d_out = 1 if self.d_out == 1 else min(self.d_out, max(2, sizes[0]))
        inner = sizes if self.d_out == 1 else sizes[1:]
        targets = self.targets if self.tokens is not None else min(self.num_targets, inner[1])
        return replace(self, d=min(self.d, inner[0]), targets=targets, d_out=d_out)


def coordinate_name(variety: Variety, row: int, columns: tuple[int, ...], indices: Sequence[int]) -> str:
    """The name of y_R of an output row and target column (j,), or of y_{S,m} of target and context columns (j, n).

    The letter s or y, the row if there are several, the columns if they are not the first ones, the indices.

    >>> [coordinate_name(Variety(2, 1, tokens=2), 0, columns, (0, 0, 1)) for columns in ((1,), (0, 1))]
    ['sc_1_0_0_1', 'y_0_0_1']
    """
    letter, first = ("s", (0,)) if len(columns) == 1 else ("y", (0, 1))
    kind, place = (letter, ()) if columns == first else (f"{letter}c", columns)
    return "_".join(map(str, (kind, *([row] if variety.d_out > 1 else []), *place, *indices)))


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
