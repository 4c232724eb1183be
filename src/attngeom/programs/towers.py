"""Fields GF(p^m), m a power of 2, in which roots of numbers of smaller ones exist: programs run there with no tries.

GF(p²) has i with i² = −1, GF(p⁴) a root of 1 + b i, b the least number for which that is no square, and each further
field a root of the generator of the one before. An element is a list of m residues, those of the smaller field first:
(A, B) is A + Bτ. An array of samples has the coordinates of each below each other on its leading axis, m for a sample.

Every element of GF(p^k) has a root in GF(p^2k): of the two the one whose first coordinate other than 0 is a residue,
as x^((p + 1)/4) is. Weights are residues; values of functions are so too: of exp through the linear form y ↦ y₀ +
Σ λ_j y_j on GF(q^m), which is a homomorphism of the arguments; of others by their coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.residues import BalancedResidues
from attngeom.programs.arithmetic import ModularArithmetic
from attngeom.programs.streams import Streams

Bilinear = Callable[[Array, Array], Array]


class Tower:
    """Elements of GF(p^m) as arrays (samples, m, …) of balanced residues; what does not exist is NaN throughout.

    >>> from attngeom.programs.arithmetic import CHAIN
    >>> tower = Tower(CHAIN[0])
    >>> minus_two = np.array([-2.0, 0.0]).reshape(1, 2, 1)
    >>> root = tower.root(minus_two)
    >>> tower.times(root, root).ravel().tolist()
    [-2.0, 0.0]
    """

    def __init__(self, p: int) -> None:
        self.p, self.field = p, BalancedResidues(p)

    @cached_property
    def imaginary(self) -> float:
        """The least b for which 1 + b i is no square of GF(p²)."""
        p = self.p
        return float(next(b for b in range(1, p) if pow(1 + b * b, (p - 1) // 2, p) == p - 1))

    def bilinear(self, product: Bilinear, x: Array, y: Array) -> Array:
        """A bilinear map over GF(p), extended to GF(p^m): three of half the degree for each step (Karatsuba)."""
        m = x.shape[1]
        if m == 1:
            return product(x[:, 0], y[:, 0])[:, None]
        h = m // 2
        (a, b), (c, d) = (x[:, :h], x[:, h:]), (y[:, :h], y[:, h:])
        first = self.bilinear(product, a, c)
        if not np.any(b):
            return np.concatenate([first, self.bilinear(product, a, d) if np.any(d) else np.zeros_like(first)], axis=1)
        if not np.any(d):
            return np.concatenate([first, self.bilinear(product, b, c)], axis=1)
        balance = self.field.balance
        last = self.bilinear(product, b, d)
        both = self.bilinear(product, balance(a + b), balance(c + d))
        return np.concatenate([balance(first + self.times_nonsquare(last)), balance(both - first - last)], axis=1)

    def times(self, x: Array, y: Array) -> Array:
        """The product entry by entry."""
        return self.bilinear(self.field.times, x, y)

    def times_nonsquare(self, x: Array) -> Array:
        """x times the element whose root the next field has."""
        m = x.shape[1]
        if m == 1:
            return -x
        if m == 2:
            b = self.imaginary
            real, imaginary = x[:, :1], x[:, 1:]
            parts = [real - self.field.times(imaginary, b), imaginary + self.field.times(real, b)]
            return self.field.balance(np.concatenate(parts, axis=1))
        return np.concatenate([self.times_nonsquare(x[:, m // 2 :]), x[:, : m // 2]], axis=1)

    def _halves(self, x: Array) -> tuple[Array, Array, Array]:
        """A, B and the norm A² − νB² of A + Bτ in the field of half the degree."""
        h = x.shape[1] // 2
        a, b = x[:, :h], x[:, h:]
        square = self.times_nonsquare(self.times(b, b)) if np.any(b) else np.zeros_like(b)
        return a, b, self.field.balance(self.times(a, a) - square)

    def norm(self, x: Array) -> Array:
        """The norm to GF(p), (samples, …): it is a residue where x is a square."""
        while x.shape[1] > 1:
            x = self._halves(x)[2]
        return x[:, 0]

    def is_square(self, x: Array) -> Array:
        """Where x is a square other than 0."""
        return np.asarray(self._power(self.norm(x), (self.p - 1) // 2) == 1)

    def invert(self, x: Array) -> Array:
        """1/x, NaN at 0."""
        if x.shape[1] == 1:
            return np.where(x == 0, np.nan, self._power(x, self.p - 2))
        a, b, norm = self._halves(x)
        inverse = self.invert(norm)
        if not np.any(b):
            return self.spread(self.invert(a), x.shape[1])
        return np.concatenate([self.times(a, inverse), self.times(-b, inverse)], axis=1)

    def spread(self, x: Array, m: int) -> Array:
        """Elements of a smaller field in GF(p^m)."""
        rest = np.zeros((len(x), m - x.shape[1], *x.shape[2:]))
        return np.concatenate([x, np.where(np.isnan(x[:, :1]), np.nan, rest)], axis=1)

    def root(self, x: Array) -> Array:
        """√x, NaN at 0 and where x is no square in GF(p^m)."""
        y = self._any_root(x)
        sign = np.ones((len(x), 1, *x.shape[2:]))
        undecided = np.ones(sign.shape, dtype=bool)
        for k in range(x.shape[1]):
            own = y[:, k : k + 1]
            decides = undecided & (own != 0)
            if decides.any():
                sign = np.where(decides & (self._power(own, (self.p - 1) // 2) == -1), -1.0, sign)
            undecided &= own == 0
        y = y * sign
        holds = (self.times(y, y) == x).all(axis=1, keepdims=True) & (x != 0).any(axis=1, keepdims=True)
        return np.where(holds, y, np.nan)

    def _any_root(self, x: Array) -> Array:
        """A root where there is one, and anything elsewhere, without NaN."""
        x = np.nan_to_num(x)
        if x.shape[1] == 1:
            return self._power(x, (self.p + 1) // 4)
        a, b, norm = self._halves(x)
        if not np.any(b):
            return self._root_of_smaller(a)
        half = float((self.p + 1) // 2)
        n = self._any_root(norm)
        first = self._any_root(self.field.times(self.field.balance(a + n), half))
        second = self._any_root(self.field.times(self.field.balance(a - n), half))
        w = self.field.times(self.field.balance(a + n), half)
        is_first = (self.times(first, first) == w).all(axis=1, keepdims=True) & (w != 0).any(axis=1, keepdims=True)
        u = np.where(is_first, first, second)
        v = self.field.times(self.times(b, np.nan_to_num(self.invert(u))), half)
        whole = np.concatenate([u, v], axis=1)
        lies_below = ~np.any(b != 0, axis=1, keepdims=True)
        return np.where(lies_below, self._root_of_smaller(a), whole) if lies_below.any() else whole

    def _root_of_smaller(self, a: Array) -> Array:
        """The root of an element of the field of half the degree: there, or τ times one of a/ν."""
        inside = self._any_root(a)
        is_there = (self.times(inside, inside) == a).all(axis=1, keepdims=True)
        if is_there.all():
            return np.concatenate([inside, np.zeros_like(inside)], axis=1)
        one = np.zeros_like(a[:1])
        one[:, 0] = 1.0
        inverse = np.broadcast_to(self.invert(self.times_nonsquare(one)), a.shape)
        outside = self._any_root(self.times(a, inverse))
        return np.concatenate([np.where(is_there, inside, 0.0), np.where(is_there, 0.0, outside)], axis=1)

    def _power(self, a: Array, exponent: int) -> Array:
        result = np.ones_like(a)
        for bit in bin(exponent)[2:]:
            result = self.field.times(result, result)
            if bit == "1":
                result = self.field.times(result, a)
        return result


class TowerArithmetic(ModularArithmetic):
    """GF(p^m) at a level of the chain, for so many samples: leading axes of all values have the length samples·m."""

    def __init__(self, level: int, name: str, streams: Streams, degree: int, samples: int) -> None:
        super().__init__(level, name, streams)
        self.degree, self.samples = degree, samples
        self.tower = Tower(self.p)
        self.inner = ModularArithmetic(level, name, streams)

    def leading(self, a: Array) -> Array:
        """Residues (1 or samples, …) as elements of the field, with their coordinates on the leading axis."""
        known = np.broadcast_to(a, (self.samples, *a.shape[1:]))
        return self._join(self.tower.spread(known[:, None], self.degree))

    def split(self, a: Array) -> Array:
        """(samples, m, …) from coordinates on the leading axis."""
        return a.reshape(self.samples, self.degree, *a.shape[1:])

    def _join(self, a: Array) -> Array:
        return a.reshape(-1, *a.shape[2:])

    def constant(self, entries: Sequence[Fraction], shape: tuple[int, ...]) -> Array:
        return self.leading(super().constant(entries, shape))

    def contract(self, subscripts: str, a: Array, b: Array | None = None) -> Array:
        if b is None:
            return super().contract(subscripts, a)

        def product(x: Array, y: Array) -> Array:
            return self.inner.contract(subscripts, x, y)

        return self._join(self.tower.bilinear(product, self.split(a), self.split(b)))

    def times(self, a: Array, b: Array) -> Array:
        return self._join(self.tower.times(self.split(a), self.split(b)))

    def half(self, a: Array) -> Array:
        return np.asarray(self.field.times(a, float((self.p + 1) // 2)))

    def invert(self, a: Array) -> Array:
        zero = (self.split(a) == 0).all(axis=1, keepdims=True)
        return self._join(np.where(zero, np.nan, self.tower.invert(self.split(a))))

    def root(self, a: Array) -> Array:
        return self._join(self.tower.root(self.split(a)))

    def function(self, name: str, a: Array, below: Array | None) -> tuple[Array, Array]:
        if name == "exp":
            value = self._exponential(a, below, 1)
            return value, value
        if name == "log":
            zero = (self.split(a) == 0).all(axis=1)
            return self.leading(np.where(zero, np.nan, self._random("log", a))), self.invert(a)
        if name == "gauss":
            kappa = self.inner._random("kappa", np.zeros((1,)))
            density = self.field.times(self._exponential(a, below, 2), float(kappa[0]))
            return self.leading(self._random("gauss", a)), np.asarray(density)
        sign = self._sign(a)
        cos, sin = self._circle_points(self._random("circle", self._join(self.split(a) * sign[:, None])))
        cos, sin = self.leading(cos), self.leading(sin * sign)
        return (sin, cos) if name == "sin" else (cos, -sin)

    def _circle_points(self, slopes: Array) -> tuple[Array, Array]:
        return self.inner._circle_points(slopes)

    def circle(self, classes: Array, multiples: Array, angles: Sequence[float]) -> tuple[Array, Array]:
        return self.inner.circle(classes, multiples, angles)

    def _sign(self, a: Array) -> Array:
        """±1 (samples, …): that of the first coordinate other than 0, and 0 at 0."""
        parts = self.split(a)
        sign = np.zeros((len(parts), *parts.shape[2:]))
        for k in range(self.degree):
            sign = np.where(sign == 0, np.sign(parts[:, k]), sign)
        return sign

    def _random(self, function: str, a: Array) -> Array:
        """A random function of the elements, residues (samples, …): that of a residue is what it is in GF(p)."""
        parts = self.split(a)
        missing = np.isnan(parts).any(axis=1)
        residues = self.field.to_integers(np.nan_to_num(parts))
        keys = residues[:, 0]
        if residues[:, 1:].any():
            keys = sum(residues[:, k].astype(object) * self.p**k for k in range(self.degree))
        known, places = np.unique(keys, return_inverse=True)
        values = self.streams.function(f"{self.level}/{function}", known, self.p)[places].reshape(keys.shape)
        return np.where(missing, np.nan, self.balanced(values))

    def _exponential(self, a: Array, below: Array | None, degree: int) -> Array:
        """exp(a), or exp(−a²/2) for degree 2, from the argument one level down."""
        if below is None or self.below is None:
            square = self.times(a, a) if degree == 2 else a
            value = self._random("exp" if degree == 1 else "density", square)
            return self.leading(np.where(value == 0, 1.0, value))
        lower, q = Tower(self.below), BalancedResidues(self.below)
        argument = self.split(below)
        missing = np.isnan(argument).any(axis=1) | np.isnan(self.split(a)).any(axis=1)
        argument = np.nan_to_num(argument)
        if degree == 2:
            argument = q.times(lower.times(argument, argument), float((self.below - 1) // 2))
        total = argument[:, 0]
        for k, weight in enumerate(q.from_residues(self._form).tolist()):
            total = q.balance(total + q.times(argument[:, k + 1], weight))
        return self.leading(np.where(missing, np.nan, self.inner._exponential(total, total, 1)))

    @cached_property
    def _form(self) -> Array:
        """The numbers λ_1, λ_2, … mod q."""
        assert self.below is not None
        return self.streams.tensor(f"{self.level}/form", (self.degree - 1,), self.below)
