"""Coefficient domains: one interface for arrays over Q, GF(p), float64 and real balls.

An array over a domain is a NumPy array: object dtype with ``fmpq`` or ``arb`` entries over Q and balls,
float64 over the reals, int64 residues in [0, p) over GF(p) with p < 2^31, Python integers for larger p.
``+``, ``-`` and ``*`` of arrays are NumPy's, followed by :meth:`Domain.reduce`; products of matrices,
inverses and random arrays are methods. Code written against this interface runs unchanged over every domain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import flint
import numpy as np
from flint import arb, arb_mat, fmpq_mat, nmod, nmod_mat

from attngeom.errors import InputError, SingularError
from attngeom.exact.numbers import as_fmpq
from attngeom.exact.primes import check_prime
from attngeom.exact.products import matmul_mod

__all__ = [
    "GF",
    "QQ",
    "RR",
    "Array",
    "Balls",
    "Domain",
    "Floats",
    "PrimeField",
    "Rationals",
    "as_fmpq",
    "matmul_mod",
]

Array = np.ndarray


def elementwise(convert: Callable[[Any], Any], data: Any) -> Array:
    """Apply ``convert`` to every entry of nested lists or an array; the result has object dtype."""
    try:
        array = np.asarray(data, dtype=object)
    except ValueError:
        raise InputError("ragged array given; rows of equal length are required") from None
    flat = np.empty(array.size, dtype=object)
    for index, entry in enumerate(array.ravel()):
        if isinstance(entry, (list, tuple)):
            raise InputError("ragged array given; rows of equal length are required")
        flat[index] = convert(entry)
    return flat.reshape(array.shape)


class Domain(ABC):
    """A commutative ring with the array operations that networks need. See the module docstring."""

    name: ClassVar[str]
    is_exact: ClassVar[bool]

    @abstractmethod
    def array(self, data: Any) -> Array:
        """Coerce nested lists or an array over any domain, exactly where this domain is exact."""

    @abstractmethod
    def matmul(self, a: Array, b: Array) -> Array:
        """Matrix product over the last two axes, broadcast over the leading ones."""

    @abstractmethod
    def inverse(self, a: Array) -> Array:
        """The inverse of one square matrix; SingularError if there is none (or none can be certified)."""

    @abstractmethod
    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Random entries: uniform over GF(p), normal floats, integers in [-9, 9] over Q and balls."""

    @abstractmethod
    def is_zero(self, a: Array) -> bool:
        """Whether every entry is zero. Over balls: certainly zero."""

    def reduce(self, a: Array) -> Array:
        """Canonical representatives after ``+``, ``-`` and ``*``."""
        return a

    def times(self, a: Any, b: Any) -> Any:
        """The product entry by entry, broadcast; of two numbers, a number."""
        return self.reduce(a * b)

    def invert(self, a: Any) -> Any:
        """1/a entry by entry, for domains whose entries divide."""
        return 1 / a

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return self.array(np.zeros(shape, dtype=np.int64))

    def eye(self, n: int) -> Array:
        return self.array(np.eye(n, dtype=np.int64))

    def equal(self, a: Array, b: Array) -> bool:
        """Whether a and b have the same shape and the same entries."""
        return a.shape == b.shape and self.is_zero(self.reduce(a - b))

    def format(self, entry: Any) -> str | float:
        """The entry as a JSON value: exact numbers as strings, floats as numbers."""
        return str(entry)

    def random_invertible(self, n: int, rng: np.random.Generator) -> Array:
        """A random invertible n×n matrix, by rejection."""
        while True:
            candidate = self.random((n, n), rng)
            try:
                self.inverse(candidate)
            except SingularError:
                continue
            return candidate

    @contextmanager
    def working(self) -> Iterator[None]:
        """Set up whatever global state the arithmetic needs (the precision of balls)."""
        yield


def _check_square(a: Array) -> None:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise InputError(f"array of shape {a.shape} given; a square matrix is required")


