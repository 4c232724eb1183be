"""Numbers: the primes in use; rationals from whatever users and files hold, over one denominator; scaled floats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from flint import fmpq, fmpq_mat, fmpz, fmpz_mat, nmod_mat
from flint.utils.flint_exceptions import DomainError as NotExactError

from attngeom.errors import InputError
from attngeom.exact.arrays import Array, from_flint
from attngeom.limits.sizes import NUMBER_DIGITS
from attngeom.limits.trials import PRIMES_TRIED

T = TypeVar("T")

SMALL_PRIME = 251
"""Largest prime below 2^8: 1,000 balanced products stay below 2^24, so float32 BLAS is exact, twice as fast."""

BLAS_PRIME = 8388593
"""Largest prime below 2^23: blocks of 512 balanced products stay below 2^53, so float64 BLAS is exact."""

WORD_PRIME = 2147483629
"""Largest prime below 2^31 - 1: products of two residues fit in int64."""

BIG_PRIME = 2305843009213693951
"""2^61 - 1: for identity tests whose error probability must be tiny."""


@lru_cache(maxsize=1024, typed=True)
def check_prime(p: int) -> int:
    """Return p if it is a prime below 2^63.

    >>> check_prime(7)
    7
    """
    if isinstance(p, bool) or not isinstance(p, int) or not 2 <= p < 2**63 or not fmpz(p).is_prime():
        raise InputError(f"modulus {p!r} given; a prime between 2 and 2^63 is required")
    return p


def primes_from(p: int) -> Iterator[int]:
    """The primes p, p', p'', … in decreasing order, starting with the largest one that is at most p.

    >>> list(primes_from(10))
    [7, 5, 3, 2]
    """
    for candidate in range(p, 1, -1):
        if fmpz(candidate).is_prime():
            yield candidate


def modulo_some_prime(convert: Callable[[int], T], first: int) -> tuple[int, T]:
    """(p, convert(p)) for the first prime from ``first`` down that divides no denominator of what is converted.

    >>> from attngeom.exact import GF
    >>> modulo_some_prime(lambda p: GF(p).convert(["1/7"]).tolist(), 7)
    (5, [3])
    """
    for p in islice(primes_from(first), PRIMES_TRIED):
        try:
            return p, convert(p)
        except InputError:
            continue
    raise InputError("numbers with denominators divisible by many primes given; simplify them")


def as_fmpq(x: Any) -> fmpq:
    """The rational number x, exactly: an int, Fraction, fmpq, float or string such as ``"-3/7"``.

    >>> as_fmpq("1/2") + as_fmpq(0.25)
    3/4
    """
    if isinstance(x, fmpq):
        return x
    if isinstance(x, (bool, np.bool_)):
        raise InputError(f"entry {x!r} given; a rational number is required")
    if isinstance(x, (int, fmpz)):
        return fmpq(x)
    if isinstance(x, (float, np.floating)):
        if not np.isfinite(x):
            raise InputError(f"entry {x!r} given; finite numbers are required")
        return fmpq(*float(x).as_integer_ratio())
    if isinstance(x, (np.integer, Fraction)):
        return fmpq(int(x.numerator), int(x.denominator))
    if isinstance(x, str):
        return _parse_fmpq(x)
    raise InputError(f"entry of type {type(x).__name__} given; a rational number is required")


_FRACTION = re.compile(r"([+-]?[0-9]+)(?:/([0-9]+))?")
# The exponent is bounded so that a short hostile string cannot stand for a huge number.
_DECIMAL = re.compile(r"([+-]?(?=\.?[0-9])[0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,4}))?")


def _parse_fmpq(text: str) -> fmpq:
    text = text.strip()
    if len(text) <= NUMBER_DIGITS:
        if match := _FRACTION.fullmatch(text):
            numerator, denominator = fmpz(match[1].lstrip("+")), fmpz(match[2] or 1)
            if denominator != 0:
                return fmpq(numerator, denominator)
        elif match := _DECIMAL.fullmatch(text):
            digits, places = match[1].lstrip("+") + match[2], int(match[3] or 0) - len(match[2])
            return fmpz(digits) * fmpq(10) ** places
    raise InputError(f'entry {text[:40]!r} given; a rational number such as "-3/7" is required')


THIRD_ROOT = 2.0 ** (-2 / 3)


def split_scale(array: Array) -> tuple[Array, int]:
    """(m, e) with array = m · 2^e exactly up to underflow, the largest |m| in [1/2, 1); e = 0 for the zero array.

    >>> split_scale(np.array([6.0, -1.0]))
    (array([ 0.75 , -0.125]), 3)
    """
    largest = float(np.max(np.abs(array), initial=0.0))
    exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) else 0
    return join_scale(array, -exponent), exponent


def near_exponents(array: Array) -> Array:
    """For each entry the e with 2^(e − 2/3) ≤ |a| < 2^(e + 1/3), 0 for zeros.

    The ends are third roots, so that powers of two, their square roots and what rounding makes of these have one e.

    >>> near_exponents(np.array([1.0, 1 - 2**-53, 0.75, -4.0])).tolist()
    [0, 0, 0, 2]
    """
    mantissas, exponents = np.frexp(array)
    return np.asarray(exponents - ((mantissas != 0) & (np.abs(mantissas) < THIRD_ROOT)))


def join_scale(array: Array, exponent: int) -> Array:
    """array · 2^exponent; the power itself may leave the range of floats.

    >>> join_scale(np.array([0.5]), 2).item()
    2.0
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(array, exponent))


