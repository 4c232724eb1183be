"""The domains in which programs run: floats, exact rationals, and GF(p) with functions that respect all identities.

Values carry a leading axis, of length 1 or of the number of samples. An entry that does not exist at a point (a root
of a nonresidue, the inverse of 0) is NaN, and so is everything that is computed from it: what is left is honest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
import scipy  # its parts are loaded when they are first named
from flint import fmpq

from attngeom.errors import DomainError
from attngeom.exact.arrays import Array, elementwise
from attngeom.exact.residues import BalancedResidues
from attngeom.programs.streams import HashedStreams, Streams

CHAIN = (4068479, 2034239, 1017119, 508559, 254279, 127139, 5779)
"""Primes p ≡ 3 mod 4, each of which divides the one before minus 1: exp maps GF(CHAIN[k + 1]) into GF(CHAIN[k])."""
FUNCTIONS = ("exp", "log", "gauss", "sin", "cos")
"""The formal functions: exp, log, the normal distribution function, sine and cosine."""


class Arithmetic(ABC):
    """What operations ask of a domain; arrays are NumPy arrays with a leading axis."""

    @abstractmethod
    def constant(self, entries: Sequence[Fraction], shape: tuple[int, ...]) -> Array:
        """Exact numbers, with a leading axis of length 1."""

    @abstractmethod
    def circle(self, classes: Array, multiples: Array, angles: Sequence[float]) -> tuple[Array, Array]:
        """Cosine and sine of multiples of one angle for each class."""

    @abstractmethod
    def matmul(self, a: Array, b: Array) -> Array:
        """Products of matrices over the last two axes."""

    @abstractmethod
    def reduce(self, a: Array) -> Array:
        """The canonical representatives of sums of products."""

    @abstractmethod
    def times(self, a: Array, b: Array) -> Array:
        """The product entry by entry, broadcast."""

    @abstractmethod
    def invert(self, a: Array) -> Array:
        """1/a entry by entry."""

    @abstractmethod
    def root(self, a: Array) -> Array:
        """√a entry by entry."""

    @abstractmethod
    def function(self, name: str, a: Array, below: Array | None) -> tuple[Array, Array]:
        """A formal function and its derivative at a; ``below`` is the same argument one level down the chain."""

    def leading(self, a: Array) -> Array:
        """Numbers (1 or samples, …) with the leading axis of values of this domain."""
        return a

    def half(self, a: Array) -> Array:
        """a/2."""
        return self.times(a, self.constant([Fraction(1, 2)], ()))

    def contract(self, subscripts: str, a: Array, b: Array | None = None) -> Array:
        """The sum of products that the subscripts say, for each sample; see :meth:`Contract.check` for what is allowed.

        >>> RealArithmetic().contract("ij,j->i", np.ones((1, 2, 3)), np.ones((4, 3))).shape
        (4, 2)
        """
        terms, out = subscripts.split("->")
        if b is None:
            axes = [terms.index(letter) for letter in out]
            rest = [place for place, letter in enumerate(terms) if letter not in out]
            total = a.sum(axis=tuple(1 + place for place in rest)) if rest else a
            kept = sorted(axes)
            return self.reduce(np.transpose(total, (0, *(1 + kept.index(axis) for axis in axes))))
        left, right = terms.split(",")
        batch = [x for x in out if x in left and x in right]
        inner = [x for x in left if x in right and x not in out]
        only_left, only_right = [x for x in out if x not in right], [x for x in out if x not in left]
        sizes = dict(zip(left, a.shape[1:])) | dict(zip(right, b.shape[1:]))
        x = _arrange(a, left, batch, only_left, inner, sizes)
        y = _arrange(b, right, batch, inner, only_right, sizes)
        lead = max(len(a), len(b))
        m, k, n = (prod(sizes[letter] for letter in part) for part in (only_left, inner, only_right))
        groups = prod(sizes[letter] for letter in batch)
        if not inner:
            product = self.times(x, y)
        elif len(b) == 1 < len(a):
            # One matrix for all samples: they are rows of one product.
            rows = x.transpose(1, 0, 2, 3).reshape(groups, lead * m, k)
            product = self.matmul(rows, y[0]).reshape(groups, lead, m, n).transpose(1, 0, 2, 3)
        elif len(a) == 1 < len(b) and n * lead >= m:
            columns = y.transpose(1, 2, 0, 3).reshape(groups, k, lead * n)
            product = self.matmul(x[0], columns).reshape(groups, m, lead, n).transpose(2, 0, 1, 3)
        else:
            product = self.matmul(x, y)
        order = [*batch, *only_left, *only_right]
        result = product.reshape(lead, *(sizes[letter] for letter in order))
        return np.ascontiguousarray(np.transpose(result, (0, *(1 + order.index(letter) for letter in out))))


def _arrange(
    a: Array, letters: str, batch: list[str], rows: list[str], columns: list[str], sizes: dict[str, int]
) -> Array:
    """The operand as (samples, batch, rows, columns)."""
    order = [1 + letters.index(letter) for letter in (*batch, *rows, *columns)]
    shape = [prod(sizes[letter] for letter in part) for part in (batch, rows, columns)]
    return np.transpose(a, (0, *order)).reshape(len(a), *shape)


class RealArithmetic(Arithmetic):
    """Double precision: what the program is compared with its source in, and where signs of regions come from."""

    def constant(self, entries: Sequence[Fraction], shape: tuple[int, ...]) -> Array:
        return np.array([float(x) for x in entries]).reshape(1, *shape)

    def circle(self, classes: Array, multiples: Array, angles: Sequence[float]) -> tuple[Array, Array]:
        angle = np.array(angles)[classes] * multiples
        return np.cos(angle), np.sin(angle)

    def matmul(self, a: Array, b: Array) -> Array:
        return np.asarray(a @ b)

    def reduce(self, a: Array) -> Array:
        return a

    def times(self, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(a * b)

    def invert(self, a: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.where(a == 0, np.nan, 1.0 / np.where(a == 0, 1.0, a))

    def root(self, a: Array) -> Array:
        return np.sqrt(np.where(a < 0, np.nan, a))

    def function(self, name: str, a: Array, below: Array | None) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            if name == "exp":
                value = np.exp(a)
                return value, value
            if name == "log":
                return np.log(np.where(a > 0, a, np.nan)), 1.0 / a
            if name == "gauss":
                return scipy.special.ndtr(a), np.exp(-a * a / 2) / np.sqrt(2 * np.pi)
            return (np.sin(a), np.cos(a)) if name == "sin" else (np.cos(a), -np.sin(a))


class RationalArithmetic(Arithmetic):
    """Exact rationals, one by one: no formal functions, and roots of squares only."""

    def constant(self, entries: Sequence[Fraction], shape: tuple[int, ...]) -> Array:
        return elementwise(lambda x: fmpq(x.numerator, x.denominator), list(entries)).reshape(1, *shape)

    def circle(self, classes: Array, multiples: Array, angles: Sequence[float]) -> tuple[Array, Array]:
        raise DomainError("cosine of an angle over Q was asked for; floats or GF(p) are required")

    def matmul(self, a: Array, b: Array) -> Array:
        return np.asarray(a @ b)

    def reduce(self, a: Array) -> Array:
        return a

    def times(self, a: Array, b: Array) -> Array:
        return np.asarray(a * b)

    def invert(self, a: Array) -> Array:
        if not all(a.ravel().tolist()):
            raise DomainError("the inverse of 0 over Q was asked for; another point is required")
        return elementwise(lambda x: 1 / x, a)

    def root(self, a: Array) -> Array:
        def one(x: fmpq) -> fmpq:
            if x < 0 or not (x.p.is_square() and x.q.is_square()):
                raise DomainError("the root of a number that is no square over Q was asked for; use floats or GF(p)")
            return fmpq(x.p.isqrt(), x.q.isqrt())

        return elementwise(one, a)

    def function(self, name: str, a: Array, below: Array | None) -> tuple[Array, Array]:
        raise DomainError(f"{name} over Q was asked for; floats or GF(p) are required")


class ModularArithmetic(Arithmetic):
    """GF(p) at level ``level`` of the chain, in float64 BLAS, exact; ``name`` is the point, on which functions depend.

    exp(y) = g^(y mod q) mod p, where q is the next prime of the chain, g has order q, and y mod q is the same argument
    of the same program over GF(q): a homomorphism, so every identity between exponentials holds. Below the chain, and
    for log, the normal distribution and sine and cosine, values are a random function of the residue.
    """

    def __init__(self, level: int, name: str, streams: Streams | None = None) -> None:
        self.p = CHAIN[level]
        self.level, self.streams = level, HashedStreams(name) if streams is None else streams
        self.below = CHAIN[level + 1] if level + 1 < len(CHAIN) else None
        self.field = BalancedResidues(self.p)

    def balanced(self, residues: Array) -> Array:
        """Balanced residues of int64 residues in [0, p)."""
        return self.field.from_residues(residues)

    def constant(self, entries: Sequence[Fraction], shape: tuple[int, ...]) -> Array:
        p = self.p
        residues = [
            x.numerator * pow(x.denominator, -1, p) % p if x.denominator % p else None for x in map(Fraction, entries)
        ]
        if None in residues:
            raise DomainError(f"a constant whose denominator is divisible by {p} cannot be read mod {p}")
        return self.balanced(np.array(residues, dtype=np.int64)).reshape(1, *shape)

    def matmul(self, a: Array, b: Array) -> Array:
        return self.field.multiply(a, b)

    def reduce(self, a: Array) -> Array:
        return self.field.balance(np.array(a, dtype=np.float64))

    def times(self, a: Array, b: Array) -> Array:
        return np.asarray(self.field.times(a, b))

    def power(self, a: Array, exponent: int) -> Array:
        """a^exponent entry by entry."""
        result = np.ones_like(a)
        for bit in bin(exponent)[2:]:
            result = self.times(result, result)
            if bit == "1":
                result = self.times(result, a)
        return result

    def invert(self, a: Array) -> Array:
        return np.where(a == 0, np.nan, self.power(a, self.p - 2))

    def root(self, a: Array) -> Array:
        root = self.power(a, (self.p + 1) // 4)
        return np.where((self.times(root, root) == a) & (a != 0), root, np.nan)

    def function(self, name: str, a: Array, below: Array | None) -> tuple[Array, Array]:
        if name == "exp":
            value = self._exponential(a, below, 1)
            return value, value
        if name == "log":
            value = self._random("log", a)
            return np.where(a == 0, np.nan, value), self.invert(a)
        if name == "gauss":
            kappa = self._random("kappa", np.zeros((1,)))
            return self._random("gauss", a), self.times(self._exponential(a, below, 2), kappa)
        cos, sin = self._circle_points(self._random("circle", np.abs(a)))
        sin = sin * np.sign(a)
        return (sin, cos) if name == "sin" else (cos, -sin)

    def _random(self, function: str, a: Array) -> Array:
        """A random function of the residues; of what is not there, nothing."""
        missing = np.isnan(a)
        arguments = self.field.to_integers(np.where(missing, 0.0, a))
        known, places = np.unique(arguments, return_inverse=True)
        values = self.streams.function(f"{self.level}/{function}", known, self.p)[places].reshape(arguments.shape)
        return np.where(missing, np.nan, self.balanced(values))

    def _exponential(self, a: Array, below: Array | None, degree: int) -> Array:
        """exp(a), or exp(−a²/2) for degree 2, from the argument one level down."""
        if below is None or self.below is None:
            value = self._random("exp" if degree == 1 else "density", self.times(a, a) if degree == 2 else a)
            return np.where(value == 0, 1.0, value)
        q = BalancedResidues(self.below)
        if degree == 2:
            below = q.times(q.times(below, below), float((self.below - 1) // 2))
        # Without the argument here there is no derivative, although the argument below gives a value.
        missing = np.isnan(below) | np.isnan(a)
        exponent = q.to_integers(np.where(missing, 0.0, below))
        base, value = pow(2, (self.p - 1) // self.below, self.p), np.ones(exponent.shape)
        while np.any(exponent):
            factor = self.balanced(np.array(base, dtype=np.int64))
            value = np.where(exponent & 1, self.times(value, factor), value)
            exponent, base = exponent >> 1, base * base % self.p
        return np.where(missing, np.nan, value)

    def _circle_points(self, slopes: Array) -> tuple[Array, Array]:
        """The points ((1 − m²)/(1 + m²), 2m/(1 + m²)) of the circle; −1 is no square, so they exist."""
        square = self.times(slopes, slopes)
        scale = self.invert(self.reduce(1 + square))
        return self.times(self.reduce(1 - square), scale), self.times(self.reduce(2 * slopes), scale)

    def circle(self, classes: Array, multiples: Array, angles: Sequence[float]) -> tuple[Array, Array]:
        slopes = self._random("angle", np.arange(len(angles), dtype=np.float64))
        cos, sin = self._circle_points(slopes)
        x, y = cos[classes], sin[classes]
        real, imaginary = np.ones(multiples.shape), np.zeros(multiples.shape)
        left = np.abs(multiples)
        while np.any(left):
            odd = (left & 1).astype(bool)
            product = self.times(real, x) - self.times(imaginary, y), self.times(real, y) + self.times(imaginary, x)
            real, imaginary = (np.where(odd, self.reduce(n), o) for n, o in zip(product, (real, imaginary)))
            x, y = self.reduce(self.times(x, x) - self.times(y, y)), self.reduce(2 * self.times(x, y))
            left = left >> 1
        return real, np.where(multiples < 0, -imaginary, imaginary)


def evaluate_pattern(kind: str, x: Array) -> Array:
    """The pattern of real numbers, as 0.0 and 1.0."""
    if kind == "positive":
        return np.where(x > 0, 1.0, 0.0)
    order = np.argsort(-x, axis=-1, kind="stable")
    return np.asarray(order[..., :, None] == np.arange(x.shape[-1]), dtype=np.float64)


def pattern_margin(kind: str, x: Array, zeros: Array, errors: Array | None = None) -> Array:
    """For each sample, how far x, known up to ``errors``, is from where its pattern changes, relative to its size.

    Entries that vanish in the whole region (``zeros``) never change sign, nor their order among themselves.
    """
    zeros = np.broadcast_to(zeros, x.shape)
    size = np.abs(x).reshape(len(x), -1).max(axis=1) + 1.0 if x[0].size else np.ones(len(x))
    if kind == "positive":
        gaps = np.where(zeros, np.inf, np.abs(x))
    else:
        order = np.argsort(x, axis=-1, kind="stable")
        gone = np.take_along_axis(zeros, order, axis=-1)
        gaps = np.diff(np.take_along_axis(x, order, axis=-1), axis=-1)
        gaps = np.where(gone[..., 1:] & gone[..., :-1], np.inf, gaps)
    least = gaps.reshape(len(x), -1).min(axis=1) if gaps[0].size else np.full(len(x), np.inf)
    worst = 0.0 if errors is None else errors.reshape(len(errors), -1).max(axis=1, initial=0.0)
    return np.asarray((least - 2 * worst) / size)