def _batched(multiply: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Apply a product of two matrices over broadcast leading axes."""
    if a.shape[-1] != b.shape[-2]:
        raise InputError(f"matrices of shapes {a.shape} and {b.shape} given; inner sizes must agree")
    if a.ndim == b.ndim == 2:
        return multiply(a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, batch + a.shape[-2:])
    b = np.broadcast_to(b, batch + b.shape[-2:])
    out = np.empty((*batch, a.shape[-2], b.shape[-1]), dtype=object)
    for index in np.ndindex(*batch):
        out[index] = multiply(a[index], b[index])
    return out


def _object_matrix(matrix: Any, shape: tuple[int, int], convert: Callable[[Any], Any] | None = None) -> Array:
    """The entries of a FLINT matrix as an object array."""
    out = np.empty(shape[0] * shape[1], dtype=object)
    entries = matrix.entries()
    out[:] = entries if convert is None else [convert(x) for x in entries]
    return out.reshape(shape)


@dataclass(frozen=True)
class Rationals(Domain):
    """The field Q; entries are ``fmpq``.

    >>> QQ.inverse(QQ.array([[1, 2], [3, 4]]))[0, 0]
    -2
    """

    name: ClassVar[str] = "QQ"
    is_exact: ClassVar[bool] = True

    def array(self, data: Any) -> Array:
        return elementwise(as_fmpq, data)

    def to_flint(self, a: Array) -> fmpq_mat:
        return fmpq_mat(a.shape[0], a.shape[1], a.ravel().tolist())

    def matmul(self, a: Array, b: Array) -> Array:
        def multiply(x: Array, y: Array) -> Array:
            return _object_matrix(self.to_flint(x) * self.to_flint(y), (x.shape[0], y.shape[1]))

        return _batched(multiply, a, b)

    def inverse(self, a: Array) -> Array:
        _check_square(a)
        try:
            return _object_matrix(self.to_flint(a).inv(), a.shape)
        except ZeroDivisionError:
            raise SingularError(f"singular {a.shape[0]}×{a.shape[1]} matrix; an invertible one is required") from None

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.array(rng.integers(-9, 10, size=shape))

    def is_zero(self, a: Array) -> bool:
        return all(x == 0 for x in a.ravel())


@dataclass(frozen=True)
class PrimeField(Domain):
    """The field GF(p); entries are residues in [0, p).

    >>> GF(7).inverse(GF(7).array([[3]])).tolist()
    [[5]]
    """

    p: int
    name: ClassVar[str] = "GF"
    is_exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_prime(self.p)

    @property
    def fits_word(self) -> bool:
        """Whether residues are stored as int64, so that products of two do not overflow."""
        return self.p < 2**31

    def _residue(self, x: Any) -> int:
        q = as_fmpq(x)
        if int(q.q) % self.p == 0:
            raise InputError(f"entry {q} given; its denominator must be invertible mod {self.p}")
        return int(nmod(int(q.p), self.p) / nmod(int(q.q), self.p))

    def array(self, data: Any) -> Array:
        if isinstance(data, np.ndarray) and np.issubdtype(data.dtype, np.integer):
            return np.mod(data.astype(np.int64), self.p) if self.fits_word else data.astype(object) % self.p
        residues = elementwise(self._residue, data)
        return residues.astype(np.int64) if self.fits_word else residues

    def reduce(self, a: Array) -> Array:
        return a % self.p

    def to_flint(self, a: Array) -> nmod_mat:
        return nmod_mat(a.shape[0], a.shape[1], a.ravel().tolist(), self.p)

    def matmul(self, a: Array, b: Array) -> Array:
        if self.fits_word:
            return matmul_mod(a, b, self.p)

        def multiply(x: Array, y: Array) -> Array:
            return _object_matrix(self.to_flint(x) * self.to_flint(y), (x.shape[0], y.shape[1]), int)

        return _batched(multiply, a, b)

    def inverse(self, a: Array) -> Array:
        _check_square(a)
        try:
            inverse = self.to_flint(a).inv()
        except ZeroDivisionError:
            raise SingularError(f"singular {a.shape[0]}×{a.shape[1]} matrix; an invertible one is required") from None
        out = _object_matrix(inverse, a.shape, int)
        return out.astype(np.int64) if self.fits_word else out

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.array(rng.integers(0, self.p, size=shape))

    def is_zero(self, a: Array) -> bool:
        return not np.any(self.reduce(a))


@dataclass(frozen=True)
class Floats(Domain):
    """Double precision numbers: fast, never a proof.

    >>> float(RR.array([["1/2"]])[0, 0])
    0.5
    """

    name: ClassVar[str] = "RR"
    is_exact: ClassVar[bool] = False

    def array(self, data: Any) -> Array:
        if isinstance(data, np.ndarray) and data.dtype.kind in "iuf":
            array = data.astype(np.float64)
        else:
            array = elementwise(_as_float, data).astype(np.float64)
        if not np.all(np.isfinite(array)):
            raise InputError("array with NaN or infinite entries given; finite numbers are required")
        return array

    def matmul(self, a: Array, b: Array) -> Array:
        if a.shape[-1] != b.shape[-2]:
            raise InputError(f"matrices of shapes {a.shape} and {b.shape} given; inner sizes must agree")
        return np.matmul(a, b)

    def inverse(self, a: Array) -> Array:
        _check_square(a)
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            raise SingularError(f"singular {a.shape[0]}×{a.shape[1]} matrix; an invertible one is required") from None

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.standard_normal(shape)

    def is_zero(self, a: Array) -> bool:
        return not np.any(a)

    def format(self, entry: Any) -> float:
        return float(entry)


def _as_float(x: Any) -> float:
    if isinstance(x, arb):
        return float(x.mid())
    return float(as_fmpq(x))


@dataclass(frozen=True)
class Balls(Domain):
    """Real balls (midpoint and radius): every operation encloses the true value.

    >>> bool(Balls(64).matmul(Balls(64).array([["1/3"]]), Balls(64).array([[3]]))[0, 0].contains(1))
    True
    """

    precision: int = 128
    name: ClassVar[str] = "balls"
    is_exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 2 <= self.precision <= 2**20:
            raise InputError(f"precision {self.precision} given; between 2 and 2^20 bits are required")

    @contextmanager
    def working(self) -> Iterator[None]:
        before = flint.ctx.prec
        flint.ctx.prec = self.precision
        try:
            yield
        finally:
            flint.ctx.prec = before

    def array(self, data: Any) -> Array:
        with self.working():
            return elementwise(lambda x: x if isinstance(x, arb) else arb(as_fmpq(x)), data)

    def to_flint(self, a: Array) -> arb_mat:
        return arb_mat(a.shape[0], a.shape[1], a.ravel().tolist())

    def matmul(self, a: Array, b: Array) -> Array:
        def multiply(x: Array, y: Array) -> Array:
            return _object_matrix(self.to_flint(x) * self.to_flint(y), (x.shape[0], y.shape[1]))

        with self.working():
            return _batched(multiply, a, b)

    def inverse(self, a: Array) -> Array:
        _check_square(a)
        with self.working():
            try:
                return _object_matrix(self.to_flint(a).inv(), a.shape)
            except ZeroDivisionError:
                raise SingularError(
                    f"{a.shape[0]}×{a.shape[1]} matrix of balls not certainly invertible; raise the precision"
                ) from None

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self.array(rng.integers(-9, 10, size=shape))

    def is_zero(self, a: Array) -> bool:
        return all(x.is_zero() for x in a.ravel())

    def equal(self, a: Array, b: Array) -> bool:
        """Whether all balls of a and b overlap: False proves a difference, True does not prove equality."""
        return a.shape == b.shape and all(x.overlaps(y) for x, y in zip(a.ravel(), b.ravel()))


QQ = Rationals()
RR = Floats()


def GF(p: int) -> PrimeField:
    """The prime field with p elements.

    >>> GF(5).array([["1/2", -1]]).tolist()
    [[3, 4]]
    """
    return PrimeField(p)