@dataclass(frozen=True, eq=False)
class ClearedMatrix:
    """The rational matrix N/d; products are several times faster than over Q, because no entry is reduced.

    >>> from attngeom.exact import QQ
    >>> half = QQ.clear(QQ.convert([["1/2", 0], [0, "1/2"]]))
    >>> (half * half).to_array()[0, 0], half.equals(half * half)
    (1/4, False)
    """

    matrix: fmpz_mat
    denominator: fmpz

    def __mul__(self, other: ClearedMatrix) -> ClearedMatrix:
        return ClearedMatrix(self.matrix * other.matrix, self.denominator * other.denominator)

    def __add__(self, other: ClearedMatrix) -> ClearedMatrix:
        matrix = self.matrix * other.denominator + other.matrix * self.denominator
        return ClearedMatrix(matrix, self.denominator * other.denominator)

    def scaled(self, factor: fmpq) -> ClearedMatrix:
        return self if factor == 1 else ClearedMatrix(self.matrix * factor.p, self.denominator * factor.q)

    def transpose(self) -> ClearedMatrix:
        return ClearedMatrix(self.matrix.transpose(), self.denominator)

    def equals(self, other: ClearedMatrix) -> bool:
        if self.denominator == other.denominator:
            return bool(self.matrix == other.matrix)
        return bool(self.matrix * other.denominator == other.matrix * self.denominator)

    def reduced(self) -> ClearedMatrix:
        """The same matrix over its least denominator.

        What cancels divides every combination of the rows; one of them mostly tells, and division says whether it did.
        """
        common, rows = self.denominator, self.matrix.nrows()
        for part in (fmpz_mat(1, rows, range(1, rows + 1)) * self.matrix, self.matrix):
            for x in part.entries() if common != 1 else ():
                common = common.gcd(x)
            try:
                return self if common == 1 else ClearedMatrix(self.matrix / common, self.denominator // common)
            except NotExactError:
                continue
        raise AssertionError("a common divisor divides")

    def to_array(self) -> Array:
        """The matrix over QQ, entry by entry in lowest terms."""
        matrix = fmpq_mat(self.matrix)
        return from_flint(matrix if self.denominator == 1 else matrix / self.denominator)

    def residues(self, p: int) -> nmod_mat:
        """The matrix modulo a prime that does not divide its denominator."""
        if self.denominator % p == 0:
            raise InputError(f"a denominator divisible by {p} given; another prime is required")
        residues = nmod_mat(self.matrix, p)
        return residues if self.denominator == 1 else residues * pow(int(self.denominator), -1, p)

    def is_invertible(self) -> bool:
        """Whether the determinant is nonzero; a nonzero residue proves it faster."""
        return bool(int(nmod_mat(self.matrix, WORD_PRIME).det()) or self.matrix.det() != 0)

    def solve_left(self, right: ClearedMatrix) -> ClearedMatrix | None:
        """The X with X · self = right for a square matrix; None if it is singular.

        >>> from attngeom.exact import QQ
        >>> QQ.clear(QQ.convert([[2, 1], [0, 1]])).solve_left(QQ.clear(QQ.convert([[1, 1]]))).to_array().tolist()
        [[1/2, 1/2]]
        """
        try:
            transposed: Any = self.matrix.transpose().solve(right.matrix.transpose())
        except ZeroDivisionError:
            return None
        solved = ClearedMatrix(*transposed.transpose().numer_denom())
        return solved.scaled(fmpq(self.denominator, right.denominator))
