"""One layer from its function, exactly: the quadrics α_m(z) ν_n(z) determine (A, V) up to the fiber of [G] Thm 3.2.

For t ≥ 2 a layer φ(X) = V X Xᵀ A X is determined by its part linear in one token and quadratic in another ([G] Prop
A.5), the table of quadrics T[n, m] = α_m(z) ν_n(z), where α_m is column m of A and ν_n is row n of V. One nonzero
quadric is split into linear factors, the others are divided by them, and every product is checked. If the factors are
irrational then every quadric must be a multiple of that one: a factorization that differs from its conjugate has
rk A = rk V = 1.

All columns of a layer carry one function: which copies must agree, with and without mask, is looked at first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import QQ, Array, Domain, QuadraticField
from attngeom.exact.numbers import join_scale
from attngeom.layer.coefficients import Coefficients, multiply_forms, symmetrize
from attngeom.layer.quadrics import (
    SplitQuadric,
    discriminant,
    divide_by_form,
    split_quadric,
    symmetric_matrix,
)
from attngeom.network.mask import Mask
from attngeom.network.symmetry.element import matrix_to_json
from attngeom.network.weights import factor_attention
from attngeom.results import Failure


@dataclass(frozen=True, eq=False)
class LayerMatrices:
    """A point (A, V) of weight space over ``domain``, with A = Kᵀ Q: A is d×d, V is d_out×d.

    >>> from attngeom.exact import QQ
    >>> LayerMatrices.zero(1, 2, QQ).to_json()
    {'A': [['0']], 'V': [['0'], ['0']]}
    """

    A: Array
    V: Array
    domain: Domain

    @classmethod
    def zero(cls, d: int, d_out: int, domain: Domain) -> LayerMatrices:
        return cls(domain.zeros((d, d)), domain.zeros((d_out, d)), domain)

    def to_json(self, attention: int | None = None) -> dict[str, Any]:
        """A and V row by row; with ``attention``, also Q and K of that width with Kᵀ Q = A."""
        arrays = {"A": self.A, "V": self.V}
        if attention is not None:
            arrays["Q"], arrays["K"] = factor_attention(self.A, attention, self.domain)
        return {name: matrix_to_json(array, self.domain) for name, array in arrays.items()}

    def scaled(self, exponent: int) -> Self:
        """The floats (A, V) of 2^exponent times the function: A and V take half of it each."""
        half = exponent // 2
        return replace(self, A=join_scale(self.A, half), V=join_scale(self.V, exponent - half))


Status = Literal["zero", "rational", "real", "complex", "none"]


@dataclass(frozen=True, eq=False)
class LayerSplitting:
    """All (A, V), up to (λA, V/λ), with T[n, m] = α_m ν_n.

    ``status``: "zero" (A = 0 or V = 0), "rational" (points over the field of the table), "real" (over Q(√D), D > 0),
    "complex" (over Q(√D), D < 0: no real weights, but a limit point of the Zariski closure), "none" (no factorization
    over any field). ``points`` holds one point, or both points of a two-point fiber, scaled so that the first nonzero
    entry of V is 1. ``reason`` says why there are no real weights. Floats are fitted by least squares, with ranks of
    the fit: ``residual`` is ‖T − T(A, V)‖ / ‖T‖, ``separation`` how well A and V are determined (near 0: not at all).
    """

    status: Status
    domain: Domain
    points: tuple[LayerMatrices, ...] = ()
    rank_A: int = 0
    rank_V: int = 0
    reason: str = ""
    residual: float | None = None
    separation: float | None = None


def split_layer(table: Array, domain: Domain) -> LayerSplitting:
    """Every (A, V) over an algebraic closure with T[n, m] = α_m ν_n, up to scale; exact over Q and GF(p), p odd.

    ``table`` has shape (d_out, d, d(d+1)/2): ordinary coefficients at z_k z_l, k ≤ l row by row. Time and memory are
    linear in the table. By [G] Thm 3.2 (t ≥ 2) the points found are the whole fiber, and "none" is a proof that no
    complex weights exist, for any attention width.

    >>> from attngeom.exact import QQ
    >>> split = split_layer(QQ.convert([[[1, 0, -2], [0, 0, 0]]]), QQ)
    >>> split.status, split.points[0].V.tolist(), split.points[0].A[:, 0].tolist()
    ('real', [[Quadratic('1'), Quadratic('1*sqrt(2)')]], [Quadratic('1'), Quadratic('-1*sqrt(2)')])
    """
    if not domain.is_exact:
        raise DomainError(f"table over {domain.name} given; exact splitting needs Q or GF(p)")
    d = check_table(table)
    nonzero = (place for place in np.ndindex(*table.shape[:2]) if any(table[place].tolist()))
    anchor = next(nonzero, None)
    if anchor is None:
        return LayerSplitting("zero", domain)
    n, m = anchor
    split = split_quadric(table[n, m], d, domain)
    if split is None:
        return LayerSplitting("none", domain, reason=_obstruction("product", table, domain, anchor, anchor))
    factors = split.linear_factors(domain)
    if factors is None:
        return _split_irrational(table, domain, anchor, split)
    choices = [factors] if split.second is None else [factors, factors[::-1]]
    quotients = [_divide_table(table, domain, anchor, nu) for _, nu in choices]
    points = tuple(point for point in quotients if isinstance(point, LayerMatrices))
    if not points:
        return LayerSplitting("none", domain, reason=str(quotients[0]))
    return LayerSplitting("rational", domain, points, domain.rank(points[0].A), domain.rank(points[0].V))


def check_table(table: Array) -> int:
    """d, for a table of quadrics (d_out, d, d(d+1)/2)."""
    if table.ndim != 3 or 0 in table.shape or table.shape[2] * 2 != table.shape[1] * (table.shape[1] + 1):
        raise InputError(f"table of shape {table.shape} given; shape (d_out, d, d(d+1)/2) is required")
    return int(table.shape[1])


def _divide_table(table: Array, domain: Domain, anchor: tuple[int, int], nu: Array) -> LayerMatrices | str:
    """The (A, V) whose row n of V is proportional to nu, or what the first quadric says that contradicts it."""
    n, m = anchor
    nu = domain.times(nu, domain.invert(nu[domain.pivot(nu)]))
    A = divide_by_form(table[n], nu, domain).T
    failed = _first_difference(table[n], multiply_forms(A.T, nu[None, :], domain), domain)
    if failed is not None:
        return _obstruction("division", table, domain, (n, failed), anchor)
    V = divide_by_form(table[:, m], A[:, m], domain)
    failed = _first_difference(table[:, m], multiply_forms(V, A[None, :, m], domain), domain)
    if failed is not None:
        return _obstruction("division", table, domain, (failed, m), anchor)
    for row in range(table.shape[0]):
        failed = _first_difference(table[row], multiply_forms(A.T, V[row : row + 1], domain), domain)
        if failed is not None:
            return _obstruction("product", table, domain, (row, failed), anchor)
    return LayerMatrices(A, V, domain)


def _first_difference(given: Array, expected: Array, domain: Domain) -> int | None:
    """The first row in which two arrays of quadrics differ."""
    difference = domain.reduce(given - expected)
    return next((index for index, row in enumerate(difference) if not domain.is_zero(row)), None)


def _obstruction(
    kind: Literal["division", "product"], table: Array, domain: Domain, place: tuple[int, int], anchor: tuple[int, int]
) -> str:
    """A failed check in words; a quadric of rank 3 or more is reported as such, for it fails by itself."""
    n, m = place
    size = domain.rank(symmetric_matrix(table[n, m], table.shape[1], domain))
    name = f"the quadric of output {n} and target {m}"
    if size > 2:
        return f"{name} has rank {size}, so it is no product of two linear forms"
    if kind == "division":
        what = "row of V" if n == anchor[0] else "column of A"
        return f"{name} is not divisible by the {what} that splits off at output {anchor[0]} and target {anchor[1]}"
    return f"{name} is not the product of the linear forms that the other quadrics give"


def _split_irrational(table: Array, domain: Domain, anchor: tuple[int, int], split: SplitQuadric) -> LayerSplitting:
    """The splitting when the anchor quadric is irreducible over the field: T must be h ⊗ q ⊗ anchor."""
    n, m = anchor
    base = table[n, m]
    pivot = domain.pivot(base)
    inverse = domain.invert(base[pivot])
    h = domain.reduce(table[:, m, pivot] * inverse)
    q = domain.reduce(table[n, :, pivot] * inverse)
    for row in range(table.shape[0]):
        expected = domain.reduce(domain.reduce(q * h[row])[:, None] * base)
        failed = _first_difference(table[row], expected, domain)
        if failed is not None:
            reason = _obstruction("division", table, domain, (row, failed), anchor)
            return LayerSplitting("none", domain, reason=reason)
    if domain != QQ or split.square is None:
        raise DomainError(
            f"a table over {domain.name} whose quadrics have irrational factors was given; use Q or another prime"
        )
    D = discriminant(base, table.shape[1])
    field = QuadraticField(D)
    factor = domain.sqrt(split.square / D)
    first, scale = split.first, split.scale
    shift = np.asarray(split.second) * factor
    plus, minus = field.combine(first, shift), field.combine(first, -shift)
    points = []
    for k, v in ((minus, plus), (plus, minus)):
        lead = v[field.pivot(v)]
        A = (k * (lead * scale))[:, None] * q[None, :]
        V = h[:, None] * (v * lead.inverse())[None, :]
        points.append(LayerMatrices(A, V, field))
    reason = "" if D > 0 else f"the factors are conjugate over {field.label}: there are no real weights"
    return LayerSplitting("real" if D > 0 else "complex", field, tuple(points), 1, 1, reason=reason)


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
