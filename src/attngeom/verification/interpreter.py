"""Programs of certificates, run once more: residues of one sample at a time, from the definitions.

What an operation computes is said here again, and nothing comes from the code that traced the program or searched. The
definitions of what has no value mod p:

- Level k has the k-th prime p of ``PRIMES``; the next prime q divides p − 1. exp y = (2^((p − 1)/q))^(y mod q), where
  y mod q is the argument at the next level; the density of Φ is κ exp(−y²/2).
- A random function h of residues x has the first residue of the stream ``point/k/h/x``: log, gauss (Φ), kappa at 0,
  circle for sin and cos of ±x, angle at c for the c-th class of constant angles. A slope m is the point
  ((1 − m²)/(1 + m²), 2m/(1 + m²)) of the circle.
- √x = x^((p + 1)/4) where that is a root; it is missing otherwise, as 1/0 and everything that is computed from them.
- Patterns are those of floats at the real point ``rs/NAME``, ``rx.r/NAME``: (n − 2048)/1024, n mod 4097.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import erf, prod
from typing import Any

import numpy as np

from attngeom.errors import FormatError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.points import residues, stream
from attngeom.exact.rounding import rounding_errors
from attngeom.limits.recheck import SUMMED_RESIDUES
from attngeom.verification.budget import afford
from attngeom.verification.programs import CheckedNode, CheckedProgram

PRIMES = (4068479, 2034239, 1017119, 508559, 254279, 127139, 5779)
Values = list[tuple[Array, Array] | None]
"""For each node its entries mod p and which of them are missing."""


class Interpreter:
    """A program at one named point: values mod p, and gradients of linear forms on the output, sample by sample."""

    def __init__(self, program: CheckedProgram, name: str, region: int = 0, weights: str | None = None) -> None:
        """``weights``: another name for weights mod p."""
        self.program, self.name, self.region, self.weights = program, name, region, weights or name
        self.depths = program.depths()
        self.inputs = [node.data["name"] for node in program.nodes if node.operation == "input"]
        self.levels = min(max(self.depths), len(PRIMES) - 1)
        self._deeper: dict[tuple[int, ...], tuple[dict[int, Array], Values]] = {}

    def elsewhere(
        self, program: CheckedProgram | None = None, name: str | None = None, weights: str | None = None
    ) -> Interpreter:
        """Another program, point or name of weights; all else is the same."""
        return Interpreter(program or self.program, name or self.name, self.region, weights)

    def leading(self, a: Array) -> Array:
        """Residues as values of this interpreter."""
        return a

    def cost(self) -> int:
        """About how many products one sample takes."""
        total = 0
        for node in self.program.nodes:
            total += node.size
            if node.operation == "contract":
                sizes: dict[str, int] = {}
                for word, k in zip(node.data["subscripts"].split("->")[0].split(","), node.inputs):
                    sizes |= dict(zip(word, self.program.nodes[k].shape))
                total += prod(sizes.values())
        return total * (1 + self.levels)

    def values(self, sample: Sequence[int], lowest: int = 0) -> Values:
        """The values of all nodes at a sample, one index for each level."""
        patterns = self.patterns(sample[0])
        below: Values = []
        for level in range(self.levels, lowest - 1, -1):
            below = self.run_level(level, sample[level], below, patterns)
        return below

    def values_up_to(self, sample: Sequence[int], roots: Mapping[int, Array]) -> Values:
        """As :meth:`values`, and None from the first node on of whose marked entries one is missing.

        What lies below the first level is kept from one call to the next.
        """
        key = tuple(sample[1:])
        if key not in self._deeper:
            self._deeper[key] = (self.patterns(sample[0]), self.values(sample, 1) if self.levels else [])
        patterns, below = self._deeper[key]
        return self.run_level(0, sample[0], below, patterns, roots)

    def patterns(self, index: int) -> dict[int, Array]:
        """The patterns at the real point; FormatError where one is not that of an open region."""
        if not any(node.operation == "pattern" for node in self.program.nodes):
            return {}
        read: dict[int, Array] = {}
        results: list[Array] = []
        zeros: list[Array] = []
        errors: list[Array] = []
        with np.errstate(all="ignore"):
            for place, node in enumerate(self.program.nodes):
                inputs = [results[k] for k in node.inputs]
                if node.operation == "pattern":
                    source = node.inputs[0]
                    read[place] = _read_pattern(node.data["kind"], inputs[0], zeros[source], errors[source])
                    results.append(read[place].astype(float))
                else:
                    results.append(self._real(node, inputs, index))
                zeros.append(_zeros(node, [zeros[k] for k in node.inputs], results[-1]))
                bound = _errors(node, inputs, [errors[k] for k in node.inputs], results[-1])
                errors.append(np.where(zeros[-1], 0.0, bound))
        return read

    def _index(self, node: CheckedNode, index: int) -> int:
        """Which of the inputs of this name a sample has: that of the k-th one is hidden in the k-th 20 bits."""
        k = self.inputs.index(node.data["name"])
        return (index + (index >> 20 * k if k else 0)) % 2**20

    def _real(self, node: CheckedNode, inputs: list[Array], index: int) -> Array:
        data = node.data
        if node.operation in ("parameter", "input"):
            label = f"r{self.region}" if node.operation == "parameter" else f"rx.{self._index(node, index)}"
            return (residues(self.name, f"{label}/{data['name']}", node.shape, 4097) - 2048) / 1024
        if node.operation == "constant":
            return np.array([float(x) for x in data["entries"]]).reshape(node.shape)
        if node.operation == "circle":
            angle = np.array([data["angles"][c] * m for c, m in zip(data["classes"], data["multiples"])])
            return np.asarray(np.cos(angle) if data["part"] == "cos" else np.sin(angle)).reshape(node.shape)
        if node.operation == "gather":
            joined = np.concatenate([*(x.ravel() for x in inputs), [0.0]])
            return np.asarray(joined[data["index"]]).reshape(node.shape)
        if node.operation == "contract":
            return np.asarray(np.einsum(data["subscripts"], *inputs))
        if node.operation == "add":
            return np.asarray(sum(n * x for n, x in zip(data["coefficients"], inputs)))
        x = inputs[0]
        if node.operation == "inverse":
            return np.asarray(1 / x)
        if node.operation == "root":
            return np.sqrt(x)
        functions = {"exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos}
        if data["name"] in functions:
            return np.asarray(functions[data["name"]](x))
        return np.asarray(np.vectorize(lambda t: (1 + erf(t / 2**0.5)) / 2)(x))

    def run_level(
        self,
        level: int,
        index: int,
        below: Values,
        patterns: Mapping[int, Array],
        roots: Mapping[int, Array] | None = None,
    ) -> Values:
        """The values of one level above those below; None behind the first node whose marked entries are not there."""
        results: Values = []
        for place, node in enumerate(self.program.nodes):
            if self.depths[place] < level:
                results.append(None)
                continue
            inputs = [x for x in (results[k] for k in node.inputs) if x is not None]
            if place in patterns:
                results.append((self.leading(patterns[place].astype(np.int64)), np.zeros(node.shape, dtype=bool)))
            else:
                lower = below[node.inputs[0]] if node.operation == "formal" and below else None
                results.append(self._step(node, inputs, level, index, lower))
                last = results[-1]
                if roots is not None and place in roots and last is not None and last[1][roots[place]].any():
                    return results + [None] * (len(self.program.nodes) - len(results))
        return results

    def _step(
        self,
        node: CheckedNode,
        inputs: list[tuple[Array, Array]],
        level: int,
        index: int,
        lower: tuple[Array, Array] | None,
    ) -> tuple[Array, Array]:
        p, data, none = PRIMES[level], node.data, np.zeros(node.shape, dtype=bool)
        if node.operation in ("parameter", "input"):
            is_weight = node.operation == "parameter"
            label = f"w{level}" if is_weight else f"x{level}.{self._index(node, index)}"
            return residues(self.weights if is_weight else self.name, f"{label}/{data['name']}", node.shape, p), none
        if node.operation == "constant":
            if any(x.denominator % p == 0 for x in data["entries"]):
                raise FormatError(f"a constant whose denominator is divisible by {p} found")
            numbers = [x.numerator * pow(x.denominator, -1, p) % p for x in data["entries"]]
            return np.array(numbers, dtype=np.int64).reshape(node.shape), none
        if node.operation == "circle":
            points = [self._multiple(level, c, m) for c, m in zip(data["classes"], data["multiples"])]
            return np.array([z[data["part"] == "sin"] for z in points], dtype=np.int64).reshape(node.shape), none
        values, missing = [x for x, _ in inputs], [m for _, m in inputs]
        if node.operation == "gather":
            joined = np.concatenate([*(x.ravel() for x in values), [0]])[data["index"]].reshape(node.shape)
            return joined, np.concatenate([*(m.ravel() for m in missing), [False]])[data["index"]].reshape(node.shape)
        if node.operation == "contract":
            return contract(data["subscripts"], values, p), _spread(data["subscripts"], missing)
        if node.operation == "add":
            total = sum(n * x % p for n, x in zip(data["coefficients"], values))
            return np.asarray(total % p), np.logical_or.reduce(missing)
        x, gone = values[0], missing[0]
        if node.operation == "inverse":
            return _each(lambda t: pow(t, -1, p) if t else 0, x), gone | (x == 0)
        if node.operation == "root":
            y = _each(lambda t: pow(t, (p + 1) // 4, p), x)
            absent = gone | (y * y % p != x) | (x == 0)
            return np.where(absent, 0, y), absent
        y, lost = self._function(data["name"], x, level, lower)
        return np.where(gone | lost, 0, y), gone | lost

    def _function(self, name: str, x: Array, level: int, lower: tuple[Array, Array] | None) -> tuple[Array, Array]:
        """A formal function at residues, and where its argument one level down is missing."""
        p, none = PRIMES[level], np.zeros(x.shape, dtype=bool)
        if name == "exp":
            return self.exponential(level, x, lower, 1)
        if name == "log":
            return self._random(level, name, x), x == 0
        if name == "gauss":
            # Its density needs the argument one level down.
            return self._random(level, name, x), none if lower is None else lower[1]
        small = np.where(x > p // 2, p - x, x)
        points = [self._circle_point(level, self._first(level, "circle", int(t))) for t in small.ravel()]
        y = np.array([z[name == "sin"] for z in points], dtype=np.int64).reshape(x.shape)
        if name == "sin":
            y = np.where(x > p // 2, -y, np.where(x == 0, 0, y)) % p
        return y, none

    def exponential(self, level: int, x: Array, lower: tuple[Array, Array] | None, degree: int) -> tuple[Array, Array]:
        """exp x, or exp(−x²/2) for degree 2."""
        p = PRIMES[level]
        if lower is None or level + 1 >= len(PRIMES):
            raise SizeError("exponentials that are nested deeper than the chain of primes found")
        q = PRIMES[level + 1]
        exponent = lower[0] if degree == 1 else (lower[0] * lower[0] % q) * ((q - 1) // 2) % q
        base = pow(2, (p - 1) // q, p)
        return _each(lambda t: pow(base, t, p), exponent), lower[1]

    def _first(self, level: int, function: str, x: int) -> int:
        return next(stream(self.name, f"{level}/{function}/{x}", PRIMES[level]))

    def _random(self, level: int, function: str, x: Array) -> Array:
        return _each(lambda t: self._first(level, function, t), x)

    def _circle_point(self, level: int, slope: int) -> tuple[int, int]:
        p = PRIMES[level]
        scale = pow(1 + slope * slope, -1, p)
        return (1 - slope * slope) * scale % p, 2 * slope * scale % p

    def _multiple(self, level: int, number: int, multiple: int) -> tuple[int, int]:
        """The point of the circle of a multiple of the angle of a class."""
        p = PRIMES[level]
        a, b = self._circle_point(level, self._first(level, "angle", number))
        x, y = 1, 0
        for bit in bin(abs(multiple))[2:]:
            x, y = (x * x - y * y) % p, 2 * x * y % p
            if bit == "1":
                x, y = (x * a - y * b) % p, (x * b + y * a) % p
        return x, (-y % p if multiple < 0 else y)

    def gradient(self, sample: Sequence[int], output: int) -> Array:
        """The gradient mod p at a sample of a random form on the outputs that exist (output −1), or of one output."""
        program, p = self.program, PRIMES[0]
        values = self.values(sample)
        below = self.values(sample, 1) if self.levels else []
        last = values[program.output]
        assert last is not None
        shape = program.nodes[program.output].shape
        if output < 0:
            form = np.where(last[1], 0, residues(self.name, f"c{sample[0]}", shape, p))
        else:
            form = np.zeros(shape, dtype=np.int64)
            form.ravel()[output] = 1
            if last[1].ravel()[output]:
                raise FormatError("an output that does not exist at its sample found")
        if last[1].all():
            raise FormatError("a sample at which no output exists found")
        rows = self._pulled(form, values, below)
        parts = [rows.get(name, np.zeros(s, dtype=np.int64)).ravel() for name, s in program.leaves("parameter").items()]
        return np.concatenate(parts)

    def _pulled(self, form: Array, values: Values, below: Values) -> dict[str, Array]:
        """The cotangents of the weights that a linear form of the output meets."""
        program, p = self.program, PRIMES[0]
        back: list[Array | None] = [None] * len(program.nodes)
        back[program.output] = form
        rows = {}
        for place in range(program.output, -1, -1):
            node, arrived = program.nodes[place], back[place]
            if arrived is None:
                continue
            if node.operation == "parameter":
                rows[node.data["name"]] = arrived
            for k, part in self._pull(node, arrived, place, values, below):
                before = back[k]
                back[k] = part % p if before is None else (before + part) % p
        return rows

    def _pull(
        self, node: CheckedNode, arrived: Array, place: int, values: Values, below: Values
    ) -> Iterator[tuple[int, Array]]:
        """The cotangents of the operands: the transposed derivative of one operation."""
        p, data = PRIMES[0], node.data
        inputs = [x[0] for x in (values[k] for k in node.inputs) if x is not None]
        if node.operation == "gather":
            sizes = [x.size for x in inputs]
            total = np.zeros(sum(sizes) + 1, dtype=np.int64)
            np.add.at(total, data["index"], arrived.ravel())
            for k, x, part in zip(node.inputs, inputs, np.split(total[:-1], np.cumsum(sizes)[:-1])):
                yield k, part.reshape(x.shape)
        elif node.operation == "contract":
            terms, out = data["subscripts"].split("->")
            words = terms.split(",")
            if len(words) == 1:
                ones = np.ones([n for x, n in zip(words[0], inputs[0].shape) if x not in out], dtype=np.int64)
                rest = "".join(x for x in words[0] if x not in out)
                yield node.inputs[0], np.einsum(f"{out},{rest}->{words[0]}", arrived, ones)
            else:
                yield node.inputs[0], contract(f"{out},{words[1]}->{words[0]}", [arrived, inputs[1]], p)
                yield node.inputs[1], contract(f"{out},{words[0]}->{words[1]}", [arrived, inputs[0]], p)
        elif node.operation == "add":
            yield from ((k, arrived * n % p) for k, n in zip(node.inputs, data["coefficients"]))
        elif node.operation in ("inverse", "root", "formal"):
            own = values[place]
            assert own is not None
            slope = self._slope(node, inputs[0], own[0], below[node.inputs[0]] if below else None)
            yield node.inputs[0], arrived * np.where(own[1], 0, slope) % p

    def _slope(self, node: CheckedNode, x: Array, y: Array, lower: tuple[Array, Array] | None) -> Array:
        p = PRIMES[0]
        if node.operation == "inverse":
            return -y * y % p
        if node.operation == "root":
            return _each(lambda t: pow(2 * t, -1, p) if t else 0, y)
        name = node.data["name"]
        if name == "exp":
            return y
        if name == "log":
            return _each(lambda t: pow(t, -1, p) if t else 0, x)
        if name == "gauss":
            return self.exponential(0, x, lower, 2)[0] * self._first(0, "kappa", 0) % p
        other, _ = self._function("cos" if name == "sin" else "sin", x, 0, None)
        return other if name == "sin" else -other % p


def contract(subscripts: str, operands: Sequence[Array], p: int) -> Array:
    """A contraction mod p < 2^22: sums of at most 2^18 products fit into 64 bits."""
    terms, out = subscripts.split("->")
    summed = prod(n for x, n in zip(terms, operands[0].shape) if x not in out)
    if len(operands) == 2 and summed > SUMMED_RESIDUES:
        raise SizeError(
            f"a contraction that adds {summed:,} products found; at most {SUMMED_RESIDUES:,} are added exactly"
        )
    return np.asarray(np.einsum(subscripts, *operands) % p)


def _spread(subscripts: str, missing: Sequence[Array]) -> Array:
    """Where a contraction rests on something that is missing."""
    if not any(m.any() for m in missing):
        return np.asarray(np.einsum(subscripts, *(m.astype(np.int64) for m in missing)) > 0)
    total: Array | int = 0
    for place, flags in enumerate(missing):
        others = [
            np.ones_like(m, dtype=np.int64) if k != place else flags.astype(np.int64) for k, m in enumerate(missing)
        ]
        total = total + np.einsum(subscripts, *others)
    return np.asarray(total) > 0


def _each(function: Any, x: Array) -> Array:
    return np.array([function(int(t)) for t in x.ravel()], dtype=np.int64).reshape(x.shape)


def _zeros(node: CheckedNode, inner: list[Array], value: Array) -> Array:
    """Which entries of a node are zero in the whole region: multiplied by the 0 of a pattern, and sums of such."""
    if node.operation in ("pattern", "constant"):
        return np.asarray(value == 0)
    if node.operation == "gather":
        return np.asarray(np.concatenate([*(x.ravel() for x in inner), [True]])[node.data["index"]]).reshape(node.shape)
    if node.operation == "contract":
        return np.asarray(np.einsum(node.data["subscripts"], *((~x).astype(np.int64) for x in inner)) == 0)
    return np.logical_and.reduce(inner) if node.operation == "add" else np.zeros(node.shape, dtype=bool)


def _errors(node: CheckedNode, inputs: list[Array], errors: list[Array], value: Array) -> Array:
    """How far the floats of a node may be from the real numbers."""

    def contract(words: str, *operands: Array) -> Array:
        return np.asarray(np.einsum(words, *(x[0] for x in operands)))[None]

    numbers, bounds = [x[None] for x in inputs], [x[None] for x in errors]
    return np.asarray(rounding_errors(node.operation, node.data, numbers, bounds, value[None], contract)[0])


def _read_pattern(kind: str, x: Array, zeros: Array, errors: Array) -> Array:
    """The pattern of real numbers that are not 0, or differ; those that vanish in the whole region may be equal.

    FormatError where they are 0 or equal, SizeError where the errors of floats hide it.
    """
    order = np.argsort(-x, axis=-1, kind="stable") if kind == "order" else None
    if order is None:
        gaps = np.abs(x)[~zeros]
    else:
        gone = np.take_along_axis(zeros, order, axis=-1)
        gaps = -np.diff(np.take_along_axis(x, order, axis=-1), axis=-1)[~(gone[..., 1:] & gone[..., :-1])]
    if gaps.size and not gaps.min() > 2 * errors.max():
        if not errors.max():
            raise FormatError("a sign or an order that is not that of an open region found")
        raise SizeError("a sign or an order that rounding errors may hide found")
    return np.asarray(x > 0) if order is None else np.asarray(order[..., :, None] == np.arange(x.shape[-1]))


def afford_gradients(interpreter: Interpreter, count: int, limit: float) -> None:
    """Bound the work of gradients at so many samples."""
    afford(4 * count * interpreter.cost(), limit, "products for gradients of the program")
