"""Programs as certificates hold them, read once more: a list of nodes ``[operation, earlier nodes, shape, data]``.

Nothing comes from the code that traced the program or searched. :mod:`attngeom.verification.interpreter` runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import pi, prod
from typing import Any

import numpy as np

from attngeom.errors import FormatError
from attngeom.limits.recheck import (
    ANGLE_DIGITS,
    PROGRAM_ANGLES,
    PROGRAM_ENTRIES,
    PROGRAM_NODES,
    RELATED_ANGLES,
    ROOTS_OF_UNITY,
)
from attngeom.verification.reading import read_integer, read_list, read_object, read_rational, show

FUNCTIONS = ("exp", "log", "gauss", "sin", "cos")
DATA = {
    "parameter": ("name",),
    "input": ("name",),
    "constant": ("entries",),
    "circle": ("part", "classes", "multiples", "angles"),
    "gather": ("index",),
    "contract": ("subscripts",),
    "add": ("coefficients",),
    "inverse": (),
    "root": (),
    "formal": ("name",),
    "pattern": ("kind",),
}
"""The operations, and what each needs besides earlier nodes."""


@dataclass(frozen=True, eq=False)
class CheckedNode:
    """One step of a program."""

    operation: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    data: Mapping[str, Any]

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, eq=False)
class CheckedProgram:
    """A list of nodes that was checked, and which of them is the output.

    >>> nodes = [["parameter", [], [2], {"name": "w"}]]
    >>> record = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": 0}
    >>> CheckedProgram.from_json(record).leaves("parameter")
    {'w': (2,)}
    """

    nodes: tuple[CheckedNode, ...]
    output: int

    def leaves(self, kind: str) -> dict[str, tuple[int, ...]]:
        """The shapes of all parameters, or inputs, by name."""
        return {node.data["name"]: node.shape for node in self.nodes if node.operation == kind}

    @property
    def count(self) -> int:
        """The number of weights."""
        return sum(map(prod, self.leaves("parameter").values()))

    def reached(self, kind: str) -> list[bool]:
        """For each node whether a leaf of this kind reaches it."""
        flags: list[bool] = []
        for node in self.nodes:
            flags.append(node.operation == kind or any(flags[k] for k in node.inputs))
        return flags

    def depths(self) -> list[int]:
        """For each node inside of how many exponentials it stands."""
        depths = [0] * len(self.nodes)
        for place in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[place]
            below = depths[place] + (node.operation == "formal" and node.data["name"] in ("exp", "gauss"))
            for k in node.inputs:
                depths[k] = max(depths[k], below)
        return depths

    @classmethod
    def from_json(cls, record: Any) -> CheckedProgram:
        """Read a program strictly."""
        content = read_object(record, ("format", "version", "nodes", "output"), "program")
        if content["format"] != "attngeom/program":
            raise FormatError("another format found; a program is required")
        read_integer(content["version"], 1, 1, "version of a program")
        rows = content["nodes"]
        if type(rows) is not list or not 0 < len(rows) <= PROGRAM_NODES:
            raise FormatError(f"a program of 1 to {PROGRAM_NODES:,} nodes is required")
        nodes: list[CheckedNode] = []
        total = 0
        for place, row in enumerate(rows):
            try:
                node = _read_node(row, nodes)
            except (ValueError, TypeError, KeyError, IndexError, ZeroDivisionError, OverflowError) as error:
                raise FormatError(f"node {place} of the program cannot be read: {str(error)[:80]}") from None
            total += node.size
            if total > PROGRAM_ENTRIES:
                raise FormatError(f"a program with at most {PROGRAM_ENTRIES:,} entries is required")
            nodes.append(node)
        names = [node.data["name"] for node in nodes if node.operation in ("parameter", "input")]
        if len(set(names)) < len(names):
            raise FormatError("two leaves with one name found; names must be unique")
        _check_angles([node.data["angles"] for node in nodes if node.operation == "circle"])
        return cls(tuple(nodes), read_integer(content["output"], 0, len(nodes) - 1, "output"))


def _read_node(row: Any, nodes: Sequence[CheckedNode]) -> CheckedNode:
    operation, inputs, shape, data = read_list(row, 4, "parts of a node")
    if type(operation) is not str or operation not in DATA:
        raise ValueError(f"operation {show(operation)} found")
    _require(type(inputs) is list and type(shape) is list, "a list of nodes, and one of sizes,")
    inputs = tuple(read_integer(k, 0, len(nodes) - 1, "node") for k in inputs)
    shape = tuple(read_integer(n, 1, PROGRAM_ENTRIES, "size") for n in shape)
    size = prod(shape)
    if size > PROGRAM_ENTRIES:
        raise ValueError("too many entries")
    content = dict(read_object(data, DATA[operation], "data of a node"))
    shapes = [nodes[k].shape for k in inputs]
    if operation in ("parameter", "input", "constant", "circle"):
        _require(not inputs, "a leaf takes no nodes")
    if operation in ("parameter", "input"):
        _require(type(content["name"]) is str and content["name"].isprintable(), "a printable name")
    elif operation == "constant":
        texts = read_list(content["entries"], size, "entries")
        _require(all(type(x) is str and len(x) < 2000 for x in texts), "entries are texts")
        content["entries"] = tuple(Fraction(int(x.p), int(x.q)) for x in map(read_rational, texts))
    elif operation == "circle":
        angles = content["angles"]
        _require(content["part"] in ("cos", "sin") and type(angles) is list, "circle points")
        _require(all(type(x) in (int, float) and 0 < abs(x) < 1e300 for x in angles), "angles other than 0")
        for key, low, high in (("classes", 0, len(angles) - 1), ("multiples", -(2**40), 2**40)):
            content[key] = tuple(read_integer(x, low, high, key) for x in read_list(content[key], size, key))
        content["angles"] = tuple(float(x) for x in angles)
    elif operation == "gather":
        total = sum(map(prod, shapes))
        places = [read_integer(k, -1, total - 1, "index") for k in read_list(content["index"], size, "index")]
        content["index"] = np.array(places, dtype=np.int64)
        _require(bool(inputs), "a gather takes nodes")
    elif operation == "contract":
        _require(shape == _contracted(content["subscripts"], shapes), "the shape of a contraction")
    elif operation == "add":
        factors = read_list(content["coefficients"], len(inputs), "coefficients")
        content["coefficients"] = tuple(read_integer(n, -(2**20), 2**20, "coefficient") for n in factors)
        _require(bool(inputs) and all(other == shape for other in shapes), "operands of one shape")
    else:
        _require(len(shapes) == 1, "one operand")
        expected = shapes[0]
        if operation == "formal":
            _require(content["name"] in FUNCTIONS, "a known function")
        if operation == "pattern":
            _require(content["kind"] in ("positive", "order"), "a known pattern")
            if content["kind"] == "order":
                expected = (*expected, expected[-1])
        _require(shape == expected, "the shape of the operand")
    return CheckedNode(operation, inputs, shape, content)


def _check_angles(tables: Sequence[tuple[float, ...]]) -> None:
    """One list of angles for all circle points; no ratio of two, or of one and π, is seen to be rational."""
    angles = tables[0] if tables else ()
    if any(other != angles for other in tables):
        raise FormatError("two lists of angles found; all circle points of a program must have the same")
    if len(angles) > PROGRAM_ANGLES:
        raise FormatError(f"{len(angles):,} classes of angles found; at most {PROGRAM_ANGLES} are possible")
    for x, y in combinations((pi, *angles), 2):
        ratio, less = abs(x / y), min(abs(x / y), abs(y / x))
        near = Fraction(less).limit_denominator(RELATED_ANGLES)
        n = round(2 * ratio) if x == pi else 0
        unit = 0 < n <= ROOTS_OF_UNITY and n & (n - 1) == 0 and abs(2 * ratio / n - 1) < ANGLE_DIGITS
        if unit or (near and abs(less / float(near) - 1) < ANGLE_DIGITS):
            raise FormatError(f"angles {x:.9g} and {y:.9g} found; classes must be independent over Q, and of pi")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} is required")


def _contracted(subscripts: Any, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of a contraction: letters of a word differ, and with two operands each is in two of the words."""
    _require(type(subscripts) is str and subscripts.count("->") == 1 and len(subscripts) < 200, "subscripts")
    terms, out = subscripts.split("->")
    words = terms.split(",")
    letters = "".join(words)
    _require(len(words) == len(shapes) and len(words) in (1, 2), "one word for each operand")
    _require(all(x.isascii() and x.isalpha() for x in letters + out) and set(out) <= set(letters), "letters")
    _require(all(len(set(word)) == len(word) for word in (*words, out)), "different letters")
    _require(len(words) == 1 or all(x in out or letters.count(x) == 2 for x in letters), "no outer sums")
    sizes: dict[str, int] = {}
    for word, shape in zip(words, shapes):
        _require(len(word) == len(shape), "one letter for each axis")
        _require(all(sizes.setdefault(x, n) == n for x, n in zip(word, shape)), "sizes that agree")
    return tuple(sizes[x] for x in out)
