"""Programs of certificates at points whose values lie in GF(p^m), m = 2, 4, 8, 16: there all roots of roots exist.

An element is a list of m residues: the first half A and the second half B stand for A + Bτ, with τ² = ν in the field of
half the degree. ν is −1 in GF(p), 1 + b i in GF(p²) for the least b > 0 for which that is no square there, and τ itself
in all larger fields. Each ν is no square: that of GF(p²) by choice, and the norm of τ is −ν, where −1 is a square.

- √x is the root whose first residue other than 0 is a square mod p; it is missing where there is none, and at 0.
- exp y is that of the residue y₀ + Σ λ_j y_j mod q, of the argument at the next level, with the stream ``point/k/form``
  mod q for λ_1, λ_2, …: a homomorphism of all arguments. A random function has the value at the number Σ x_j p^j.
- All else is what it is in GF(p); weights, inputs, numbers and values of functions are residues. The linear form of a
  sample has coordinates, m tensors one after the other. Row −1 − k of a sample is the k-th coordinate of its gradient:
  the conjugates of the gradient are those at the same sample with other signs of roots, and span the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from string import ascii_letters
from typing import Any

import numpy as np

from attngeom.errors import FormatError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.points import residues
from attngeom.verification.interpreter import PRIMES, Interpreter, Values, contract
from attngeom.verification.programs import CheckedNode, CheckedProgram

Element = tuple[int, ...]


@cache
def nonsquare(p: int, m: int) -> Element:
    """The number of GF(p^m) whose root the next field has."""
    if m == 1:
        return (p - 1,)
    if m == 2:
        return 1, next(b for b in range(1, p) if pow(1 + b * b, (p - 1) // 2, p) == p - 1)
    return tuple(int(k == m // 2) for k in range(m))


def _add(x: Element, y: Element, p: int, times: int = 1) -> Element:
    return tuple((a + times * b) % p for a, b in zip(x, y))


def multiply(x: Element, y: Element, p: int) -> Element:
    """The product of two elements.

    >>> multiply((0, 1), (0, 1), 7)
    (6, 0)
    """
    if len(x) == 1:
        return (x[0] * y[0] % p,)
    h = len(x) // 2
    a, b, c, d = x[:h], x[h:], y[:h], y[h:]
    last = multiply(nonsquare(p, h), multiply(b, d, p), p)
    return _add(multiply(a, c, p), last, p) + _add(multiply(a, d, p), multiply(b, c, p), p)


def norm(x: Element, p: int) -> Element:
    """A² − νB², in the field of half the degree: a square there if A + Bτ is one."""
    h = len(x) // 2
    a, b = x[:h], x[h:]
    return _add(multiply(a, a, p), multiply(nonsquare(p, h), multiply(b, b, p), p), p, -1)


def is_square(x: Element, p: int) -> bool:
    """Whether an element other than 0 is a square."""
    while len(x) > 1:
        x = norm(x, p)
    return pow(x[0], (p - 1) // 2, p) == 1


def invert(x: Element, p: int) -> Element | None:
    """1/x, None at 0."""
    if not any(x):
        return None
    if len(x) == 1:
        return (pow(x[0], -1, p),)
    h, below = len(x) // 2, invert(norm(x, p), p)
    assert below is not None
    return multiply(x[:h], below, p) + multiply(tuple(-t % p for t in x[h:]), below, p)


def root(x: Element, p: int) -> Element | None:
    """The root whose first residue other than 0 is a square, None where there is none, and at 0."""
    if not any(x) or not is_square(x, p):
        return None
    y = _any_root(x, p)
    first = next(t for t in y if t)
    return y if pow(first, (p - 1) // 2, p) == 1 else tuple(-t % p for t in y)


def _any_root(x: Element, p: int) -> Element:
    """A root of a square other than 0."""
    h = len(x) // 2
    if not h:
        return (pow(x[0], (p + 1) // 4, p),)
    a, b, none = x[:h], x[h:], (0,) * h
    if not any(b):
        if is_square(a, p):
            return _any_root(a, p) + none
        inverse = invert(nonsquare(p, h), p)
        assert inverse is not None
        return none + _any_root(multiply(a, inverse, p), p)
    n, half = _any_root(norm(x, p), p), (p + 1) // 2
    for sign in (1, -1):
        w = tuple(t * half % p for t in _add(a, n, p, sign))
        if any(w) and is_square(w, p):
            break
    u = _any_root(w, p)
    inverse = invert(u, p)
    assert inverse is not None
    return u + tuple(t * half % p for t in multiply(b, inverse, p))


@cache
def _table(p: int, m: int) -> Array:
    """The products of the m unit vectors, (m, m, m)."""
    units = [tuple(int(k == j) for k in range(m)) for j in range(m)]
    return np.array([[multiply(x, y, p) for y in units] for x in units], dtype=np.int64)


class TowerInterpreter(Interpreter):
    """A program at a named point in GF(p^m): values (m, …), and m rows for each sample."""

    def __init__(
        self, program: CheckedProgram, name: str, degree: int, region: int = 0, weights: str | None = None
    ) -> None:
        super().__init__(program, name, region, weights)
        self.degree = degree
        self._rows: dict[tuple[int, ...], Array] = {}

    def elsewhere(
        self, program: CheckedProgram | None = None, name: str | None = None, weights: str | None = None
    ) -> TowerInterpreter:
        return TowerInterpreter(program or self.program, name or self.name, self.degree, self.region, weights)

    def residues(self) -> Interpreter:
        """The same point without larger fields."""
        return Interpreter(self.program, self.name, self.region)

    def cost(self) -> int:
        return super().cost() * self.degree**2

    def leading(self, a: Array) -> Array:
        """Residues as elements."""
        return np.concatenate([a[None], np.zeros((self.degree - 1, *a.shape), dtype=np.int64)])

    def _product(self, subscripts: str, x: Array, y: Array, p: int) -> Array:
        """A contraction of two arrays of elements."""
        terms, out = subscripts.split("->")
        first, second = [letter for letter in ascii_letters if letter not in subscripts][:2]
        left, right = terms.split(",")
        pairs = contract(f"{first}{left},{second}{right}->{first}{second}{out}", [x, y], p)
        return np.asarray(np.einsum("ij...,ijk->k...", pairs, _table(p, self.degree)) % p)

    def _each(self, function: Any, x: Array, p: int) -> tuple[Array, Array]:
        """A function of elements, and where it is missing."""
        columns = [function(tuple(column), p) for column in x.reshape(self.degree, -1).T.tolist()]
        none = (0,) * self.degree
        values = np.array([none if y is None else y for y in columns], dtype=np.int64).reshape(-1, self.degree)
        missing = np.array([y is None for y in columns], dtype=bool)
        return values.T.reshape(x.shape), missing.reshape(x.shape[1:])

    def _step(
        self,
        node: CheckedNode,
        inputs: list[tuple[Array, Array]],
        level: int,
        index: int,
        lower: tuple[Array, Array] | None,
    ) -> tuple[Array, Array]:
        p, data = PRIMES[level], node.data
        if not node.inputs:
            value, none = super()._step(node, inputs, level, index, lower)
            return self.leading(value), none
        values, missing = [x for x, _ in inputs], [m for _, m in inputs]
        if node.operation == "gather":
            joined = np.concatenate([*(x.reshape(self.degree, -1) for x in values), self.leading(np.zeros(1))], axis=1)
            flags = np.concatenate([*(m.ravel() for m in missing), [False]])[data["index"]].reshape(node.shape)
            return joined[:, data["index"]].reshape(self.degree, *node.shape).astype(np.int64), flags
        if node.operation == "contract" and len(values) == 2:
            flags = super()._step(node, [(m.astype(np.int64), m) for m in missing], level, index, None)[1]
            return self._product(data["subscripts"], values[0], values[1], p), flags
        if node.operation == "contract":
            terms, out = data["subscripts"].split("->")
            letter = next(x for x in ascii_letters if x not in terms)
            flags = super()._step(node, [(m.astype(np.int64), m) for m in missing], level, index, None)[1]
            return contract(f"{letter}{terms}->{letter}{out}", values, p), flags
        if node.operation == "add":
            return super()._step(node, inputs, level, index, lower)
        x, gone = values[0], missing[0]
        if node.operation in ("inverse", "root"):
            y, absent = self._each(invert if node.operation == "inverse" else root, x, p)
            return y, gone | absent
        y, lost = self._function(data["name"], x, level, lower)
        return np.where(gone | lost, 0, y), gone | lost

    def _function(self, name: str, x: Array, level: int, lower: tuple[Array, Array] | None) -> tuple[Array, Array]:
        p, none = PRIMES[level], np.zeros(x.shape[1:], dtype=bool)
        if name == "exp":
            return self.exponential(level, x, lower, 1)
        if name not in ("log", "gauss"):
            raise SizeError("sin and cos at points in larger fields found; they are not rechecked")
        drawn = [self._first(level, name, sum(t * p**k for k, t in enumerate(c))) for c in self._columns(x)]
        value = self.leading(np.array(drawn, dtype=np.int64).reshape(x.shape[1:]))
        if name == "log":
            return value, np.asarray(~x.any(axis=0))
        return value, none if lower is None else lower[1]

    def _columns(self, x: Array) -> list[list[int]]:
        columns: list[list[int]] = x.reshape(self.degree, -1).T.tolist()
        return columns

    def exponential(self, level: int, x: Array, lower: tuple[Array, Array] | None, degree: int) -> tuple[Array, Array]:
        if lower is None or level + 1 >= len(PRIMES):
            raise SizeError("exponentials that are nested deeper than the chain of primes found")
        q, argument = PRIMES[level + 1], lower[0]
        if degree == 2:
            argument = (
                self._product(",->", argument, argument, q) if not argument[0].ndim else self._squares(argument, q)
            )
            argument = argument * ((q - 1) // 2) % q
        form = [1, *residues(self.name, f"{level}/form", (self.degree - 1,), q).tolist()]
        total = sum(weight * y for weight, y in zip(form, argument)) % q
        value, missing = super().exponential(level, total, (np.asarray(total), lower[1]), 1)
        return self.leading(value), missing

    def _squares(self, x: Array, p: int) -> Array:
        flat = x.reshape(self.degree, -1)
        return self._product("a,a->a", flat, flat, p).reshape(x.shape)

    def gradient(self, sample: Sequence[int], output: int) -> Array:
        """The coordinate −1 − ``output`` of the gradient at a sample of a random form on the outputs that exist."""
        if output >= 0:
            raise FormatError("a row of one output at a point in a larger field found; forms are required")
        key = tuple(sample)
        if key not in self._rows:
            self._rows[key] = self._gradients(sample)
        return np.asarray(self._rows[key][-1 - output])

    def _gradients(self, sample: Sequence[int]) -> Array:
        program, p = self.program, PRIMES[0]
        values = self.values(sample)
        below = self.values(sample, 1) if self.levels else []
        last = values[program.output]
        assert last is not None
        if last[1].all():
            raise FormatError("a sample at which no output exists found")
        form = residues(self.name, f"c{sample[0]}", (self.degree, *program.nodes[program.output].shape), p)
        rows = self._pulled(np.where(last[1], 0, form), values, below)
        shapes = program.leaves("parameter").items()
        parts = [rows.get(name, np.zeros((self.degree, *s), dtype=np.int64)) for name, s in shapes]
        return np.concatenate([part.reshape(self.degree, -1) for part in parts], axis=1)

    def _pull(
        self, node: CheckedNode, arrived: Array, place: int, values: Values, below: Values
    ) -> Iterator[tuple[int, Array]]:
        p, data = PRIMES[0], node.data
        inputs = [x[0] for x in (values[k] for k in node.inputs) if x is not None]
        if node.operation == "gather":
            sizes = [x[0].size for x in inputs]
            total = np.zeros((self.degree, sum(sizes) + 1), dtype=np.int64)
            for row, own in zip(total, arrived.reshape(self.degree, -1)):
                np.add.at(row, data["index"], own)
            for k, x, part in zip(node.inputs, inputs, np.split(total[:, :-1], np.cumsum(sizes)[:-1], axis=1)):
                yield k, part.reshape(x.shape)
        elif node.operation == "contract" and len(inputs) == 2:
            terms, out = data["subscripts"].split("->")
            one, two = terms.split(",")
            yield node.inputs[0], self._product(f"{out},{two}->{one}", arrived, inputs[1], p)
            yield node.inputs[1], self._product(f"{out},{one}->{two}", arrived, inputs[0], p)
        elif node.operation in ("contract", "add"):
            pull = super()._pull
            parts = [list(pull(node, own, place, self._at(values, j), below)) for j, own in enumerate(arrived)]
            for number, (k, _) in enumerate(parts[0]):
                yield k, np.stack([own[number][1] for own in parts])
        elif node.operation in ("inverse", "root", "formal"):
            result = values[place]
            assert result is not None
            slope = np.where(
                result[1], 0, self._slope(node, inputs[0], result[0], below[node.inputs[0]] if below else None)
            )
            flat = (arrived.reshape(self.degree, -1), slope.reshape(self.degree, -1))
            yield node.inputs[0], self._product("a,a->a", *flat, p).reshape(arrived.shape)

    def _at(self, values: Values, coordinate: int) -> Values:
        """One coordinate of all values."""
        return [None if x is None else (x[0][coordinate], x[1]) for x in values]

    def _slope(self, node: CheckedNode, x: Array, y: Array, lower: tuple[Array, Array] | None) -> Array:
        p = PRIMES[0]
        if node.operation == "inverse":
            return -self._squares(y, p) % p
        if node.operation == "root":
            return self._each(invert, 2 * y % p, p)[0]
        name = node.data["name"]
        if name == "exp":
            return y
        if name == "log":
            return self._each(invert, x, p)[0]
        return self.exponential(0, x, lower, 2)[0] * self._first(0, "kappa", 0) % p
