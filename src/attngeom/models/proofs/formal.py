"""Dual numbers over GF(p): values and derivatives of algebraic expressions, roots, and formal transcendental functions.

A batch of samples is evaluated at once: values have shape (samples, …), derivatives (samples, …, parameters). A formal
function value is a random residue with the right derivative relation: exp' = exp, σ' = σ(1 − σ), tanh' = 1 − tanh²,
Φ' = g with g a second free value. This is legitimate where the arguments are independent, which `independence` checks
from the arguments that a tape notes. Square roots are taken in GF(p); samples in which some root does not exist are
marked and dropped, so what remains is an honest point of the ring that the expressions generate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.primes import primes_from
from attngeom.exact.residues import BalancedResidues

# p = 3 mod 4 makes square roots a power; p < 2^25 leaves room for 2^13 products in a sum of int64.
PRIME = next(p for p in primes_from(2**25) if p % 4 == 3)
_BALANCED = BalancedResidues(PRIME)


class RootsMissing(Exception):
    """No sample with all square roots in GF(p) was found: some root depends on the weights alone; draw others."""


def power(x: Array, exponent: int) -> Array:
    """x^exponent mod p, entry by entry."""
    base = _BALANCED.from_integers(x)
    result = np.ones_like(base)
    for bit in f"{exponent:b}":
        result = _BALANCED.times(result, result)
        if bit == "1":
            result = _BALANCED.times(result, base)
    return _BALANCED.to_integers(result)


def inverse(x: Array) -> Array:
    """1/x mod p, entry by entry; 0 for x = 0, which the caller has to exclude.

    >>> (inverse(np.array([0, 1, 2, 3, 4])) * np.array([0, 1, 2, 3, 4]) % PRIME).tolist()
    [0, 1, 1, 1, 1]
    """
    zero = x % PRIME == 0
    return np.where(zero, 0, _inverses(np.where(zero, 1, x).ravel()).reshape(x.shape))


def _inverses(x: Array) -> Array:
    """Inverses of nonzero residues: 1/(ab) gives 1/a = b/(ab) and 1/b = a/(ab), so that few are computed."""
    half = len(x) // 2
    if half < 2:
        return np.array([pow(value, -1, PRIME) for value in x.tolist()], dtype=np.int64)
    left, right = x[:half], x[-half:]
    products = _inverses(left * right % PRIME)
    middle = _inverses(x[half:-half])
    return np.concatenate([products * right % PRIME, middle, products * left % PRIME])


def constant(value: float | Fraction) -> int:
    """The residue of a number, exact: a float is a dyadic rational.

    >>> constant(0.5) * 2 % PRIME
    1
    """
    exact = Fraction(value)
    return exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME


@dataclass(frozen=True, eq=False)
class Dual:
    """A value mod p and its derivatives by all parameters; ``slope`` None means constant."""

    value: Array
    slope: Array | None = None

    def __add__(self, other: Dual) -> Dual:
        value = (self.value + other.value) % PRIME
        if self.slope is None or other.slope is None:
            slope = self.slope if other.slope is None else other.slope
            return Dual(value, None if slope is None else _spread(slope, value))
        return Dual(value, (self.slope + other.slope) % PRIME)

    def __mul__(self, other: Dual | Array | int) -> Dual:
        """Entrywise product; an array or an integer is a constant."""
        if not isinstance(other, Dual):
            factor = np.asarray(other)
            value = self.value * factor % PRIME
            return Dual(value, None if self.slope is None else self.slope * factor[..., None] % PRIME)
        slopes = [x.slope * y.value[..., None] for x, y in ((self, other), (other, self)) if x.slope is not None]
        return Dual(self.value * other.value % PRIME, sum(slopes[1:], slopes[0]) % PRIME if slopes else None)

    def __getitem__(self, key: Any) -> Dual:
        """An index (a tuple) of the entries that leaves the axis of the parameters alone."""
        return Dual(self.value[key], None if self.slope is None else self.slope[(*key, slice(None))])

    def chain(self, value: Array, derivative: Array) -> Dual:
        """f(self) from the values of f and of f' there."""
        return Dual(value % PRIME, None if self.slope is None else self.slope * derivative[..., None] % PRIME)

    def total(self, axis: int) -> Dual:
        """The sum over an axis of the entries (a nonnegative axis)."""
        slope = None if self.slope is None else self.slope.sum(axis) % PRIME
        return Dual(self.value.sum(axis) % PRIME, slope)

    def reshape(self, *shape: int) -> Dual:
        slope = None if self.slope is None else self.slope.reshape(*shape, self.slope.shape[-1])
        return Dual(self.value.reshape(shape), slope)


