"""The coefficients of a cubic map d×t → d_out×t, in the coordinates of one lightning layer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from math import comb
from typing import Any

import numpy as np

from attngeom.digits import number
from attngeom.errors import InputError, SizeError, check_positive
from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import (
    pair_index,
    pair_orbits,
    pair_rows,
    pairs,
    split_starts,
    splits,
    triple_index,
    triple_orbits,
    triples,
)
from attngeom.limits.memory import EXACT_COEFFICIENTS, FLOAT_COEFFICIENTS
from attngeom.limits.shown import CARD_TERMS
from attngeom.network import Weights
from attngeom.results import plain_card

Entry = tuple[int, int]
Monomial = tuple[Entry, Entry, Entry]


@dataclass(frozen=True)
class Term:
    """A monomial outside the support of attention, with its nonzero coefficient in output (row, column)."""

    output: Entry
    monomial: Monomial
    value: Any


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Ordinary (unscaled) polynomial coefficients of F_ij for output rows i < d_out and target columns j < t.

    ``single[i, j, R]`` is the coefficient of x_{R,j}; ``cross[i, j, n, S, m]`` that of x_{S,n'} x_{m,j}, where n counts
    the columns n' ≠ j in increasing order; shapes (d_out, t, C(d+2,3)) and (d_out, t, t-1, C(d+1,2), d). ``outside``
    lists the nonzero terms on any other monomial. Arrays may be broadcast views: do not write to them.

    >>> from attngeom.exact import QQ
    >>> from attngeom.network import Architecture, random_weights
    >>> coefficients(random_weights(Architecture((2, 1), 1, tokens=3), QQ, seed=0)).cross.shape
    (1, 3, 2, 3, 2)
    """

    d: int
    d_out: int
    t: int
    single: Array
    cross: Array
    domain: Domain
    outside: tuple[Term, ...] = field(default=())

    def __post_init__(self) -> None:
        check_size(self.d, self.d_out, self.t, not self.domain.rounds)
        shapes = array_shapes(self.d, self.d_out, self.t)
        if (self.single.shape, self.cross.shape) != shapes:
            raise InputError(
                f"coefficient arrays of shapes {self.single.shape} and {self.cross.shape} given;"
                f" {shapes[0]} and {shapes[1]} are required"
            )

    @classmethod
    def of_cross(cls, cross: Array, t: int, domain: Domain) -> Coefficients:
        """The map whose cross coefficients (d_out, C(d+1,2), d) are the same in all columns, as those of a layer."""
        d_out, _, d = cross.shape
        shapes, single = array_shapes(d, d_out, t), symmetrize(cross, d, domain)
        copies = np.broadcast_to(single[:, None], shapes[0]), np.broadcast_to(cross[:, None, None], shapes[1])
        return cls(d, d_out, t, *copies, domain)

    def __repr__(self) -> str:
        outside = f", {len(self.outside)} terms outside the support" if self.outside else ""
        size = f"{self.size:,} coefficients over {self.domain.name}"
        return f"Coefficients({self.d}×{self.t} → {self.d_out}×{self.t}, {size}{outside})"

    def _repr_html_(self) -> str:
        """A card: sizes, numbers, and the first output entry as a polynomial."""
        terms = [(value, rows) for value, rows in zip(self.single[0, 0], triples(self.d)) if value != 0]
        words = [f"{number(self.domain.format(value))} {' '.join(f'x_{r}0' for r in rows)}" for value, rows in terms]
        shown = " + ".join([*words[:CARD_TERMS], *(["…"] if len(terms) > CARD_TERMS else [])]) or "0"
        rows = {
            "map": f"{self.d}×{self.t} → {self.d_out}×{self.t}, cubic",
            "coefficients": f"{self.size:,} over {self.domain.name}",
            "outside the support": f"{len(self.outside)} terms" if self.outside else "none",
            "F_00, token 0 alone": shown.replace("+ -", "− "),
        }
        return plain_card("<b>coefficients of one layer</b>", rows)

    @property
    def size(self) -> int:
        """The number of coefficients in the support of a layer."""
        return count_entries(self.d, self.d_out, self.t)

    @property
    def table(self) -> Array:
        """The quadrics (d_out, d, d(d+1)/2) by which token 1 attends to token 0: with and without a mask, t ≥ 2."""
        return swap(self.cross[:, 1, 0])

    @property
    def scaled_single(self) -> Array:
        """y_R = c(R) / |orbit of R|."""
        return divide(self.single, triple_orbits(self.d), self.domain)

    @property
    def scaled_cross(self) -> Array:
        """y_{S,m} = c(S, m) / |orbit of S|."""
        return divide(self.cross, pair_orbits(self.d)[:, None], self.domain)

    def means(self) -> tuple[Array, Array]:
        """The means over all copies of float coefficients, (d_out, C(d+2,3)) and (d_out, C(d+1,2), d)."""
        cross = self.cross.mean(axis=(1, 2)) if self.t > 1 else np.zeros((self.d_out, *self.cross.shape[3:]))
        return self.single.mean(axis=1), cross

    def distance(self, single: Array, cross: Array) -> float:
        """‖F − G‖ in floats, for G with the same coefficients in all copies and none outside the support."""
        apart = np.sum((self.single - single[:, None]) ** 2) + np.sum((self.cross - cross[:, None, None]) ** 2)
        return float(np.sqrt(apart + sum(float(term.value) ** 2 for term in self.outside)))

    @property
    def norm(self) -> float:
        """‖F‖ in floats, that of all coefficients."""
        return self.distance(np.zeros((1, 1)), np.zeros((1, 1, 1)))

    def evaluate(self, X: Array) -> Array:
        """F(X), of shape (..., d_out, t), for X of shape (..., d, t)."""
        if X.shape[-2:] != (self.d, self.t):
            raise InputError(f"input of shape {X.shape} given; shape (..., {self.d}, {self.t}) is required")
        domain = self.domain
        first, second = np.array(pairs(self.d)).T
        squares = domain.reduce(X[..., first, :] * X[..., second, :])
        k, l, m = np.array(triples(self.d)).T
        cubes = domain.reduce(domain.reduce(X[..., k, :] * X[..., l, :]) * X[..., m, :])
        columns = []
        for j in range(self.t):
            context = swap(np.delete(squares, j, axis=-1))
            mixed = domain.reduce(context[..., None] * X[..., None, None, :, j])
            value = domain.matmul(self.cross[:, j].reshape(self.d_out, -1), mixed.reshape(*X.shape[:-2], -1, 1))
            columns.append(domain.reduce(value + domain.matmul(self.single[:, j], cubes[..., j : j + 1])))
        out = np.concatenate(columns, axis=-1)
        for term in self.outside:
            product = term.value
            for row, column in term.monomial:
                product = domain.reduce(product * X[..., row, column])
            out[..., term.output[0], term.output[1]] = domain.reduce(out[..., term.output[0], term.output[1]] + product)
        return out

    def coefficient(self, output: Entry, monomial: Monomial) -> Any:
        """The coefficient of any cubic monomial in F_output."""
        place = locate(output, monomial, self.d)
        if place is None:
            wanted = tuple(sorted(monomial))
            values = [x.value for x in self.outside if x.output == output and tuple(sorted(x.monomial)) == wanted]
            return values[0] if values else self.domain.zeros((1,))[0]
        name, index = place
        return (self.single if name == "single" else self.cross)[index]


