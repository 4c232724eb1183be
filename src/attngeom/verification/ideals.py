"""Recheck a claim that an ideal has these minimal generators in all degrees: the hypotheses of a theorem, and its list.

The lists are said here again, from docs/theorems/completeness.md (Theorems 6 and 7) and docs/theorems/open-problems.md;
nothing comes from the engine. Beside the theorem the new generators of small degrees are counted: for every dominant
weight of a torus, forms that vanish at random points of the variety mod p, less the multiples of those before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.exact.domains import GF, Array
from attngeom.exact.modular import rank_mod_p
from attngeom.exact.numbers import WORD_PRIME
from attngeom.limits.recheck import COUNTED_COORDINATES, COUNTED_MONOMIALS, SPARE_POINTS
from attngeom.limits.sizes import VARIETY_SIZE
from attngeom.results import Proof
from attngeom.verification.reading import read_choice, read_integer, read_list, read_object, require

Shape = tuple[int, ...]
Module = tuple[int, tuple[Shape, ...]]
"""A degree, and the partitions of the groups of rows (if there are several), contexts and targets; one token: rows."""
FIELD = GF(WORD_PRIME)
SIZES = ("d", "a", "tokens", "targets", "d_out", "heads", "value_width", "causal", "residual")
THEOREMS = ("6", "7", "plane", "plane, two heads", "one token")


@dataclass(frozen=True)
class LayerSizes:
    """The sizes of the variety: coefficients of Σ V_h X Xᵀ A_h X; without ``tokens`` those of one context, one target.

    >>> LayerSizes(2, 2, None, 2, 1, 1, None, False, False).rank
    2
    """

    d: int
    a: int
    tokens: int | None
    targets: int
    d_out: int
    heads: int
    value_width: int | None
    causal: bool
    residual: bool

    @classmethod
    def from_json(cls, record: Any) -> LayerSizes:
        given = read_object(record, SIZES, "variety")
        for key in ("causal", "residual"):
            if type(given[key]) is not bool:
                raise FormatError(f"{key} must be true or false")
        for key in ("d", "a", "targets", "d_out", "heads"):
            read_integer(given[key], 1, VARIETY_SIZE, key)
        for key in ("tokens", "value_width"):
            if given[key] is not None:
                read_integer(given[key], 1, VARIETY_SIZE, key)
        layer = cls(**given)
        require(layer.tokens is None or layer.targets == layer.d, "with tokens there are as many targets as inputs")
        require(layer.tokens is not None or not (layer.causal or layer.residual), "a mask or skip needs tokens")
        require(not layer.residual or layer.d_out == layer.d, "a skip connection needs equal widths")
        return layer

    @property
    def rank(self) -> int:
        return min(self.a, self.d, self.targets)

    @property
    def groups(self) -> tuple[int, ...]:
        """The sizes of the groups that act on the coordinates of one context and one target, or of one token."""
        inner = (self.d,) if self.tokens == 1 else (self.d, self.targets)
        return inner if self.d_out == 1 else (self.d_out, *inner)

    def listed(self) -> tuple[str, list[Module]]:
        """The theorem whose hypotheses hold, and its list, without what has more rows than its group."""
        name, modules = self._theorem()
        groups = {1: (self.d,), 2: (self.d, self.targets), 3: (self.d_out, self.d, self.targets)}
        fits = [x for x in modules if all(len(shape) <= size for shape, size in zip(x[1], groups[len(x[1])]))]
        return name, sorted(fits)

    def _theorem(self) -> tuple[str, list[Module]]:
        alpha, rows = self.rank, self.d_out
        if self.tokens == 1:
            known = (self.d, rows, self.heads, self.residual) == (3, 1, 1, False)
            require(known, "for one token a list is known for d = 3, one row and one head, no skip connection")
            return "one token", [(4, ((7, 3, 2),))] if self.a == 1 else [(8, ((10, 9, 5),))]
        if rows == self.heads == 1:
            return "6" if self.tokens is None else "7", list(_one_row(alpha, min(self.d, self.targets)))
        require(self.d == self.targets == 2, "for several rows or heads lists are known for d = 2")
        if self.heads == 1:
            free = self.value_width is None or self.value_width >= 2
            require(free, "a free value map is required")
            return "plane", list(_plane(alpha))
        least = (self.heads, alpha, self.value_width, self.residual) == (2, 1, 1, False)
        require(least, "for several heads a list is known for two of attention and value width one, no skip connection")
        return "plane, two heads", [
            (3, ((2, 1), (3, 3), (2, 1))),
            (3, ((1, 1, 1), (5, 1), (2, 1))),
            (3, ((1, 1, 1), (4, 2), (2, 1))),
            (3, ((1, 1, 1), (3, 3), (3,))),
        ]

    @property
    def linear_relations(self) -> int:
        """Those between the coefficients of all columns, for t ≥ 2 tokens: single ones, and all contexts but one."""
        if self.tokens is None or self.tokens == 1:
            return 0
        visible = self.tokens * (self.tokens - 1) // (2 if self.causal else 1)
        cross = self.d * comb(self.d + 1, 2)
        return self.d_out * (self.tokens * comb(self.d + 2, 3) + (visible - 1) * cross)


def _one_row(alpha: int, least: int) -> Iterator[Module]:
    """Theorem 6: one row, one head."""
    yield 3, ((2, 2, 2), (3,))
    if alpha >= 2:
        yield 3, ((3, 3), (1, 1, 1))
        yield 4, ((4, 4), (2, 2))
        yield 4, ((3, 3, 1, 1), (2, 2))
    if alpha < least:
        yield alpha + 1, ((alpha + 2, *(1,) * alpha), (1,) * (alpha + 1))


def _plane(alpha: int) -> Iterator[Module]:
    """d = 2 and several rows."""
    if alpha == 1:
        yield from ((2, x) for x in (((2,), (3, 1), (1, 1)), ((1, 1), (4,), (1, 1)), ((1, 1), (2, 2), (1, 1))))
    else:
        yield 2, ((1, 1), (4,), (1, 1))
        yield 4, ((4,), (4, 4), (2, 2))
    yield 3, ((1, 1, 1), (3, 3), (3,))
    yield 4, ((2, 2), (4, 4), (4,))


@dataclass(frozen=True)
class IdealClaim:
    """The ideal of a layer is generated by linear relations and these modules, and by nothing less, in all degrees."""

    layer: LayerSizes
    generators: tuple[Module, ...]
    linear_relations: int
    dimension: int

    @classmethod
    def from_json(cls, record: Any) -> IdealClaim:
        """Read the claim strictly."""
        claim = read_object(record, ("kind", "variety", "generators", "linear_relations", "dimension"), "claim")
        layer = LayerSizes.from_json(claim["variety"])
        if type(claim["generators"]) is not list or len(claim["generators"]) > 16:
            raise FormatError("generators: a list of at most 16 modules is required")
        modules = []
        for entry in claim["generators"]:
            module = read_object(entry, ("degree", "shapes"), "module")
            shapes = [_read_shape(x) for x in read_list(module["shapes"], len(layer.groups), "shapes")]
            modules.append((read_integer(module["degree"], 1, VARIETY_SIZE + 1, "degree"), tuple(shapes)))
        numbers = (read_integer(claim[key], 0, 10**40, key) for key in ("linear_relations", "dimension"))
        return cls(layer, tuple(modules), *numbers)

    def __str__(self) -> str:
        layer = self.layer
        sizes = ", ".join(f"{name} {str(getattr(layer, name)).lower()}" for name in SIZES)
        listed = " + ".join(f"{'⊗'.join(map(_name, shapes))} (degree {n})" for n, shapes in self.generators) or "none"
        return (
            f"the ideal of the coefficients of an attention layer with {sizes} has {self.linear_relations} linear"
            f" generators and beside them the minimal generators {listed}, in all degrees; the affine dimension is"
            f" {self.dimension}"
        )

    def check(self, witness: Mapping[str, Any]) -> Proof:
        """Why the claim is true: the hypotheses of the theorem hold, and its list is this one."""
        name = read_choice(read_object(witness, ("theorem",), "witness")["theorem"], THEOREMS, "theorem")
        layer = self.layer
        cited, modules = layer.listed()
        require(cited == name, f"these sizes have the theorem {cited}")
        require(list(self.generators) == modules, "the list of the theorem is another one, or in another order")
        require(self.linear_relations == layer.linear_relations, f"there are {layer.linear_relations} linear relations")
        dimension = _dimension(layer)
        require(self.dimension == dimension, f"the affine dimension is {dimension}")
        words = f"the hypotheses of the theorem ({name}) hold, and this is its list"
        counts = Counts(layer)
        last = max((n for n, _ in modules), default=1)
        counted = [n for n in range(1, last + 1) if counts.is_small(n)]
        for n in counted:
            counts.check(n, [shapes for degree, shapes in modules if degree == n])
        degrees = f"in degrees up to {counted[-1]} counts mod p agree" if counted else "too large to be counted"
        return Proof("certified", f"{words}; {degrees}")


def _read_shape(value: Any) -> Shape:
    if type(value) is not list or len(value) > VARIETY_SIZE + 1:
        raise FormatError("a partition is required")
    parts = [read_integer(x, 1, 2 * VARIETY_SIZE, "part") for x in value]
    require(parts == sorted(parts, reverse=True), "parts of a partition in decreasing order are required")
    return tuple(parts)


def _name(shape: Shape) -> str:
    if len(shape) > 8:
        return f"S_({', '.join(map(str, shape[:3]))}, …, {len(shape)} parts of {sum(shape)})"
    return f"S_{''.join(map(str, shape))}" if max(shape) < 10 else f"S_({', '.join(map(str, shape))})"


def _dimension(layer: LayerSizes) -> int:
    """Of the affine cone: pairs (A, V) up to a scale for each head; with a skip connection one more."""
    alpha, d, m, rows = layer.rank, layer.d, layer.targets, layer.d_out
    if layer.tokens == 1:
        # xᵀAx of rank ≤ 2 or 3 squares, and a linear form, up to a scale.
        return 7 if layer.a == 1 else 8
    if layer.heads == 1:
        return min(rows, d) * (rows + d - min(rows, d)) + alpha * (d + m - alpha) - 1 + int(layer.residual)
    # The second secant variety of P^(d'−1) × P² × P¹ fills its space, or has the expected dimension.
    return min(2 * (rows + 3 + 2 - 2), 3 * 2 * rows)


Weight = tuple[tuple[int, ...], ...]
Monomial = tuple[int, ...]


class Counts:
    """New generators of small degrees, by dominant weights, from values at random points of the variety mod p."""

    def __init__(self, layer: LayerSizes) -> None:
        self.layer = layer
        d, rows, rng = layer.d, layer.d_out, np.random.default_rng(0)
        self.count = rows * (comb(d + 2, 3) if layer.tokens == 1 else comb(d + 1, 2) * layer.targets)
        self.rng, self.drawn = rng, np.zeros((0, self.count), dtype=np.int64)
        self.sorted: dict[int, dict[Weight, list[Monomial]]] = {}
        self.kernels: dict[tuple[int, Weight], Array] = {}
        if self.count > COUNTED_COORDINATES:
            return
        size = 3 if layer.tokens == 1 else 2
        contexts = list(combinations_with_replacement(range(d), size))
        targets = range(1 if layer.tokens == 1 else layer.targets)
        self.names = [(i, s, m) for i in range(rows) for s in contexts for m in targets]
        self.weights = [self._weight(*name) for name in self.names]

    def _weight(self, i: int, s: tuple[int, ...], m: int) -> Weight:
        row = tuple(int(k == i) for k in range(self.layer.d_out))
        context = tuple(s.count(k) for k in range(self.layer.d))
        target = tuple(int(k == m) for k in range(self.layer.targets))
        parts = (context,) if self.layer.tokens == 1 else (context, target)
        return parts if self.layer.d_out == 1 else (row, *parts)

    def is_small(self, n: int) -> bool:
        return self.count <= COUNTED_COORDINATES and comb(self.count + n - 1, n) <= COUNTED_MONOMIALS

    def check(self, n: int, modules: list[tuple[Shape, ...]]) -> None:
        """The new generators of degree n have the weights of these modules."""
        for weight, monomials in self._monomials(n).items():
            if any(list(part) != sorted(part, reverse=True) for part in weight):
                continue
            new = len(monomials) - rank_mod_p(self._values(monomials), FIELD.p) - self._generated(n, weight)
            expected = 0
            for shapes in modules:
                product = 1
                for shape, part in zip(shapes, weight):
                    product *= kostka(shape, part)
                expected += product
            require(new == expected, f"of weight {weight} there are {new} new generators mod p, not {expected}")

    def _monomials(self, n: int) -> dict[Weight, list[Monomial]]:
        """All monomials of a degree by their weights."""
        if n in self.sorted:
            return self.sorted[n]
        by_weight: dict[Weight, list[Monomial]] = defaultdict(list)
        for chosen in combinations_with_replacement(range(self.count), n):
            parts = zip(*(self.weights[x] for x in chosen))
            by_weight[tuple(tuple(map(sum, zip(*part))) for part in parts)].append(chosen)
        self.sorted[n] = by_weight
        return by_weight

    def _values(self, monomials: list[Monomial]) -> Array:
        points = self._points(len(monomials) + SPARE_POINTS)
        values = np.ones((len(points), len(monomials)), dtype=np.int64)
        for place in range(len(monomials[0])):
            values = values * points[:, [m[place] for m in monomials]] % FIELD.p
        return values

    def _points(self, count: int) -> Array:
        if len(self.drawn) < count:
            fresh = [self._point() for _ in range(count - len(self.drawn))]
            self.drawn = np.concatenate([self.drawn, np.array(fresh, dtype=np.int64)])
        return self.drawn[:count]

    def _point(self) -> list[int]:
        """The scaled coefficients of Σ V_h X Xᵀ A_h X at random matrices."""
        layer, total = self.layer, [0] * self.count
        width = min(layer.value_width or layer.d, layer.d)
        for _ in range(layer.heads):
            shapes = ((layer.d, layer.rank), (layer.rank, layer.targets), (layer.d_out, width), (width, layer.d))
            K, Q, O, W = (FIELD.convert(self.rng.integers(0, FIELD.p, size=shape)) for shape in shapes)
            A, V = FIELD.matmul(K, Q).tolist(), FIELD.matmul(O, W).tolist()
            for place, (i, s, m) in enumerate(self.names):
                orders = [(*s, m)] if layer.tokens != 1 else [s, (s[1], s[2], s[0]), (s[2], s[0], s[1])]
                value = sum(V[i][k] * A[l][n] + V[i][l] * A[k][n] for k, l, n in orders)
                total[place] = (total[place] + value) % FIELD.p
        return total

    def _vanishing(self, n: int, weight: Weight) -> tuple[list[Monomial], Array]:
        """The forms of this degree and weight that vanish."""
        monomials = self._monomials(n).get(weight, [])
        if (n, weight) not in self.kernels:
            empty = np.zeros((0, 0), dtype=np.int64)
            self.kernels[n, weight] = FIELD.nullspace(self._values(monomials)) if monomials else empty
        return monomials, self.kernels[n, weight]

    def _generated(self, n: int, weight: Weight) -> int:
        """The dimension of the multiples of forms of one degree less."""
        if n == 1:
            return 0
        index = {monomial: k for k, monomial in enumerate(self._monomials(n)[weight])}
        rows = []
        for x, own in enumerate(self.weights):
            rest = tuple(tuple(a - b for a, b in zip(*parts)) for parts in zip(weight, own))
            monomials, forms = self._vanishing(n - 1, rest)
            places = [index[tuple(sorted((*monomial, x)))] for monomial in monomials]
            for form in forms.tolist():
                row = np.zeros(len(index), dtype=np.int64)
                row[places] = form
                rows.append(row)
        return rank_mod_p(np.array(rows), FIELD.p) if rows else 0


@cache
def kostka(shape: Shape, weight: tuple[int, ...]) -> int:
    """The dimension of a weight space of S_λ: tableaux of shape λ, the last entries a horizontal strip.

    >>> kostka((2, 1), (1, 1, 1)), kostka((2, 1), (3,))
    (2, 0)
    """
    if not weight:
        return int(not shape)
    total = 0

    def strips(place: int, left: int, kept: tuple[int, ...]) -> Iterator[Shape]:
        if place == len(shape):
            if left == 0:
                yield tuple(x for x in kept if x)
            return
        below = shape[place + 1] if place + 1 < len(shape) else 0
        for take in range(min(left, shape[place] - below) + 1):
            yield from strips(place + 1, left - take, (*kept, shape[place] - take))

    for rest in strips(0, weight[-1], ()):
        total += kostka(rest, weight[:-1])
    return total
