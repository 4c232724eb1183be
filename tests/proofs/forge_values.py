"""Forged programs whose functions have relations: what is claimed to be one dimension more is 0 by an identity."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from attngeom.errors import FormatError, SizeError
from attngeom.verification.interpreter import Interpreter
from attngeom.verification.programs import CheckedProgram
from tests.proofs.mutations import Record


class Nodes:
    """A list of nodes of scalars; what is named by a number is a node."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    def put(self, operation: str, inputs: list[int], **data: Any) -> int:
        self.rows.append([operation, inputs, [], data])
        return len(self.rows) - 1

    def number(self, x: Any) -> int:
        return self.put("constant", [], entries=[str(x)])

    def add(self, a: int, b: int, m: int = 1, n: int = 1) -> int:
        return self.put("add", [a, b], coefficients=[m, n])

    def times(self, a: int, *others: int) -> int:
        for b in others:
            a = self.put("contract", [a, b], subscripts=",->")
        return a

    def of(self, name: str, x: int) -> int:
        return self.put("root", [x]) if name == "root" else self.put("formal", [x], name=name)

    def minus(self, x: int) -> int:
        return self.add(x, x, 0, -1)


def logarithm_of_a_product(b: Nodes, u: int, v: int, k: int) -> int:
    total = b.add(b.of("log", b.times(u, *[v] * k)), b.of("log", u), 1, -1)
    return b.add(total, b.of("log", v), 1, -k)


def logarithm_of_a_multiple(b: Nodes, u: int, v: int, k: int) -> int:
    difference = b.add(b.of("log", b.times(b.number(k), u)), b.of("log", b.number(k)), 1, -1)
    return b.add(difference, b.of("log", u), 1, -1)


def exponential_of_a_logarithm(b: Nodes, u: int, v: int, k: int) -> int:
    return b.add(b.of("exp", b.add(b.of("log", u), v, k, 1)), b.times(b.of("exp", v), *[u] * k), 1, -1)


def half_a_logarithm(b: Nodes, u: int, v: int, k: int) -> int:
    half = b.of("exp", b.times(b.number(Fraction(1, 2 * k)), b.of("log", u)))
    return b.add(b.times(*[half] * k), b.of("root", u), 1, -1)


def logarithm_of_an_exponential(b: Nodes, u: int, v: int, k: int) -> int:
    return b.add(b.add(b.of("log", b.times(u, b.of("exp", v))), b.of("log", u), 1, -1), v, 1, -1)


def power_of_a_product(b: Nodes, u: int, v: int, k: int) -> int:
    first, second, whole = (b.of("log", x) for x in (u, v, b.times(u, v)))
    one, two, both = (b.of("exp", b.times(b.number(Fraction(k, 3)), x)) for x in (first, second, whole))
    return b.add(both, b.times(one, two), 1, -1)


def sum_of_angles(b: Nodes, u: int, v: int, k: int) -> int:
    def parts(x: int) -> tuple[int, int]:
        return b.of("sin", x), b.of("cos", x)

    (a, c), (d, e) = parts(u), parts(v)
    return b.add(b.of("sin", b.add(u, v)), b.add(b.times(a, e), b.times(c, d)), 1, -1)


def double_angle(b: Nodes, u: int, v: int, k: int) -> int:
    cos = b.of("cos", u)
    return b.add(b.add(b.of("cos", b.add(u, u)), b.times(cos, cos), 1, -2), b.number(1))


def opposite_integrals(b: Nodes, u: int, v: int, k: int) -> int:
    return b.add(b.add(b.of("gauss", u), b.of("gauss", b.minus(u))), b.number(1), 1, -1)


def shifted_exponential(b: Nodes, u: int, v: int, k: int) -> int:
    shifted = b.of("exp", b.add(b.of("log", b.number(k + 1)), v))
    return b.add(shifted, b.of("exp", v), 1, -k - 1)


