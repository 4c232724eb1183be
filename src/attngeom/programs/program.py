"""A network as a program: named weights, inputs, and a list of nodes, each one operation of a small table.

A program is data. It has no code of its own: :mod:`attngeom.programs.operations` says what an operation does in every
domain, and :mod:`attngeom.programs.passes` runs all of them forwards and backwards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from attngeom.errors import FormatError, InputError
from attngeom.exact.arrays import Array
from attngeom.limits.memory import TRACED_ENTRIES
from attngeom.limits.sizes import TRACED_NODES

LEAVES = ("parameter", "input", "constant", "circle")


@dataclass(frozen=True, eq=False)
class Node:
    """One step y = operation(nodes of ``inputs``) of shape ``shape``; ``data`` is what the operation needs besides.

    ``data`` by operation: ``parameter`` and ``input`` (name), ``constant`` (exact entries), ``circle`` (class and
    multiple of each entry, "cos" or "sin", the angle of each class), ``gather`` (index), ``contract`` (subscripts),
    ``add`` (integers), ``formal`` (name of the function), ``pattern`` (its kind).
    """

    operation: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    data: Mapping[str, Any]

    @property
    def size(self) -> int:
        return prod(self.shape)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What equal nodes share: equal keys, equal values at every point."""
        return (self.operation, self.inputs, self.shape, json.dumps(_encode(self.data), sort_keys=True))


