"""Rational matrices as integer matrices over one denominator, so that all arithmetic runs inside FLINT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from flint import fmpq, fmpq_mat, fmpz, fmpz_mat, nmod_mat

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import Array, Rationals
from attngeom.exact.primes import WORD_PRIME
from attngeom.network import Weights


@dataclass(frozen=True, eq=False)
class Integral:
    """The rational matrix N/d; products are several times faster than over Q, because no entry is reduced.

    >>> from attngeom.exact.domains import QQ
    >>> half = Integral.of(QQ.convert([["1/2", 0], [0, "1/2"]]))
    >>> (half * half).array()[0, 0], half.equals(half * half)
    (1/4, False)
    """

    matrix: fmpz_mat
    denominator: fmpz

    @classmethod
    def of(cls, array: Array) -> Integral:
        return cls(*fmpq_mat(array.tolist()).numer_denom())

    def __mul__(self, other: Integral) -> Integral:
        return Integral(self.matrix * other.matrix, self.denominator * other.denominator)

    def __add__(self, other: Integral) -> Integral:
        matrix = self.matrix * other.denominator + other.matrix * self.denominator
        return Integral(matrix, self.denominator * other.denominator)

    def scaled(self, factor: fmpq) -> Integral:
        return self if factor == 1 else Integral(self.matrix * factor.p, self.denominator * factor.q)

    def transpose(self) -> Integral:
        return Integral(self.matrix.transpose(), self.denominator)

    def equals(self, other: Integral) -> bool:
        if self.denominator == other.denominator:
            return bool(self.matrix == other.matrix)
        return bool(self.matrix * other.denominator == other.matrix * self.denominator)

    def rationals(self) -> fmpq_mat:
        """The matrix over Q, entry by entry in lowest terms."""
        matrix = fmpq_mat(self.matrix)
        return matrix if self.denominator == 1 else matrix / self.denominator

    def reduced(self) -> Integral:
        """The same matrix over its least denominator."""
        return self if self.denominator == 1 else Integral(*self.rationals().numer_denom())

    def array(self) -> Array:
        """The matrix over QQ."""
        entries = np.fromiter(self.rationals().entries(), dtype=object)
        return entries.reshape(self.matrix.nrows(), self.matrix.ncols())

    def residues(self, p: int) -> nmod_mat:
        """The matrix modulo a prime that does not divide its denominator."""
        if self.denominator % p == 0:
            raise InputError(f"a denominator divisible by {p} given; another prime is required")
        residues = nmod_mat(self.matrix, p)
        return residues if self.denominator == 1 else residues * pow(int(self.denominator), -1, p)

    def is_invertible(self) -> bool:
        """Whether the determinant is nonzero; a nonzero residue proves it faster."""
        return bool(int(nmod_mat(self.matrix, WORD_PRIME).det()) or self.matrix.det() != 0)

    def solve_left(self, right: Integral) -> Integral | None:
        """The X with X · self = right for a square matrix; None if it is singular.

        >>> from attngeom.exact.domains import QQ
        >>> Integral.of(QQ.convert([[2, 1], [0, 1]])).solve_left(Integral.of(QQ.convert([[1, 1]]))).array().tolist()
        [[1/2, 1/2]]
        """
        try:
            transposed: Any = self.matrix.transpose().solve(right.matrix.transpose())
        except ZeroDivisionError:
            return None
        solved = Integral(*transposed.transpose().numer_denom())
        return solved.scaled(fmpq(self.denominator, right.denominator))


class IntegralHead(NamedTuple):
    """The matrices of one head."""

    Q: Integral
    K: Integral
    V: Integral
    O: Integral | None = None

    def values(self) -> Integral:
        """The d_out×d_in value map: V, or O V."""
        return self.V if self.O is None else (self.O * self.V).reduced()


_LAYERS: WeakKeyDictionary[Weights, tuple[tuple[IntegralHead, ...], ...]] = WeakKeyDictionary()


def integral_layers(weights: Weights) -> tuple[tuple[IntegralHead, ...], ...]:
    """All heads of rational weights as integer matrices; converted once while the weights live."""
    if not isinstance(weights.domain, Rationals):
        raise DomainError(f"weights over {weights.domain.name} given; rational weights are required")
    if weights not in _LAYERS:
        _LAYERS[weights] = tuple(
            tuple(IntegralHead(*(Integral.of(array) for array in head.tensors.values())) for head in heads)
            for heads in weights.layers
        )
    return _LAYERS[weights]
