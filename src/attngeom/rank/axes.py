"""What the axes of weights are for: which of them may be mixed, which of them only scaled, entry by entry.

Axes that a program identifies (letters of contractions, operands of sums) share what is known of them. An axis is
*given* where it is one of an input or of the output: nothing undoes a change there. It is *entrywise* where entries
meet one by one: products without sum, functions, patterns, constants. What this leaves out is looked for again, in
full, wherever the bounds of a rank do not meet; it only makes the search short.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.programs.program import Program

Axis = tuple[int, int]
"""A node and the number of an axis."""


@dataclass
class AxisRoles:
    """The roles of all axes of all nodes of a program.

    >>> from attngeom.programs import trace
    >>> roles = AxisRoles(trace(lambda w, x: w["B"] @ np.exp(w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)}))
    >>> roles.is_given(0, 1), roles.is_entrywise(0, 0), roles.is_entrywise(1, 1), roles.is_given(1, 1)
    (True, True, True, False)
    """

    program: Program
    _parent: dict[Axis, Axis] = field(default_factory=dict)
    _given: set[Axis] = field(default_factory=set)
    _entrywise: set[Axis] = field(default_factory=set)
    _summed: set[Axis] = field(default_factory=set)

    def __post_init__(self) -> None:
        program = self.program
        for place, node in enumerate(program.nodes):
            own = [(place, k) for k in range(len(node.shape))]
            if node.operation == "input":
                self._given.update(own)
            elif node.operation in ("constant", "circle"):
                self._entrywise.update(own)
            elif node.operation == "contract":
                self._contract(place)
            elif node.operation == "gather":
                for one, two in _kept_axes(program, place):
                    self._join(one, two)
            else:
                for source in node.inputs:
                    for k in range(min(len(own), len(program.nodes[source].shape))):
                        self._join(own[k], (source, k))
                if node.operation in ("root", "inverse", "formal", "pattern"):
                    self._entrywise.update(own)
        self._given.update((program.output, k) for k in range(len(program.nodes[program.output].shape)))
        self._given = {self._root(axis) for axis in self._given}
        self._entrywise = {self._root(axis) for axis in self._entrywise}
        self._summed = {self._root(axis) for axis in self._summed}

    def _root(self, axis: Axis) -> Axis:
        while self._parent.get(axis, axis) != axis:
            axis = self._parent[axis]
        return axis

    def _join(self, one: Axis, two: Axis) -> None:
        self._parent[self._root(one)] = self._root(two)

    def _contract(self, place: int) -> None:
        node = self.program.nodes[place]
        terms, out = node.data["subscripts"].split("->")
        words = [*zip(terms.split(","), node.inputs), (out, place)]
        for letter in set(terms) - {","}:
            axes = [(source, word.index(letter)) for word, source in words if letter in word]
            for other in axes[1:]:
                self._join(axes[0], other)
            if len(axes) == 3:
                self._entrywise.add(axes[0])
            if len(words) == 2 and letter not in out:
                self._summed.add(axes[0])

    def is_given(self, place: int, axis: int) -> bool:
        return self._root((place, axis)) in self._given

    def is_summed(self, place: int, axis: int) -> bool:
        """Whether entries are added up along the axis as they are: a mean, the denominator of a softmax."""
        return self._root((place, axis)) in self._summed

    def is_only_added(self, place: int) -> bool:
        """Whether a tensor is only added to others, by way of index work or not."""
        waiting = [place]
        while waiting:
            for user in self._users.get(waiting.pop(), ()):
                operation = self.program.nodes[user].operation
                if operation == "gather":
                    waiting.append(user)
                elif operation != "add":
                    return False
        return True

    @cached_property
    def _users(self) -> dict[int, list[int]]:
        users: dict[int, list[int]] = {}
        for place, node in enumerate(self.program.nodes):
            for source in node.inputs:
                users.setdefault(source, []).append(place)
        return users

    def is_entrywise(self, place: int, axis: int) -> bool:
        return self._root((place, axis)) in self._entrywise


def _kept_axes(program: Program, place: int) -> Iterator[tuple[Axis, Axis]]:
    """The axes of operands that index work keeps, with those that they become: moved, cut, split, joined, repeated."""
    node = program.nodes[place]
    index = node.data["index"].reshape(node.shape)
    used = index[index >= 0]
    once = len(np.unique(used)) == len(used)
    start = 0
    for source in node.inputs:
        shape = program.nodes[source].shape
        size = program.nodes[source].size
        inside = (index >= start) & (index < start + size)
        places = np.unravel_index(np.where(inside, index - start, 0), shape) if shape else ()
        for axis, coordinate in enumerate(places):
            varying = _varying(np.asarray(coordinate), inside)
            for other in varying if once or len(varying) == 1 else ():
                yield (source, axis), (place, other)
        start += size


def _varying(coordinate: Array, inside: Array) -> list[int]:
    """The axes of a table along which a coordinate varies."""
    axes = []
    for axis in range(coordinate.ndim):
        count = inside.shape[axis]
        both = np.take(inside, range(1, count), axis) & np.take(inside, range(count - 1), axis)
        if (both & (np.diff(coordinate, axis=axis) != 0)).any():
            axes.append(axis)
    return axes
