"""Number fields Q(θ) as domains: linear algebra runs over Q, through the matrices of multiplication."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from flint import fmpq, fmpq_poly, fmpz

from attngeom.errors import DomainError, InputError, SingularError
from attngeom.exact.arrays import Array, broadcast_product, check_matrix, check_square, elementwise
from attngeom.exact.domains.domain import Domain, no_inverse, singular
from attngeom.exact.domains.rationals import QQ
from attngeom.exact.modular import Echelon
from attngeom.exact.numbers import as_fmpq


@dataclass(frozen=True, slots=True, eq=False)
class AlgebraicNumber:
    """A number of a field Q(θ) of degree k, as a polynomial in θ of degree below k."""

    residue: fmpq_poly
    field: ExtensionField

    @property
    def coefficients(self) -> tuple[fmpq, ...]:
        """Those of 1, θ, …, θ^(k−1)."""
        return tuple(self.residue[power] for power in range(self.field.degree))

    def _new(self, residue: fmpq_poly) -> Self:
        return type(self)(residue, self.field)

    def _coerce(self, other: Any) -> Any:
        """The other number as one of this field; None if it is no number."""
        if isinstance(other, AlgebraicNumber):
            if other.field is not self.field and other.field != self.field:
                raise DomainError(f"numbers of {self.field.label} and {other.field.label} given; one field is required")
            return other
        if isinstance(other, (int, fmpz, fmpq, Fraction, np.integer)) and not isinstance(other, bool):
            return self.field.element(other)
        return None

    def __add__(self, other: Any) -> Any:
        y = self._coerce(other)
        return NotImplemented if y is None else self._new(self.residue + y.residue)

    def __neg__(self) -> Self:
        return self._new(-self.residue)

    def __sub__(self, other: Any) -> Any:
        y = self._coerce(other)
        return NotImplemented if y is None else self + (-y)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        y = self._coerce(other)
        return NotImplemented if y is None else self._new(self.residue * y.residue % self.field.polynomial)

    __radd__ = __add__
    __rmul__ = __mul__

    def inverse(self) -> Self:
        """1/x for x ≠ 0."""
        if not self:
            raise ZeroDivisionError("inverse of zero")
        return self._new(self.residue.xgcd(self.field.polynomial)[1])

    def __truediv__(self, other: Any) -> Any:
        y = self._coerce(other)
        return NotImplemented if y is None else self * y.inverse()

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def __pow__(self, exponent: int) -> Self:
        base = self if exponent >= 0 else self.inverse()
        return self._new(base.residue ** abs(exponent) % self.field.polynomial)

    @property
    def is_rational(self) -> bool:
        return bool(self.residue.degree() < 1)

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, AlgebraicNumber) and other.field != self.field:
            return self.is_rational and bool(self.residue == other.residue)
        y = self._coerce(other)
        return NotImplemented if y is None else bool(self.residue == y.residue)

    def __hash__(self) -> int:
        return hash(self.residue[0]) if self.is_rational else hash((self.coefficients, self.field))

    def __bool__(self) -> bool:
        return bool(self.residue)


class ExtensionField(Domain):
    """Q[θ]/(f) for a monic irreducible f of degree k; entries are of the class ``number``.

    A matrix a over it acts on Q^k-vectors: :meth:`to_rational` is multiplicative, its rank is k times the rank of a,
    and blocks of 1 are identities, so the reduced echelon form of the image is the image of the reduced echelon form.
    """

    is_exact: ClassVar[bool] = True
    number: ClassVar[type[AlgebraicNumber]]

    @abstractmethod
    def minimal_polynomial(self) -> tuple[fmpq, ...]:
        """The coefficients of f from the constant one up, the last one 1."""

    @cached_property
    def polynomial(self) -> fmpq_poly:
        """f."""
        return fmpq_poly(list(self.minimal_polynomial()))

    def element(self, *coefficients: Any) -> Any:
        """The number with these rational coefficients of 1, θ, θ², …; those left out are zero."""
        return self.number(fmpq_poly([as_fmpq(c) for c in coefficients]), self)

    def parse(self, text: str) -> Any:
        """The number that a text stands for."""
        return self.element(text)

    def entry(self, x: Any) -> Any:
        """The number x of this field."""
        if not isinstance(x, AlgebraicNumber):
            return self.parse(x) if isinstance(x, str) else self.element(x)
        if x.field != self:
            raise InputError(f"entry {str(x)[:40]} given; an element of {self.label} is required")
        return x

    @property
    def degree(self) -> int:
        return int(self.polynomial.degree())

    def parts(self, array: Array) -> tuple[Array, ...]:
        """The rational arrays of the coefficients of 1, θ, θ², …"""
        residues = [x.residue for x in array.ravel().tolist()]
        flat = [[residue[power] for residue in residues] for power in range(self.degree)]
        return tuple(np.array(part, dtype=object).reshape(array.shape) for part in flat)

    def sort_key(self, x: Any) -> Any:
        return str(x)

    def combine(self, *parts: Array) -> Array:
        """The array with these rational coefficients."""
        numbers = (self.number(fmpq_poly(list(x)), self) for x in zip(*(part.ravel() for part in parts)))
        return np.fromiter(numbers, dtype=object, count=parts[0].size).reshape(parts[0].shape)

    def convert(self, data: Any) -> Array:
        return elementwise(self.entry, data)

    def invert(self, a: Any) -> Any:
        try:
            return np.frompyfunc(lambda x: self.entry(x).inverse(), 1, 1)(a)
        except ZeroDivisionError:
            raise no_inverse() from None

    def to_rational(self, a: Array) -> Array:
        """The km×kn rational matrix of multiplication by a: a_ij θ^c is column c of block (i, j)."""
        k = self.degree
        out = np.empty((k * a.shape[0], k * a.shape[1]), dtype=object)
        parts = self.parts(a)
        for c in range(k):
            for r in range(k):
                out[r::k, c::k] = parts[r]
            # Times θ: θ^k is the combination of lower powers that the minimal polynomial says.
            *low, high = parts
            parts = tuple(x - p * high for x, p in zip((QQ.zeros(high.shape), *low), self.minimal_polynomial()))
        return out

    def from_rational(self, a: Array) -> Array:
        """The matrix whose image under :meth:`to_rational` is a."""
        k = self.degree
        return self.combine(*(a[r::k, ::k] for r in range(k)))

    def matmul(self, a: Array, b: Array) -> Array:
        def multiply(x: Array, y: Array) -> Array:
            k = self.degree
            columns = np.stack(self.parts(y), axis=1).reshape(k * y.shape[0], y.shape[1])
            product = QQ.matmul(self.to_rational(x), columns)
            return self.combine(*(product[r::k] for r in range(k)))

        return broadcast_product(multiply, a, b)

    def inverse(self, a: Array) -> Array:
        check_square(a)
        try:
            return self.from_rational(QQ.inverse(self.to_rational(a)))
        except SingularError:
            raise singular(a) from None

    def rank(self, a: Array) -> int:
        check_matrix(a)
        return QQ.rank(self.to_rational(a)) // self.degree

    def rref(self, a: Array) -> Echelon:
        check_matrix(a)
        k = self.degree
        image = QQ.rref(self.to_rational(a))
        return Echelon(self.from_rational(image.matrix), tuple(j // k for j in image.pivots[::k]))

    def _large_det(self, a: Array) -> Any:
        """Elimination with the operators of the entries."""
        a = a.copy()
        result = self.one
        for k in range(len(a)):
            pivot = next((i for i in range(k, len(a)) if a[i, k]), None)
            if pivot is None:
                return self.zero
            if pivot != k:
                a[[k, pivot]] = a[[pivot, k]]
                result = -result
            result = result * a[k, k]
            factors = a[k + 1 :, k] / a[k, k]
            a[k + 1 :, k:] = a[k + 1 :, k:] - factors[:, None] * a[k, k:]
        return result

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Numbers with integer coefficients in [-9, 9]."""
        return self.combine(*(QQ.random(shape, rng) for _ in range(self.degree)))
