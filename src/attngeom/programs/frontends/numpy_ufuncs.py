"""What ufuncs of NumPy and of scipy.special become in a program: a table of rules."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from attngeom.errors import InputError
from attngeom.programs.frontends.maxima import Shift
from attngeom.programs.normal_forms import prime_powers

Traced: TypeAlias = Any
"""An array of :mod:`attngeom.programs.frontends.numpy_function`, which NumPy takes for one of its own."""


def new(x: Traced, node: int, lost: Any = None, shift: Shift | None = None) -> Traced:
    return type(x)(x.builder, node, lost, shift)


def exact_fraction(x: Traced) -> Fraction | None:
    """The number that a constant array holds everywhere; None for data and for arrays of different numbers."""
    values = x.builder.exact(x.node)
    if values is None or len(set(values.ravel().tolist())) != 1:
        return None
    return Fraction(values.ravel()[0])


def unary(name: str) -> Callable[[list[Traced]], Traced]:
    """A function of each entry that the builder has under this name."""

    def rule(operands: list[Traced]) -> Traced:
        x = operands[0].plain()
        return new(x, getattr(x.builder, name)(x.node))

    return rule


def formal(name: str) -> Callable[[list[Traced]], Traced]:
    def rule(operands: list[Traced]) -> Traced:
        x = operands[0].plain()
        return new(x, x.builder.formal(name, x.node))

    return rule


def add_rule(n: int) -> Callable[[list[Traced]], Traced]:
    """a + n b; entries that are −∞ stay so, and a maximum that is subtracted from its scores is remembered only."""

    def rule(operands: list[Traced]) -> Traced:
        a, b = operands
        builder = a.builder
        if n < 0 and b.shift is not None and b.shift.is_of(a.node, a.shape):
            return new(a, a.node, a.lost, b.shift.spread(a.shape).become("subtracted"))
        if b.lost is not None and n < 0:
            raise InputError("−∞ subtracted while tracing; masks are added, or set with np.where(mask, x, -np.inf)")
        a, b = a.unshifted(), b.unshifted()
        node = builder.add(a.node, b.node, 1, n)
        lost = None
        for x in (a, b):
            if x.lost is not None:
                flags = np.broadcast_to(x.lost, builder.shape(node))
                lost = flags if lost is None else lost | flags
        return new(a, node, lost)

    return rule


def multiply_rule(operands: list[Traced]) -> Traced:
    a, b = operands
    node = a.builder.multiply(a.node, b.node)
    shape = a.builder.shape(node)
    for own, factor in ((a, b), (b, a)):
        shift = None if own.shift is None else own.shift.spread(shape)
        if shift is not None and shift.kind == "divided" and factor.shift is None and factor.lost is None:
            return new(a, node, None, shift)
        if own.lost is not None or (shift is not None and shift.kind == "subtracted"):
            scale = exact_fraction(factor)
            if scale is not None and scale > 0 and factor.size == 1:
                return new(a, node, own.lost, None if shift is None else shift.times(scale))
    x, y = a.plain(), b.plain()
    return new(a, node if x is a and y is b else a.builder.multiply(x.node, y.node))


def divide_rule(operands: list[Traced]) -> Traced:
    a, b = operands
    if a.shift is not None and b.shift is not None and a.shift.cancels(b.shift):
        return new(a, a.builder.divide(a.node, b.node))
    if b.lost is None and b.shift is None and exact_fraction(b):
        return multiply_rule([a, new(b, b.builder.inverse(b.node))])
    a, b = a.plain(), b.plain()
    return new(a, a.builder.divide(a.node, b.node))


def exp_rule(operands: list[Traced]) -> Traced:
    """exp; of −∞ it is 0, and of scores minus their maximum it is exp(scores), divided by what will cancel."""
    x = operands[0]
    node = x.builder.exp(x.node)
    if x.lost is not None:
        numbers = np.where(x.lost, 0, x.builder.numbers([node])[0])
        node = x.builder.move([node], numbers)
    if x.shift is None:
        return new(x, node)
    if x.shift.kind != "subtracted":
        return exp_rule([x.plain()])
    return new(x, node, None, x.shift.become("divided"))


def power_rule(operands: list[Traced]) -> Traced:
    """x^n for a number n, or for an array of numbers, one after another; x^a = exp(a log x) for all other a."""
    x, exponent = (operand.plain() for operand in operands)
    powers = x.builder.exact(exponent.node)
    if powers is None:
        return np.exp(exponent * _logarithm(x))
    numbers = sorted({Fraction(number) for number in powers.ravel().tolist()})
    if len(numbers) == 1:
        return _to_the(x, numbers[0])
    total: Any = 0
    for number in numbers:
        total = total + _to_the(x, number) * np.array(powers == number, dtype=np.int64)
    return total


def _to_the(x: Traced, number: Fraction) -> Traced:
    if number.denominator <= 2:
        return new(x, x.builder.power(x.node, number))
    return np.exp(np.log(x) * new(x, x.builder.constant(np.array(number, dtype=object))))


def _logarithm(x: Traced) -> Traced:
    """log x; of a number as a sum of floats for its primes, so that 6^a is 2^a 3^a."""
    base = exact_fraction(x)
    if base is None:
        return np.log(x)
    if base <= 0:
        raise InputError(f"a power of {float(base):.6g} with an exponent that is data met; a positive base is required")
    whole: Any = sum((n * Fraction(float(np.log(q))) for q, n in prime_powers(base).items()), Fraction(0))
    return new(x, x.builder.constant(np.array(whole, dtype=object)))


def compare_rule(a_sign: int) -> Callable[[list[Traced]], Traced]:
    """a > b (sign 1) or a < b as a pattern of 0 and 1; ≥ is the same up to a set without inner points."""

    def rule(operands: list[Traced]) -> Traced:
        a, b = (x.plain() for x in operands)
        return new(a, a.builder.positive(a.builder.add(a.node, b.node, a_sign, -a_sign)))

    return rule


def extreme_rule(sign: int) -> Callable[[list[Traced]], Traced]:
    def rule(operands: list[Traced]) -> Traced:
        a, b = (x.plain() for x in operands)
        builder = a.builder
        left, right = (builder.scale(x.node, sign) for x in (a, b))
        return new(a, builder.scale(builder.maximum(left, right), sign))

    return rule


def absolute_rule(operands: list[Traced]) -> Traced:
    x = operands[0].plain()
    b = x.builder
    return new(x, b.multiply(b.add(b.positive(x.node), b.constant(1), 2, -1), x.node))


def sign_rule(operands: list[Traced]) -> Traced:
    x = operands[0].plain()
    return new(x, x.builder.add(x.builder.positive(x.node), x.builder.constant(1), 2, -1))


def truth_rule(function: Callable[..., Any]) -> Callable[[list[Traced]], Traced]:
    """A function of truth values, which are 0 and 1."""
    return lambda operands: function(*(x.plain() for x in operands))


def derived(function: Callable[[Any], Any]) -> Callable[[list[Traced]], Traced]:
    """A function that is written with others."""
    return lambda operands: function(operands[0].plain())


def softplus(a: Any, b: Any) -> Any:
    """log(exp a + exp b)."""
    return np.log(np.exp(a) + np.exp(b))


def matmul(operands: list[Traced]) -> Traced:
    a, b = (x.plain() for x in operands)
    builder = a.builder
    if not a.ndim or not b.ndim:
        raise InputError("np.matmul of a number met while tracing; arrays with axes are required")
    left, right = a.node, b.node
    if a.ndim == 1:
        left = builder.reshape(left, (1, *a.shape))
    if b.ndim == 1:
        right = builder.reshape(right, (*b.shape, 1))
    x, y = builder.shape(left), builder.shape(right)
    if x[-1] != y[-2]:
        raise InputError(f"np.matmul of shapes {a.shape} and {b.shape} met; inner sizes must agree")
    try:
        batch = np.broadcast_shapes(x[:-2], y[:-2])
    except ValueError:
        raise InputError(f"np.matmul of shapes {a.shape} and {b.shape} met; they do not fit") from None
    letters = "abcdefghijklmnopqrstu"[: len(batch)]
    words, operands_, sizes = [], [], dict(zip(letters, batch))
    for node, shape, tail in ((left, x, "XY"), (right, y, "YZ")):
        axes = letters[len(batch) - len(shape) + 2 :]
        kept = "".join(l for l, n in zip(axes, shape[:-2]) if n == sizes[l])
        words.append(kept + tail)
        operands_.append(builder.reshape(node, [*(sizes[l] for l in kept), *shape[-2:]]))
    node = builder.contract(f"{words[0]},{words[1]}->{letters}XZ", *operands_)
    result = list(builder.shape(node))
    if a.ndim == 1:
        del result[-2]
    if b.ndim == 1:
        del result[-1]
    return new(a, builder.reshape(node, result))


UFUNCS: dict[str, Callable[[list[Traced]], Traced]] = {
    "add": add_rule(1),
    "subtract": add_rule(-1),
    "multiply": multiply_rule,
    "divide": divide_rule,
    "true_divide": divide_rule,
    "negative": derived(lambda x: new(x, x.builder.scale(x.node, -1))),
    "positive": lambda operands: operands[0],
    "conjugate": lambda operands: operands[0],
    "square": derived(lambda x: new(x, x.builder.multiply(x.node, x.node))),
    "power": power_rule,
    "float_power": power_rule,
    "reciprocal": unary("inverse"),
    "sqrt": unary("root"),
    "exp": exp_rule,
    "exp2": derived(lambda x: np.exp(x * float(np.log(2)))),
    "expm1": derived(lambda x: np.exp(x) - 1),
    "log": formal("log"),
    "log1p": derived(lambda x: np.log(1 + x)),
    "log2": derived(lambda x: np.log(x) / float(np.log(2))),
    "log10": derived(lambda x: np.log(x) / float(np.log(10))),
    "logaddexp": lambda operands: softplus(*(x.plain() for x in operands)),
    "sin": formal("sin"),
    "cos": formal("cos"),
    "tan": derived(lambda x: np.sin(x) / np.cos(x)),
    "tanh": unary("tanh"),
    "sinh": derived(lambda x: (np.exp(x) - np.exp(-x)) / 2),
    "cosh": derived(lambda x: (np.exp(x) + np.exp(-x)) / 2),
    "expit": unary("sigmoid"),
    "ndtr": formal("gauss"),
    "erf": derived(lambda x: 2 * new(x, x.builder.formal("gauss", (x * float(np.sqrt(2))).node)) - 1),
    "absolute": absolute_rule,
    "fabs": absolute_rule,
    "sign": sign_rule,
    "maximum": extreme_rule(1),
    "fmax": extreme_rule(1),
    "minimum": extreme_rule(-1),
    "fmin": extreme_rule(-1),
    "greater": compare_rule(1),
    "less": compare_rule(-1),
    "greater_equal": compare_rule(1),
    "less_equal": compare_rule(-1),
    **dict.fromkeys(("logical_and", "bitwise_and"), truth_rule(lambda a, b: a * b)),
    **dict.fromkeys(("logical_or", "bitwise_or"), truth_rule(lambda a, b: a + b - a * b)),
    **dict.fromkeys(("logical_xor", "bitwise_xor"), truth_rule(lambda a, b: a + b - 2 * (a * b))),
    **dict.fromkeys(("logical_not", "invert"), truth_rule(lambda a: 1 - a)),
    "matmul": matmul,
}
"""Ufuncs by name, those of scipy.special too."""
