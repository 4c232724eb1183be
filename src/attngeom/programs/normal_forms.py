"""Normal forms of functions: what two functions undo in each other is written without them, before a node is appended.

exp(log u + a) = u exp a and log(exp(a)/s) = a − log s hold where the functions exist. Of numbers: log r is a sum of
logarithms of primes, which are independent over Q; Φ(−c) = 1 − Φ(c), Φ(0) = 1/2; sine and cosine are points of the
circle. So log 4 − 2 log 2 is 0 as it is written.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from flint import fmpz

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.limits.sizes import FACTORED_BITS, UNROLLED_POWER

if TYPE_CHECKING:
    from attngeom.programs.builder import Builder

Spread = tuple[int, Fraction]
"""A node in the shape of the result, and a rational number that multiplies it."""


def normal_form(b: Builder, name: str, a: int) -> int | None:
    """The node of a function of a node in other words; None if it is to be appended as it is.

    >>> from attngeom.programs.builder import Builder
    >>> b = Builder()
    >>> u, v = b.parameter("u", ()), b.parameter("v", ())
    >>> b.exp(b.add(b.formal("log", u), v)) == b.multiply(u, b.exp(v)), b.formal("log", b.exp(u)) == u
    (True, True)
    >>> b.formal("log", b.constant(4)) == b.scale(b.formal("log", b.constant(2)), 2)
    True
    """
    values = b.exact(a)
    if values is not None:
        return _of_numbers(b, name, values)
    if name == "exp":
        return _exponential(b, a)
    if name == "log":
        return _logarithm(b, a)
    node = b.nodes[a]
    if name == "gauss" and node.operation == "add" and len(node.inputs) == 1 and node.data["coefficients"][0] < 0:
        return b.subtract(b.constant(1), b.formal("gauss", b.scale(a, -1)))
    return None


def _of_numbers(b: Builder, name: str, values: Array) -> int | None:
    flat = [Fraction(x) for x in values.ravel().tolist()]
    if name in ("sin", "cos"):
        if not any(flat):
            return b.constant(np.full(values.shape, int(name == "cos"), dtype=np.int64))
        try:
            return b.circle(values.astype(np.float64))[name == "sin"]
        except InputError:
            return None  # A fraction of π.
    if name == "exp":
        return None if any(flat) else b.constant(np.ones(values.shape, dtype=np.int64))
    if name == "gauss":
        if all(x > 0 for x in flat):
            return None
        signs = [(x > 0) - (x < 0) for x in flat]
        sizes = np.array([abs(x) or 1 for x in flat], dtype=object).reshape(values.shape)
        half = b.constant(np.array(Fraction(1, 2), dtype=object))
        distances = b.subtract(b.formal("gauss", b.constant(sizes)), half)
        return b.add(half, b.multiply(distances, b.constant(np.array(signs, dtype=np.int64).reshape(values.shape))))
    return _logarithms_of_numbers(b, flat, values.shape)


def _logarithms_of_numbers(b: Builder, numbers: list[Fraction], shape: tuple[int, ...]) -> int | None:
    """Logarithms of positive rationals as sums of those of primes; None for others, and for very long ones."""
    if any(x <= 0 or max(x.numerator, x.denominator).bit_length() > FACTORED_BITS for x in numbers):
        return None
    powers = [prime_powers(x) for x in numbers]
    primes = sorted({q for row in powers for q in row})
    if not primes:
        return b.constant(np.zeros(shape, dtype=np.int64))
    if len(numbers) == 1 and powers[0] == {primes[0]: 1}:
        return None
    terms = [b.formal("log", b.constant(q)) for q in primes]
    if len(numbers) == 1:
        return b.reshape(reduce(b.add, (b.scale(term, powers[0][q]) for term, q in zip(terms, primes))), shape)
    table = np.array([[row.get(q, 0) for q in primes] for row in powers], dtype=np.int64)
    joined = b.gather(terms, np.arange(len(primes)))
    return b.reshape(b.contract("ij,j->i", b.constant(table), joined), shape)


def prime_powers(number: Fraction) -> dict[int, int]:
    """A positive rational number as a product of powers; what is too long to be factored counts as a prime.

    >>> prime_powers(Fraction(12, 5))
    {2: 2, 3: 1, 5: -1}
    """
    powers: dict[int, int] = {}
    for part, sign in ((number.numerator, 1), (number.denominator, -1)):
        is_short = part.bit_length() <= FACTORED_BITS
        factors = [(int(q), int(n)) for q, n in fmpz(part).factor()] if is_short else [(part, 1)]
        powers |= {q: sign * n for q, n in factors}
    return powers


def _exponential(b: Builder, a: int) -> int | None:
    """exp of a sum in which logarithms stand, as a product; None if there are none."""
    node = b.nodes[a]
    if node.operation == "formal" and node.data["name"] == "log":
        return node.inputs[0]
    if node.operation == "gather":
        return _moved(b, a, "exp", _exponential, 1)
    if node.operation == "add":
        parts = [(_exponential(b, k), k, n) for k, n in zip(node.inputs, node.data["coefficients"])]
        # e to the power of a number is left inside: networks hold it as a float elsewhere.
        if all(part is None for part, _, _ in parts) or any(b.exact(k) is not None for _, k, _ in parts):
            return None
        if any(abs(n) > UNROLLED_POWER for _, _, n in parts):
            return None
        factors = [b.exp(b.scale(k, n)) if part is None else b.power(part, Fraction(n)) for part, k, n in parts]
        return factors[0] if len(factors) == 1 else b.multiply(*factors)
    if (scaled := _scaled(b, a)) is not None:
        part, times = scaled
        inner = _exponential(b, part)
        if inner is not None and times.denominator <= 2 and abs(times) <= UNROLLED_POWER:
            return b.power(inner, times)
    return None


def _logarithm(b: Builder, a: int) -> int | None:
    """log of a product in which exponentials stand, or of what is divided by, or of a root, as a sum."""
    node = b.nodes[a]
    if node.operation == "formal" and node.data["name"] == "exp":
        return node.inputs[0]
    if node.operation == "inverse":
        return b.scale(b.formal("log", node.inputs[0]), -1)
    if node.operation == "root":
        half = b.constant(np.array(Fraction(1, 2), dtype=object))
        return b.multiply(b.formal("log", node.inputs[0]), half)
    if node.operation == "gather":
        return _moved(b, a, "log", _logarithm, None)
    if node.operation == "contract" and len(node.inputs) == 2:
        parts = _factors(b, a)
        if parts is not None and any(_is_positive(b, part) for part in parts):
            return b.add(*(b.formal("log", part) for part in parts))
    return None


def _moved(b: Builder, a: int, name: str, rule: object, filling: int | None) -> int | None:
    """The function behind index work, where one of the operands has another form; ``filling``: its value at 0."""
    node = b.nodes[a]
    index = node.data["index"].reshape(node.shape)
    holes = bool(index.min() < 0)
    if (holes and filling is None) or not callable(rule):
        return None
    parts = [rule(b, k) for k in node.inputs]
    if all(part is None for part in parts):
        return None
    known = [b.formal(name, k) if part is None else part for part, k in zip(parts, node.inputs)]
    if holes:
        size = sum(b.nodes[k].size for k in known)
        known, index = [*known, b.constant(np.array([filling]))], np.where(index < 0, size, index)
    return b.gather(known, index)


def _is_positive(b: Builder, a: int) -> bool:
    """Whether a node is seen to be positive at all entries, as exponentials and quotients of them are."""
    node = b.nodes[a]
    if node.operation == "formal":
        return bool(node.data["name"] == "exp")
    if node.operation == "root":
        return True
    is_moved = node.operation == "gather" and node.data["index"].min() >= 0
    return (is_moved or node.operation == "inverse") and all(_is_positive(b, k) for k in node.inputs)


def _factors(b: Builder, a: int) -> list[int] | None:
    """The two factors of a product entry by entry, each in the shape of the product; None where it sums."""
    node = b.nodes[a]
    terms, out = node.data["subscripts"].split("->")
    words = terms.split(",")
    if not set(terms) - {","} <= set(out):
        return None
    factors = []
    for word, k in zip(words, node.inputs):
        numbers = np.transpose(b.numbers([k])[0], np.argsort([out.index(letter) for letter in word]))
        shape = [n if letter in word else 1 for letter, n in zip(out, node.shape)]
        factors.append(b.move([k], np.broadcast_to(numbers.reshape(shape), node.shape)))
    return factors


def _scaled(b: Builder, a: int) -> Spread | None:
    """A node and the number by which a product multiplies it everywhere; None for what is no such product."""
    node = b.nodes[a]
    if node.operation != "contract" or len(node.inputs) != 2 or (parts := _factors(b, a)) is None:
        return None
    for one, other in (parts, parts[::-1]):
        values = b.exact(one)
        if values is not None and len(set(values.ravel().tolist())) == 1:
            return other, Fraction(values.ravel()[0])
    return None