def array_shapes(d: int, d_out: int, t: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of ``single`` and ``cross``."""
    return (d_out, t, comb(d + 2, 3)), (d_out, t, t - 1, comb(d + 1, 2), d)


def count_output(d: int, t: int) -> int:
    """Monomials of one output coordinate: C(d+2, 3) in its own column, (t − 1) d C(d+1, 2) across columns.

    >>> count_output(2, 2)
    10
    """
    return comb(d + 2, 3) + (t - 1) * d * comb(d + 1, 2)


def count_support(d: int, t: int) -> int:
    """Different monomials over all target columns; the rows of the output share them."""
    return t * count_output(d, t)


def count_entries(d: int, d_out: int, t: int) -> int:
    """The number of coefficients in the support of a layer."""
    return d_out * count_support(d, t)


def count_cubics(d: int, t: int) -> int:
    """All cubic monomials in the d t entries of X: the density count_support / count_cubics is O(1/t).

    >>> count_support(2, 2), count_cubics(2, 2)
    (20, 20)
    """
    return comb(d * t + 2, 3)


def check_size(d: int, d_out: int, t: int, exact: bool) -> None:
    """Positive sizes whose arrays fit in memory and are read in seconds."""
    for name, value in (("d", d), ("d_out", d_out), ("t", t)):
        check_positive(name, value)
    entries, most = count_entries(d, d_out, t), EXACT_COEFFICIENTS if exact else FLOAT_COEFFICIENTS
    if entries > most:
        raise SizeError(f"d = {d}, d_out = {d_out}, t = {t} give {entries:,} coefficients; at most {most:,}")


def locate(output: Entry, monomial: Monomial, d: int) -> tuple[str, tuple[int, ...]] | None:
    """The array and index that hold the coefficient of a monomial in F_output, or None outside the support.

    >>> locate((0, 0), ((0, 1), (2, 1), (1, 0)), 3)
    ('cross', (0, 0, 0, 2, 1))
    """
    i, j = output
    columns = [column for _, column in monomial]
    if columns == [j, j, j]:
        rows = (monomial[0][0], monomial[1][0], monomial[2][0])
        return "single", (i, j, triple_index(rows, d))
    targets = [row for row, column in monomial if column == j]
    context = [(row, column) for row, column in monomial if column != j]
    if len(targets) != 1 or context[0][1] != context[1][1]:
        return None
    n = context[0][1]
    return "cross", (i, j, n - (n > j), int(pair_index(d)[context[0][0], context[1][0]]), targets[0])


def divide(a: Array, orbits: Array, domain: Domain) -> Array:
    """Ordinary coefficients, over the sizes of the orbits of their labels: the scaled ones."""
    inverses = domain.convert([[f"1/{n}"] for n in orbits.ravel()]).reshape(orbits.shape)
    return domain.reduce(a * inverses)


def expand_matrices(A: Array, V: Array, domain: Domain) -> tuple[Array, Array]:
    """Single and cross coefficients, (d_out, C(d+2,3)) and (d_out, C(d+1,2), d), of V X Xᵀ A X.

    c(S, m) = Σ over distinct permutations (k, l) of S of V_ik A_lm, and c(R) = Σ c(S, m) over R = S ⊎ {m}.
    """
    cross = swap(quadric_table(A, V, domain))
    return symmetrize(cross, len(A), domain), cross


def quadric_table(A: Array, V: Array, domain: Domain) -> Array:
    """The table T (..., d_out, d, d(d+1)/2): T[n, m] is the quadric (column m of A)·z times (row n of V)·z.

    >>> from attngeom.exact import QQ
    >>> quadric_table(QQ.convert([[1, 0], [0, 1]]), QQ.convert([[2, 3]]), QQ).tolist()
    [[[2, 3, 0], [0, 2, 3]]]
    """
    return multiply_forms(swap(A)[..., None, :, :], V[..., :, None, :], domain)


def multiply_forms(a: Array, b: Array, domain: Domain) -> Array:
    """The quadric a(z) b(z) of two linear forms (..., d), at z_k z_l for k ≤ l, broadcast over the leading axes.

    >>> from attngeom.exact import QQ
    >>> multiply_forms(QQ.convert([1, 2]), QQ.convert([3, 4]), QQ).tolist()
    [3, 10, 8]
    """
    k, l = pair_rows(a.shape[-1])
    off_diagonal = (k != l).astype(np.int64)
    swapped = domain.reduce(domain.reduce(a[..., l] * b[..., k]) * off_diagonal)
    return domain.reduce(domain.reduce(a[..., k] * b[..., l]) + swapped)


def symmetrize(cross: Array, d: int, domain: Domain) -> Array:
    """c(R) = Σ c(S, m) over R = S ⊎ {m}, along the last two axes (S, m) of ``cross``."""
    _, parts, ends = splits(d)
    return domain.reduce(np.add.reduceat(cross[..., parts, ends], split_starts(d), axis=-1))


def layer_table(weights: Weights) -> Array:
    """The quadrics T = Σ_h T_h of a layer, of shape (d_out, d, d(d+1)/2)."""
    domain = weights.domain
    heads = ((head.attention_matrix(domain), head.value_matrix(domain)) for head in weights.layers[0])
    tables = (quadric_table(A, V, domain) for A, V in heads)
    return reduce(lambda one, two: domain.reduce(one + two), tables)


def coefficients(weights: Weights) -> Coefficients:
    """The coefficients of one layer with outputs Σ_j c_ji V x_j · x_jᵀ A x_i, numbers c; several heads add up.

    Lightning attention, with a mask, a window or memory that take away columns, and retention with its decays.
    """
    architecture = weights.architecture
    (d, *_, d_out), t, domain, kind = architecture.widths, architecture.tokens, weights.domain, architecture.mechanism
    heads = weights.layers[0]
    told = (kind.pair_weights(head.tensors, place, t, domain) for place, head in enumerate(heads))
    shares = [x for x in told if x is not None]
    if architecture.num_layers > 1 or architecture.residual or len(shares) < len(heads):
        if architecture.is_plain:
            words = "coefficients of a deep, softmax or residual network; one plain lightning layer is required"
        else:
            words = (
                f"{architecture.kind} attention given with options or layers; coefficients are told of one lightning"
                " (--window, --memory) or retnet layer: type attngeom inspect or compare"
            )
        raise InputError(words)
    check_size(d, d_out, t, not domain.rounds)
    with domain.working():
        tables = [quadric_table(x.attention_matrix(domain), x.value_matrix(domain), domain) for x in heads]
        if all(domain.equal(x, shares[0]) for x in shares):
            tables = [reduce(lambda one, two: domain.reduce(one + two), tables)]
        layers = [_shared_out(swap(table), share, t, domain) for table, share in zip(tables, shares)]
        if len(layers) == 1:
            return layers[0]
        single, cross = (
            reduce(lambda one, two: domain.reduce(one + two), parts)
            for parts in ([x.single for x in layers], [x.cross for x in layers])
        )
        return replace(layers[0], single=single, cross=cross)


def _shared_out(cross: Array, share: Array, t: int, domain: Domain) -> Coefficients:
    """The map Σ_j c_ji of the pairs (j, i) of a layer with these cross coefficients."""
    layer = Coefficients.of_cross(cross, t, domain)
    if domain.equal(share, domain.convert(np.ones((t, t), dtype=np.int64))):
        return layer
    others = np.stack([np.delete(share[:, j], j) for j in range(t)])
    return replace(
        layer,
        single=domain.times(layer.single, np.diagonal(share)[None, :, None]),
        cross=domain.times(layer.cross, others[None, :, :, None, None]),
    )


def scale_to_one(coefficients: Coefficients) -> tuple[Coefficients, int]:
    """(c, e) with given coefficients 2^e c and the largest of c in [1/2, 1); e = 0 for the zero map.

    Exact, but for entries that are 2^1000 times smaller than the largest: those lose bits below 2^-1074.

    >>> from attngeom.exact import RR
    >>> c = Coefficients(1, 1, 1, RR.convert([[[3 * 2.0**-700]]]), RR.zeros((1, 1, 0, 1, 1)), RR)
    >>> scale_to_one(c)[0].single.tolist(), scale_to_one(c)[1]
    ([[[0.75]]], -698)
    """
    outside = [float(term.value) for term in coefficients.outside]
    arrays = coefficients.single, coefficients.cross, np.array(outside)
    largest = max(float(np.abs(array).max(initial=0.0)) for array in arrays)
    exponent = int(np.frexp(largest)[1])
    if largest == 0.0:
        return coefficients, 0
    terms = tuple(
        replace(term, value=float(np.ldexp(value, -exponent))) for term, value in zip(coefficients.outside, outside)
    )
    single, cross = np.ldexp(coefficients.single, -exponent), np.ldexp(coefficients.cross, -exponent)
    return replace(coefficients, single=single, cross=cross, outside=terms), exponent