def shifted_angle(b: Nodes, u: int, v: int, k: int) -> int:
    """With the logarithm of a number, or the cosine of an angle of its own class."""
    data = {"part": "cos", "classes": [0], "multiples": [1], "angles": [0.7]}
    shift = b.of("log", b.number(k + 1)) if k % 2 else b.put("circle", [], **data)
    return sum_of_angles(b, u, shift, k)


def root_of_a_square(b: Nodes, u: int, v: int, k: int) -> int:
    w = b.add(b.times(u, u), b.number(k))
    return b.add(b.of("root", b.times(w, w)), w, 1, -1)


def root_of_a_product(b: Nodes, u: int, v: int, k: int) -> int:
    a, c = b.add(b.times(u, u), b.number(k)), b.add(b.times(v, v), b.number(k + 1))
    return b.add(b.of("root", b.times(a, c)), b.times(b.of("root", a), b.of("root", c)), 1, -1)


Identity = Callable[[Nodes, int, int, int], int]
IDENTITIES: tuple[Identity, ...] = (
    logarithm_of_a_product, logarithm_of_a_multiple, exponential_of_a_logarithm, half_a_logarithm,
    logarithm_of_an_exponential, power_of_a_product, sum_of_angles, double_angle, opposite_integrals,
    shifted_exponential, shifted_angle, root_of_a_square, root_of_a_product,
)  # fmt: skip
"""Functions of two numbers that are 0 wherever both are positive, and k."""


def with_relations(record: Record, rng: random.Random) -> Record | None:
    """w times an identity of inputs, of weights, which are outputs beside it, or of numbers; in every other case one
    that holds in a piece of the claim alone, as 1[x > 0] or 1[a > 0] is 1 there."""
    b, kind, k = Nodes(), rng.choice(["input", "parameter", "constant", "both"]), rng.randrange(1, 5)
    w, x = b.put("parameter", [], name="w"), b.put("input", [], name="x")
    taken = {"input": ["input", "input"], "parameter": ["parameter"] * 2, "both": ["parameter", "input"]}
    if kind == "constant":
        u, v = b.number(Fraction(rng.randrange(1, 9), rng.randrange(1, 5))), b.number(rng.randrange(1, 9))
    else:
        u, v = (b.put(own, [], name=f"v{place}") for place, own in enumerate(taken[kind]))
    weights = [place for place in (u, v) if b.rows[place][0] == "parameter"]
    factor = w
    if kind != "constant" and rng.random() < 0.5:
        # u, and in other pieces something else.
        sign = b.put("pattern", [rng.choice([u, v, x])], kind="positive")
        other = b.add(b.number(1), sign, 1, -1)
        first, u = u, b.add(b.times(sign, u), b.times(other, b.add(u, b.number(k))))
        v, factor = rng.choice([(v, factor), (b.add(b.times(v, sign), b.times(other, first)), factor)])
        factor = b.times(factor, sign)
    b.times(factor, rng.choice(IDENTITIES)(b, u, v, k), x)
    size = 1 + len(weights)
    b.rows.append(["gather", [len(b.rows) - 1, *weights], [size], {"index": list(range(size))}])
    program = {"format": "attngeom/program", "version": 1, "nodes": b.rows, "output": len(b.rows) - 1}
    name = f"aimed/{rng.randrange(10**6)}"
    sample = first_sample(program, name)
    if sample is None:
        return None
    lower = {
        "point": name,
        "region": 0,
        "samples": [sample] * size,
        "outputs": list(range(size)),
        "columns": list(range(size)),
    }
    claim = {"kind": "network", "program": program, "dimension": size}
    return {"claim": claim, "witness": {"lower": lower, "upper": {"method": "weights"}}}


def first_sample(program: Record, name: str) -> list[int] | None:
    """A sample of one row at which w moves the output, by an interpreter that believes all values to be free."""
    interpreter = Interpreter(CheckedProgram.from_json(program), name)
    for index in range(12):
        sample = [index] * (interpreter.levels + 1)
        try:
            if interpreter.gradient(sample, 0)[0]:
                return sample
        except (FormatError, SizeError):
            continue
    return None