def _spread(slope: Array, value: Array) -> Array:
    return np.broadcast_to(slope, (*value.shape, slope.shape[-1]))


def contract(subscripts: str, left: Dual, right: Dual) -> Dual:
    """einsum of two duals; the letter z is kept for the axis of the parameters."""
    inputs, output = subscripts.split("->")
    first, second = inputs.split(",")
    value = np.einsum(subscripts, left.value, right.value) % PRIME
    slope = None
    if left.slope is not None:
        slope = np.einsum(f"{first}z,{second}->{output}z", left.slope, right.value) % PRIME
    if right.slope is not None:
        more = np.einsum(f"{first},{second}z->{output}z", left.value, right.slope) % PRIME
        slope = more if slope is None else (slope + more) % PRIME
    return Dual(value, slope)


def join(parts: list[Dual]) -> Dual:
    """Concatenation along the last axis of the entries."""
    value = np.concatenate([part.value for part in parts], axis=-1)
    sizes = [part.slope.shape[-1] for part in parts if part.slope is not None]
    if not sizes:
        return Dual(value)
    slopes = [np.zeros((*part.value.shape, sizes[0]), np.int64) if part.slope is None else part.slope for part in parts]
    return Dual(value, np.concatenate(slopes, axis=-2))


@dataclass(eq=False)
class Tape:
    """Free values of a batch, recorded in a first pass and replayed for the samples whose roots all exist."""

    rng: np.random.Generator
    samples: int
    good: Array = field(init=False)
    record: list[Array] = field(default_factory=list)
    arguments: list[Array] = field(default_factory=list)
    cursor: int = 0

    def __post_init__(self) -> None:
        self.good = np.ones(self.samples, dtype=bool)

    def _next(self, draw: Array | None) -> Array:
        if draw is not None:
            self.record.append(draw)
        self.cursor += 1
        return self.record[self.cursor - 1]

    @property
    def is_new(self) -> bool:
        return self.cursor == len(self.record)

    def free(self, arguments: Array) -> Array:
        """Random nonzero residues, one for each argument (samples, …) of a transcendental function."""
        self.arguments.append(arguments.reshape(self.samples, -1))
        return self.draw(arguments.shape[1:])

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Random nonzero residues of shape (samples, *shape): a second function of arguments that were noted."""
        return self._next(self.rng.integers(1, PRIME, (self.samples, *shape)) if self.is_new else None)

    def choose(self, options: Array) -> Array:
        """One of the rows of ``options`` for every sample."""
        return self._next(options[self.rng.integers(0, len(options), self.samples)] if self.is_new else None)

    def root(self, square: Dual) -> Dual:
        """√square, derivative square'/(2√square); samples where it does not exist are marked."""
        value = power(square.value, (PRIME + 1) // 4)
        exists = (value * value % PRIME == square.value) & (value != 0)
        self.good &= exists.reshape(self.samples, -1).all(axis=1)
        return Dual(value) if square.slope is None else square.chain(value, inverse(2 * value % PRIME))

    def reciprocal(self, x: Dual) -> Dual:
        """1/x; samples with x = 0 are marked."""
        value = inverse(x.value)
        self.good &= (value != 0).reshape(self.samples, -1).all(axis=1)
        return x.chain(value, PRIME - value * value % PRIME)

    def kept(self, places: Array) -> Tape:
        """The samples at the given places, ready to be replayed."""
        return Tape(self.rng, len(places), [values[places] for values in self.record])


@dataclass(eq=False)
class KeyedTape(Tape):
    """Free values that depend on a key of the sample alone: equal keys get equal values, in every batch.

    ``store`` keeps one array per draw, indexed by key; it is shared by the tapes of all batches.
    """

    keys: Array = field(kw_only=True)
    store: list[Array] = field(kw_only=True)
    count: int = field(kw_only=True)

    def free(self, arguments: Array) -> Array:
        return self.draw(arguments.shape[1:])

    def draw(self, shape: tuple[int, ...]) -> Array:
        if self.cursor == len(self.store):
            self.store.append(self.rng.integers(1, PRIME, (self.count, *shape)))
        return self._keyed()

    def choose(self, options: Array) -> Array:
        if self.cursor == len(self.store):
            self.store.append(options[self.rng.integers(0, len(options), self.count)])
        return self._keyed()

    def _keyed(self) -> Array:
        self.cursor += 1
        return self.store[self.cursor - 1][self.keys]
