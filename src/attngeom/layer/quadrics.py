"""Quadratic forms in z that are products of two linear forms: splitting and division over a field.

A quadric is the vector of its coefficients at z_k z_l, k ≤ l, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, isqrt, lcm
from typing import Any

import numpy as np
from flint import fmpz

from attngeom.exact.arrays import swap
from attngeom.exact.domains import Array, Domain
from attngeom.exact.multisets import pair_index, pair_rows
from attngeom.layer.coefficients import multiply_forms
from attngeom.network.mask import Mask


def divide_by_form(quadrics: Array, form: Array, domain: Domain) -> Array:
    """The linear forms b (..., d) with b(z) form(z) equal to the quadrics at every pair with the pivot of form.

    The pivot is the first nonzero entry. If a quadric is divisible by the form, b is the quotient; whether it is must
    be checked by multiplying back.

    >>> from attngeom.exact import QQ
    >>> divide_by_form(QQ.convert([[3, 10, 8]]), QQ.convert([3, 4]), QQ).tolist()
    [[1, 2]]
    """
    pivot = domain.pivot(form)
    inverse = domain.invert(form[pivot])
    row = quadrics[..., pair_index(form.shape[0])[pivot]]
    leading = domain.reduce(row[..., pivot : pivot + 1] * inverse)
    quotient = domain.reduce(domain.reduce(row - domain.reduce(leading * form)) * inverse)
    quotient[..., pivot] = leading[..., 0]
    return quotient


def symmetric_matrix(quadrics: Array, d: int, domain: Domain) -> Array:
    """The matrices B (..., d, d) with quadric(z) = zᵀ B z; 2 must be invertible."""
    half = domain.convert(["1/2"])[0]
    B = quadrics[..., pair_index(d)]
    scaled, diagonal = domain.reduce(B * half), np.arange(d)
    scaled[..., diagonal, diagonal] = B[..., diagonal, diagonal]
    return scaled


def polar_points(d: int) -> Array:
    """The integer points e_k and e_k + e_l, k < l, in the order of the coefficients: values there give a quadric."""
    k, l = pair_rows(d)
    unit = np.eye(d, dtype=np.int64)
    return np.asarray(np.where((k == l)[:, None], unit[k], unit[k] + unit[l]))


def polarize(values: Array, domain: Domain) -> Array:
    """The quadrics (..., d(d+1)/2) with these values at the :func:`polar_points`: q(e_k + e_l) − q(e_k) − q(e_l).

    >>> from attngeom.exact import QQ
    >>> polarize(QQ.convert([1, 6, 2]), QQ).tolist()
    [1, 3, 2]
    """
    k, l = pair_rows((isqrt(8 * values.shape[-1] + 1) - 1) // 2)
    place = np.flatnonzero(k == l)
    return np.asarray(np.where(k == l, values, domain.reduce(values - values[..., place[k]] - values[..., place[l]])))


def context_products(X: Array, mask: Mask, domain: Domain) -> Array:
    """x_i^(m) Σ_j x_j^(k) x_j^(l) for inputs X (..., d, t): a row (..., i, ·) over m and k ≤ l; those j that i sees.

    Outputs of a layer are these rows times its table of quadrics: token i of row n is Σ T[n, m, kl] x_i^(m) (…).
    """
    k, l = pair_rows(X.shape[-2])
    context = domain.reduce(mask.sums(domain.times(X[..., k, :], X[..., l, :])))
    products = domain.times(swap(X)[..., :, None], swap(context)[..., None, :])
    return np.reshape(products, (*products.shape[:-2], -1))


@dataclass(frozen=True, eq=False)
class SplitQuadric:
    """A quadric of rank at most 2, as scale·(first² − square·second²), or scale·first·second if square is None.

    ``second`` is None for a quadric of rank 1, scale·first².
    """

    scale: Any
    first: Array
    second: Array | None
    square: Any | None

    def linear_factors(self, domain: Domain) -> tuple[Array, Array] | None:
        """Two linear forms over the field with this product, or None if they need √square."""
        if self.second is None:
            return domain.reduce(self.first * self.scale), self.first
        if self.square is None:
            return domain.reduce(self.first * self.scale), self.second
        root = domain.sqrt(self.square)
        if root is None:
            return None
        shift = domain.reduce(self.second * root)
        return domain.reduce(domain.reduce(self.first - shift) * self.scale), domain.reduce(self.first + shift)


def split_quadric(quadric: Array, d: int, domain: Domain) -> SplitQuadric | None:
    """The nonzero quadric as a form of rank at most 2 over the field; None if its rank is 3 or more.

    >>> from attngeom.exact import QQ
    >>> split_quadric(QQ.convert([1, 2, -1]), 2, QQ).square
    2
    >>> split_quadric(QQ.convert([1, 0, 0, 1, 0, 1]), 3, QQ) is None
    True
    """
    B = symmetric_matrix(quadric, d, domain)
    squares: list[tuple[Any, Array]] = []
    while len(squares) < 2 and (diagonal := [index for index in range(d) if B[index, index]]):
        # B − scale·form² does not involve the variable of this index.
        scale = B[diagonal[0], diagonal[0]]
        form = domain.reduce(B[diagonal[0]] * domain.invert(scale))
        squares.append((scale, form))
        B = domain.reduce(B - domain.reduce(form * scale)[:, None] * form)
    if not squares:
        return _split_without_squares(quadric, B, domain)
    if not domain.is_zero(B):
        return None
    (scale, first), *rest = squares
    if not rest:
        return SplitQuadric(scale, first, None, None)
    ((second_scale, second),) = rest
    return SplitQuadric(scale, first, second, domain.reduce(-second_scale * domain.invert(scale)))


def _split_without_squares(quadric: Array, B: Array, domain: Domain) -> SplitQuadric | None:
    """A form without diagonal terms is of rank 2 only if it is a product of two forms over the field."""
    d = B.shape[0]
    k, l = pair_rows(d)
    position = domain.pivot(quadric)
    row, column = int(k[position]), int(l[position])
    scale = quadric[position]
    inverse = domain.invert(scale)
    second = domain.reduce(domain.reduce(2 * B[row]) * inverse)
    first = domain.reduce(domain.reduce(2 * B[column]) * inverse)
    product = multiply_forms(domain.reduce(first * scale), second, domain)
    return SplitQuadric(scale, first, second, None) if domain.equal(product, quadric) else None


def discriminant(quadric: Array, d: int) -> int:
    """A small integer D such that a rational quadric of rank 2 splits over Q(√D).

    The discriminants q_kl² − 4 q_kk q_ll of the primitive integer multiple are D times squares, so D divides their
    greatest common divisor. Square factors are then removed: all of them below 2^63, above that those from primes
    below 2^15, because factoring could take too long.

    >>> from attngeom.exact import QQ
    >>> discriminant(QQ.convert(["1/3", 0, "-8/3"]), 2)
    2
    """
    denominator = lcm(*(int(x.q) for x in quadric))
    entries = [int(x * denominator) for x in quadric]
    content = gcd(*entries)
    q = np.array([x // content for x in entries], dtype=object)[pair_index(d)]
    k, l = pair_rows(d)
    values = [x for x in (q[k, l] ** 2 - 4 * q[k, k] * q[l, l])[k != l] if x]
    D = gcd(*values) * (1 if values[0] > 0 else -1)
    for prime, exponent in fmpz(abs(D)).factor_smooth(15) if abs(D) >= 2**63 else fmpz(abs(D)).factor():
        D //= int(prime) ** (exponent - exponent % 2)
    return D
