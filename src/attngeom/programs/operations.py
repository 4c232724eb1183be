"""The table of operations: what each computes, how changes go forwards through it, how cotangents come back.

Every rule is written once and holds in every domain of :mod:`attngeom.programs.arithmetic`. Values, changes and
cotangents carry a leading axis of length 1 or of the number of samples, and no rule sums over it: what comes back to a
weight is one row of the Jacobian for each sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.programs.arithmetic import FUNCTIONS, Arithmetic, evaluate_pattern
from attngeom.programs.program import Node

Shapes = Sequence[tuple[int, ...]]
PATTERNS = ("positive", "order")


@dataclass
class Trace:
    """One node at one point: what went in, what came out, and what the rule for changes needs besides."""

    node: Node
    domain: Arithmetic
    values: list[Array]
    result: Array
    slope: Array | None = None
    sizes: list[int] = field(default_factory=list)


@dataclass
class Point:
    """Where a program runs: tensors of the leaves by name, the same arguments one level down, patterns of a region."""

    domain: Arithmetic
    tensors: dict[str, Array]
    below: dict[int, Array] = field(default_factory=dict)
    patterns: dict[int, Array] = field(default_factory=dict)


class Operation(ABC):
    """One row of the table. Changes that are None are zero."""

    name: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    arity: ClassVar[int | None] = 1

    def check(self, node: Node, shapes: Shapes) -> None:
        """InputError unless the node has the data and the shape that the operation gives."""
        if set(node.data) != set(self.keys):
            raise InputError(f"{self.name} with {sorted(node.data)} given; {sorted(self.keys)} are required")
        if self.arity is not None and len(shapes) != self.arity:
            raise InputError(f"{self.name} of {len(shapes)} operands given; {self.arity} are required")
        expected = self.shape(node, shapes)
        if expected is not None and expected != node.shape:
            raise InputError(f"{self.name} of shape {node.shape} given; {expected} is required")

    def shape(self, node: Node, shapes: Shapes) -> tuple[int, ...] | None:
        """The shape of the result; None if the node says it."""
        return shapes[0]

    @abstractmethod
    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        """The value of the node at a point."""

    def push(self, trace: Trace, changes: list[Array | None]) -> Array | None:
        """The change of the result, from those of the operands."""
        return None

    def pull(self, trace: Trace, cotangent: Array) -> list[Array | None]:
        """The cotangents of the operands, from that of the result."""
        return [None] * len(trace.values)


class Leaf(Operation):
    """A parameter or an input: its tensor at the point."""

    keys = ("name",)
    arity = 0

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def shape(self, node: Node, shapes: Shapes) -> None:
        if not isinstance(node.data["name"], str):
            raise InputError("a leaf without a name given; a text is required")

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        return Trace(node, point.domain, values, point.tensors[node.data["name"]])


class Constant(Operation):
    """Exact numbers."""

    name = "constant"
    keys = ("entries",)
    arity = 0

    def shape(self, node: Node, shapes: Shapes) -> None:
        if len(node.data["entries"]) != node.size:
            raise InputError(f"{len(node.data['entries'])} entries given; {node.size} are required")

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        return Trace(node, point.domain, values, point.domain.constant(node.data["entries"], node.shape))


class Circle(Operation):
    """Cosines or sines of multiples of angles that are independent over Q, one angle for each class."""

    name = "circle"
    keys = ("part", "classes", "multiples", "angles")
    arity = 0

    def shape(self, node: Node, shapes: Shapes) -> None:
        data, count = node.data, len(node.data["angles"])
        if data["part"] not in ("cos", "sin") or not len(data["classes"]) == len(data["multiples"]) == node.size:
            raise InputError("circle points with a class and a multiple for each entry are required")
        if not all(0 <= c < count for c in data["classes"]):
            raise InputError(f"the classes of circle points must lie below {count}")

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        data = node.data
        classes = np.array(data["classes"], dtype=np.int64)
        multiples = np.array(data["multiples"], dtype=np.int64)
        pair = point.domain.circle(classes, multiples, data["angles"])
        own = pair[data["part"] == "sin"].reshape(1, *node.shape)
        return Trace(node, point.domain, values, point.domain.leading(own))


class Gather(Operation):
    """y.flat = [x₁, …, x_k].flat[index], where −1 stands for 0."""

    name = "gather"
    keys = ("index",)
    arity = None

    def shape(self, node: Node, shapes: Shapes) -> None:
        index, total = node.data["index"], sum(map(prod, shapes))
        if not shapes or index.size != node.size:
            raise InputError(f"an index of {index.size} places given; {node.size} are required")
        if index.size and not (index.min() >= -1 and index.max() < total):
            raise InputError(f"an index outside −1 … {total - 1} given")

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        sizes = [value[0].size for value in values]
        return Trace(node, point.domain, values, self._take(node, values, sizes, point.domain), sizes=sizes)

    def push(self, trace: Trace, changes: list[Array | None]) -> Array | None:
        if all(change is None for change in changes):
            return None
        parts = [np.zeros_like(v[:1]) if c is None else c for c, v in zip(changes, trace.values)]
        return self._take(trace.node, parts, trace.sizes, trace.domain)

    @staticmethod
    def _take(node: Node, values: list[Array], sizes: list[int], domain: Arithmetic) -> Array:
        index, lead = node.data["index"].ravel(), max(map(len, values))
        flat = [np.broadcast_to(v.reshape(len(v), -1), (lead, n)) for v, n in zip(values, sizes)]
        if index.size and index.min() < 0:
            flat.append(np.broadcast_to(domain.constant([Fraction(0)], (1,)), (lead, 1)))
            index = np.where(index < 0, sum(sizes), index)
        joined = flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)
        return joined[:, index].reshape(lead, *node.shape)

    def pull(self, trace: Trace, cotangent: Array) -> list[Array | None]:
        total, lead = sum(trace.sizes), len(cotangent)
        index, flat = trace.node.data["index"].ravel(), cotangent.reshape(len(cotangent), -1)
        kept = index >= 0
        places = index[kept]
        if _is_injective(trace.node):
            back = np.zeros((lead, total), dtype=flat.dtype)
            back[:, places] = flat[:, kept]
        elif flat.dtype == object:
            back = np.zeros((lead, total), dtype=object)
            for source, column in zip(places.tolist(), np.flatnonzero(kept).tolist()):
                back[:, source] = back[:, source] + flat[:, column]
        else:
            order = np.argsort(places, kind="stable")
            targets, starts = np.unique(places[order], return_index=True)
            back = np.zeros((lead, total))
            back[:, targets] = np.add.reduceat(flat[:, np.flatnonzero(kept)[order]], starts, axis=1)
            back = trace.domain.reduce(back)
        cuts = np.cumsum(trace.sizes)[:-1]
        parts = np.split(back, cuts, axis=1)
        return [part.reshape(lead, *value.shape[1:]) for part, value in zip(parts, trace.values)]


@lru_cache(maxsize=4096)
def _is_injective(node: Node) -> bool:
    index = node.data["index"]
    places = index[index >= 0]
    return bool(len(np.unique(places)) == len(places))


class Contract(Operation):
    """The sum of products of one or two operands that subscripts such as ``ij,jk->ik`` say."""

    name = "contract"
    keys = ("subscripts",)
    arity = None

    def shape(self, node: Node, shapes: Shapes) -> tuple[int, ...]:
        """No letter occurs twice in a word; with two operands each one occurs in two of the three words."""
        terms, _, out = node.data["subscripts"].partition("->")
        words = terms.split(",")
        letters = "".join(words)
        if len(words) != len(shapes) or len(words) not in (1, 2) or not all(x.isalpha() for x in letters + out):
            raise InputError(f"subscripts {node.data['subscripts'][:40]!r} of {len(shapes)} operands given")
        if any(len(set(word)) < len(word) for word in (*words, out)) or not set(out) <= set(letters):
            raise InputError(f"subscripts {node.data['subscripts'][:40]!r} given; letters of a word must differ")
        sizes: dict[str, int] = {}
        for word, shape in zip(words, shapes):
            if len(word) != len(shape) or any(sizes.setdefault(x, n) != n for x, n in zip(word, shape)):
                raise InputError(f"subscripts {node.data['subscripts'][:40]!r} given for shapes {list(shapes)}")
        if len(words) == 2 and any(x not in out and letters.count(x) < 2 for x in letters):
            raise InputError(f"subscripts {node.data['subscripts'][:40]!r} given; sum over one operand first")
        return tuple(sizes[x] for x in out)

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        return Trace(node, point.domain, values, point.domain.contract(node.data["subscripts"], *values))

    def push(self, trace: Trace, changes: list[Array | None]) -> Array | None:
        subscripts, total = trace.node.data["subscripts"], None
        for place, change in enumerate(changes):
            if change is None:
                continue
            operands = [change if k == place else value for k, value in enumerate(trace.values)]
            part = trace.domain.contract(subscripts, *operands)
            total = part if total is None else trace.domain.reduce(total + part)
        return total

    def pull(self, trace: Trace, cotangent: Array) -> list[Array | None]:
        terms, out = trace.node.data["subscripts"].split("->")
        if len(trace.values) == 1:
            order = [out.index(letter) for letter in terms if letter in out]
            back = np.transpose(cotangent, (0, *(1 + k for k in order)))
            shape = [n if letter in out else 1 for letter, n in zip(terms, trace.values[0].shape[1:])]
            full = (len(cotangent), *trace.values[0].shape[1:])
            return [np.broadcast_to(back.reshape(len(cotangent), *shape), full)]
        left, right = terms.split(",")
        a, b = trace.values
        contract = trace.domain.contract
        return [contract(f"{out},{right}->{left}", cotangent, b), contract(f"{out},{left}->{right}", cotangent, a)]


class Sum(Operation):
    """Σ n_k x_k with integers n_k, for operands of one shape."""

    name = "add"
    keys = ("coefficients",)
    arity = None

    def shape(self, node: Node, shapes: Shapes) -> tuple[int, ...]:
        if not shapes or len(set(shapes)) > 1 or len(node.data["coefficients"]) != len(shapes):
            raise InputError("a sum of operands of one shape with one integer each is required")
        if any(abs(n) >= 2**20 for n in node.data["coefficients"]):
            raise InputError("the integers of a sum must lie below 2^20; use a constant and a product")
        return shapes[0]

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        return Trace(node, point.domain, values, self._sum(node, point.domain, list(values)))

    def push(self, trace: Trace, changes: list[Array | None]) -> Array | None:
        if all(change is None for change in changes):
            return None
        return self._sum(trace.node, trace.domain, changes)

    @staticmethod
    def _sum(node: Node, domain: Arithmetic, values: Sequence[Array | None]) -> Array:
        terms = [_scale(v, n) for v, n in zip(values, node.data["coefficients"]) if v is not None]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return domain.reduce(total)

    def pull(self, trace: Trace, cotangent: Array) -> list[Array | None]:
        return [trace.domain.reduce(_scale(cotangent, n)) for n in trace.node.data["coefficients"]]


def _scale(x: Array, n: int) -> Array:
    return x if n == 1 else -x if n == -1 else x * n


class Pointwise(Operation):
    """A function of each entry, with its derivative as ``slope``."""

    def push(self, trace: Trace, changes: list[Array | None]) -> Array | None:
        assert trace.slope is not None
        return None if changes[0] is None else trace.domain.times(changes[0], trace.slope)

    def pull(self, trace: Trace, cotangent: Array) -> list[Array | None]:
        assert trace.slope is not None
        return [trace.domain.times(cotangent, trace.slope)]


class Inverse(Pointwise):
    """1/x, with derivative −1/x²."""

    name = "inverse"

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        value = point.domain.invert(values[0])
        return Trace(node, point.domain, values, value, -point.domain.times(value, value))


class Root(Pointwise):
    """√x, with derivative 1/(2√x)."""

    name = "root"

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        domain = point.domain
        value = domain.root(values[0])
        return Trace(node, domain, values, value, domain.half(domain.invert(value)))


class Formal(Pointwise):
    """A function that is given by its differential equation: exp, log, gauss (Φ), sin, cos."""

    name = "formal"
    keys = ("name",)

    def check(self, node: Node, shapes: Shapes) -> None:
        super().check(node, shapes)
        if node.data["name"] not in FUNCTIONS:
            raise InputError(f"function {node.data['name']!r} given; one of {', '.join(FUNCTIONS)} is required")

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        value, slope = point.domain.function(node.data["name"], values[0], point.below.get(place))
        return Trace(node, point.domain, values, value, slope)


class Pattern(Operation):
    """0 or 1, constant on a region: where x is positive, or which entry of the last axis has which place in its order.

    ``order``: y[…, k, i] = 1 if x[…, i] is the k-th largest. Its derivative is zero.
    """

    name = "pattern"
    keys = ("kind",)

    def shape(self, node: Node, shapes: Shapes) -> tuple[int, ...]:
        if node.data["kind"] not in PATTERNS or (node.data["kind"] == "order" and not shapes[0]):
            raise InputError(f"pattern {str(node.data['kind'])[:20]!r} given; one of {', '.join(PATTERNS)} is required")
        return shapes[0] if node.data["kind"] == "positive" else (*shapes[0], shapes[0][-1])

    def run(self, node: Node, values: list[Array], point: Point, place: int) -> Trace:
        value = point.patterns.get(place)
        if value is None:
            value = evaluate_pattern(node.data["kind"], values[0])
        if values[0].dtype == object:
            value = value.astype(np.int64).astype(object)
        return Trace(node, point.domain, values, point.domain.leading(value))


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Leaf("parameter"),
        Leaf("input"),
        Constant(),
        Circle(),
        Gather(),
        Contract(),
        Sum(),
        Inverse(),
        Root(),
        Formal(),
        Pattern(),
    )
}
"""The whole instruction set. A new operation is a class above and a row here; tests read the table."""