@dataclass(frozen=True, eq=False)
class Program:
    """f: Θ × X → Y as a list of nodes, each of which takes earlier ones; the last word is ``output``.

    ``parameters`` and ``inputs`` are the names and shapes of the leaves that vary, in the order of the weight vector.

    >>> from attngeom.programs import Builder
    >>> b = Builder()
    >>> w, x = b.parameter("w", (2, 3)), b.input("x", (3,))
    >>> program = b.build(b.contract("ij,j->i", w, x))
    >>> program.num_parameters, program.outputs, Program.from_json(program.to_json()).digest == program.digest
    (6, 2, True)
    """

    nodes: tuple[Node, ...]
    output: int
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What a reader of an answer about the program should know: what tracing left out."""

    def with_notes(self, *notes: str) -> Program:
        """The same program with these notes, each once."""
        return Program(self.nodes, self.output, tuple(dict.fromkeys(notes)))

    @cached_property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        return {node.data["name"]: node.shape for node in self.nodes if node.operation == "parameter"}

    @cached_property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        return {node.data["name"]: node.shape for node in self.nodes if node.operation == "input"}

    @property
    def num_parameters(self) -> int:
        return sum(map(prod, self.parameters.values()))

    @property
    def outputs(self) -> int:
        """The number of entries of the output."""
        return self.nodes[self.output].size

    @cached_property
    def offsets(self) -> dict[str, slice]:
        """The place of each tensor in the weight vector."""
        places, start = {}, 0
        for name, shape in self.parameters.items():
            places[name] = slice(start, start + prod(shape))
            start += prod(shape)
        return places

    @cached_property
    def exponents(self) -> dict[int, int]:
        """For each node that some exponential takes, directly or inside of others, how deep: 0 is not at all."""
        depth = [0] * len(self.nodes)
        for place in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[place]
            below = depth[place] + (node.operation == "formal" and node.data["name"] in ("exp", "gauss"))
            for source in node.inputs:
                depth[source] = max(depth[source], below)
        return dict(enumerate(depth))

    @cached_property
    def depends_on_input(self) -> tuple[bool, ...]:
        """For each node, whether an input reaches it."""
        return self._reached_by("input")

    @cached_property
    def depends_on_weights(self) -> tuple[bool, ...]:
        """For each node, whether a weight reaches it."""
        return self._reached_by("parameter")

    def _reached_by(self, leaf: str) -> tuple[bool, ...]:
        reached: list[bool] = []
        for node in self.nodes:
            reached.append(node.operation == leaf or any(reached[source] for source in node.inputs))
        return tuple(reached)

    @cached_property
    def sources(self) -> tuple[frozenset[str], ...]:
        """For each node the names of the inputs that reach it."""
        sources: list[frozenset[str]] = []
        for node in self.nodes:
            own = {node.data["name"]} if node.operation == "input" else set()
            sources.append(frozenset(own).union(*(sources[k] for k in node.inputs)))
        return tuple(sources)

    @cached_property
    def lone_roots(self) -> dict[int, str]:
        """The roots that rest on one input alone and on no function, with its name."""
        sources: list[frozenset[str]] = []
        for node in self.nodes:
            own = {node.data["name"]} if node.operation == "input" else set()
            if node.operation in ("formal", "pattern"):
                own = {"", *self.inputs}
            sources.append(frozenset(own).union(*(sources[k] for k in node.inputs)))
        return {place: next(iter(sources[place])) for place in self.places("root") if len(sources[place]) == 1}

    def degree_in_weights(self) -> int | None:
        """A bound for the degree of the output as a polynomial in the weights; None if it is no polynomial."""
        degrees: list[int] = []
        for node in self.nodes:
            own = [degrees[source] for source in node.inputs]
            if node.operation not in ("parameter", "input", "constant", "gather", "contract", "add"):
                return None
            whole = sum(own) if node.operation == "contract" else max(own, default=0)
            degrees.append(1 if node.operation == "parameter" else whole)
        return degrees[self.output]

    def places(self, operation: str) -> Iterator[int]:
        """The nodes with this operation."""
        return (place for place, node in enumerate(self.nodes) if node.operation == operation)

    def ancestors(self, places: Iterable[int]) -> set[int]:
        """Some nodes and all on which they rest."""
        needed = set(places)
        for place in range(max(needed, default=-1), -1, -1):
            if place in needed:
                needed.update(self.nodes[place].inputs)
        return needed

    def split(self, vector: Array) -> dict[str, Array]:
        """A vector of all weights as tensors; leading axes are kept."""
        return {
            name: vector[..., self.offsets[name]].reshape(*vector.shape[:-1], *shape)
            for name, shape in self.parameters.items()
        }

    def join(self, tensors: Mapping[str, Array], lead: int) -> Array:
        """Tensors with one leading axis of length 1 or ``lead`` as rows of length N."""
        parts = [np.broadcast_to(tensors[name], (lead, *shape)) for name, shape in self.parameters.items()]
        return np.concatenate([part.reshape(lead, -1) for part in parts], axis=1)

    def to_json(self) -> dict[str, Any]:
        """The program as a JSON object: operations, shapes, indices, exact constants."""
        nodes = [[n.operation, list(n.inputs), list(n.shape), _encode(n.data)] for n in self.nodes]
        return {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": self.output}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the JSON object, with sorted keys and without white space."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_json(cls, record: Any) -> Program:
        """Read a program strictly: every node is checked against its operation."""
        from attngeom.programs.operations import OPERATIONS

        expected = {"format", "version", "nodes", "output"}
        if not isinstance(record, Mapping) or set(record) != expected or record["format"] != "attngeom/program":
            raise FormatError(f"no program found; a JSON object with the keys {sorted(expected)} is required")
        rows = record["nodes"]
        if record["version"] != 1 or not isinstance(rows, list) or len(rows) > TRACED_NODES:
            raise FormatError(f"a program of version 1 with at most {TRACED_NODES:,} nodes is required")
        nodes: list[Node] = []
        total = 0
        for place, row in enumerate(rows):
            try:
                name, sources, shape, data = row
                operation = OPERATIONS[name]
                sources = tuple(sources)
                if not all(type(source) is int and 0 <= source < place for source in sources):
                    raise ValueError("a node takes earlier nodes")
                if not all(type(n) is int and n >= 0 for n in shape):
                    raise ValueError("a shape has natural numbers")
                total += prod(shape)
                if total > TRACED_ENTRIES:
                    raise ValueError(f"at most {TRACED_ENTRIES:,} entries are read")
                node = Node(name, sources, tuple(shape), _decode(data))
                operation.check(node, [nodes[source].shape for source in sources])
            except (ValueError, TypeError, KeyError, IndexError, InputError, ZeroDivisionError) as error:
                raise FormatError(f"node {place} of the program cannot be read: {str(error)[:80]}") from None
            nodes.append(node)
        output = record["output"]
        if type(output) is not int or not 0 <= output < len(nodes):
            raise FormatError(f"output {str(output)[:20]} found; the number of a node is required")
        names = [node.data["name"] for node in nodes if node.operation in ("parameter", "input")]
        if len(set(names)) < len(names):
            raise FormatError("two leaves with one name found; names must be unique")
        if len({node.data["angles"] for node in nodes if node.operation == "circle"}) > 1:
            raise FormatError("circle points with several lists of angles found; a program has one list of classes")
        return cls(tuple(nodes), output)


def _encode(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _encode_value(value) for key, value in data.items()}


def _encode_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, tuple) and value and isinstance(value[0], Fraction):
        return [str(x) for x in value]
    return list(value) if isinstance(value, tuple) else value


def _decode(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _decode_value(key, value) for key, value in data.items()}


def _decode_value(key: str, value: Any) -> Any:
    if key == "index":
        return np.array([_integer(x) for x in value], dtype=np.int64)
    if key == "entries":
        return tuple(Fraction(x) for x in value)
    if key in ("coefficients", "classes", "multiples"):
        return tuple(_integer(x) for x in value)
    if key == "angles":
        return tuple(float(x) for x in value)
    return _text(value)


def _integer(value: Any) -> int:
    if type(value) is not int or abs(value) >= 2**62:
        raise ValueError("integers are required")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("a text is required")
    return value
