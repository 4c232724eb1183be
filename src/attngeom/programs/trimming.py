"""The same function by a smaller program: of every node only the places that reach the output and are not always zero.

Networks compute more than they return: all tokens where the last one is asked for, whole chunks where most places are
padding. A node is restricted to a *box*, a set of places on each of its axes. Outside of it an entry is zero at all
weights and inputs, or nothing that the output rests on takes it; inside, it is the entry that it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.programs.arithmetic import RealArithmetic
from attngeom.programs.builder import Builder
from attngeom.programs.program import LEAVES, Node, Program

Box = tuple[Array, ...]
"""The places that are kept on each axis."""
View = Callable[[int, Sequence[Array]], int]


def trim(program: Program) -> Program:
    """A program with the same weights, inputs and output, whose nodes are restricted to their boxes.

    >>> b = Builder()
    >>> w, x = b.parameter("w", (3,)), b.input("x", (4, 3))
    >>> program = b.build(b.gather([b.multiply(w, b.exp(x))], [9, 10, 11]))
    >>> [node.shape for node in program.nodes], [node.shape for node in trim(program).nodes]
    ([(3,), (4, 3), (4, 3), (3, 4), (3,)], [(3,), (4, 3), (1, 3), (1, 3), (3, 1), (3,)])
    """
    boxes = _find_boxes(program, zero_entries(program))
    inner = [(node, box) for node, box in zip(program.nodes, boxes) if node.operation not in LEAVES]
    if all(box is not None and tuple(map(len, box)) == node.shape for node, box in inner):
        return program
    return _restrict(program, boxes)


def split_fused(program: Program) -> Program:
    """The same program with a tensor of its own for every part of a tensor that is read by itself.

    Parts are two or more rows start:stop of the first axis that no index work reads together with others: the queries
    in a fused projection whose keys and values read another input. Weights keep their order.

    >>> b = Builder()
    >>> w, x = b.parameter("w", (4,)), b.input("x", (2,))
    >>> program = b.build(b.contract("i,i->", b.gather([w], [0, 1]), b.multiply(b.exp(b.gather([w], [2, 3])), x)))
    >>> split_fused(program).parameters
    {'w[0:2]': (2,), 'w[2:4]': (2,)}
    """
    cuts = {place: cut for place in program.places("parameter") if len(cut := _find_cuts(program, place)) > 2}
    if not cuts:
        return program
    builder, numbers = Builder(), dict[int, list[int]]()
    for place, node in enumerate(program.nodes):
        if place in cuts:
            name, rest = node.data["name"], node.shape[1:]
            pairs = list(pairwise(cuts[place]))
            numbers[place] = [builder.parameter(f"{name}[{a}:{b}]", (b - a, *rest)) for a, b in pairs]
        elif set(node.inputs) & set(cuts):
            numbers[place] = [
                builder.gather([k for source in node.inputs for k in numbers[source]], node.data["index"])
            ]
        else:
            inputs = [numbers[source][0] for source in node.inputs]
            numbers[place] = [builder.append(node.operation, inputs, node.shape, **node.data)]
    return builder.build(numbers[program.output][0])


def _find_cuts(program: Program, place: int) -> list[int]:
    """Where the first axis of a tensor may be cut: no index work reads on both sides, and each row is read."""
    shape = program.nodes[place].shape
    users = [node for node in program.nodes if place in node.inputs]
    if not shape or any(node.operation != "gather" for node in users):
        return []
    width, inside = program.nodes[place].size // shape[0], np.zeros(shape[0] + 1, dtype=bool)
    is_read = np.zeros(shape[0], dtype=bool)
    for node in users:
        start = sum(program.nodes[source].size for source in node.inputs[: node.inputs.index(place)])
        index = node.data["index"].ravel() - start
        rows = np.unique(index[(index >= 0) & (index < width * shape[0])] // width)
        is_read[rows] = True
        if len(rows):
            inside[rows[0] + 1 : rows[-1] + 1] = True
    cuts = np.flatnonzero(~inside)
    return cuts.tolist() if is_read.all() and (np.diff(cuts) > 1).all() else []


def zero_entries(program: Program) -> list[Array]:
    """For each node which of its entries are zero at all weights and inputs, because no product there has a chance.

    >>> b = Builder()
    >>> [flags.tolist() for flags in zero_entries(b.build(b.gather([b.parameter("w", (2,))], [1, -1])))]
    [[False, False], [False, True]]
    """
    flags: list[Array] = []
    for node in program.nodes:
        inner = [flags[source] for source in node.inputs]
        if node.operation == "constant":
            own = np.array([x == 0 for x in node.data["entries"]], dtype=bool)
        elif node.operation == "gather":
            own = np.concatenate([*(x.ravel() for x in inner), [True]])[node.data["index"].ravel()]
        elif node.operation == "contract":
            own = ~_reached(node.data["subscripts"], [~x for x in inner])
        elif node.operation == "add":
            own = np.logical_and.reduce([x | (n == 0) for x, n in zip(inner, node.data["coefficients"])])
        else:
            own = np.zeros(node.shape, dtype=bool)
        flags.append(own.reshape(node.shape))
    return flags


def _reached(subscripts: str, present: Sequence[Array]) -> Array:
    """Where a contraction of entries that may differ from zero has a term."""
    numbers = [x[None].astype(np.float64) for x in present]
    return np.asarray(RealArithmetic().contract(subscripts, *numbers)[0] > 0)


def _find_boxes(program: Program, zeros: Sequence[Array]) -> list[Box | None]:
    """For each node the places on each axis that are needed, from the output back; the output is needed in whole."""
    needed = [np.zeros(node.shape, dtype=bool) for node in program.nodes]
    needed[program.output][...] = True
    boxes: list[Box | None] = [None] * len(program.nodes)
    for place in range(len(program.nodes) - 1, -1, -1):
        node = program.nodes[place]
        own = needed[place] if place == program.output else needed[place] & ~zeros[place]
        if not own.any():
            continue
        box = tuple(np.flatnonzero(own.any(axis=_others(own.ndim, axis))) for axis in range(own.ndim))
        if node.operation == "pattern" and node.data["kind"] == "order":
            # An order is that of all entries of the last axis.
            box = (*box[:-2], np.arange(node.shape[-2]), np.arange(node.shape[-1]))
        boxes[place] = box
        inside = np.zeros(node.shape, dtype=bool)
        inside[np.ix_(*box)] = True
        _need(program, node, inside & ~zeros[place], needed, zeros)
    return boxes


def _others(count: int, axis: int) -> tuple[int, ...]:
    return tuple(k for k in range(count) if k != axis)


def _need(program: Program, node: Node, own: Array, needed: list[Array], zeros: Sequence[Array]) -> None:
    """Mark the entries of the operands that these entries of a node take."""
    if node.operation == "gather":
        sizes = [program.nodes[source].size for source in node.inputs]
        used = np.zeros(sum(sizes) + 1, dtype=bool)
        used[node.data["index"].reshape(node.shape)[own]] = True
        for source, part in zip(node.inputs, np.split(used[:-1], np.cumsum(sizes)[:-1])):
            needed[source] |= part.reshape(needed[source].shape)
    elif node.operation == "contract":
        terms, out = node.data["subscripts"].split("->")
        words = terms.split(",")
        for k, source in enumerate(node.inputs):
            others = [(w, ~zeros[s]) for j, (w, s) in enumerate(zip(words, node.inputs)) if j != k]
            known = set(out).union(*(w for w, _ in others))
            word = "".join(letter for letter in words[k] if letter in known)
            subscripts = ",".join([out, *(w for w, _ in others)]) + "->" + word
            reached = _reached(subscripts, [own, *(x for _, x in others)])
            shape = [n if letter in known else 1 for letter, n in zip(words[k], program.nodes[source].shape)]
            needed[source] |= reached.reshape(shape)
    elif node.operation == "pattern" and node.data["kind"] == "order":
        needed[node.inputs[0]] |= np.asarray(own.any(axis=(-1, -2)))[..., None]
    else:
        for source in node.inputs:
            needed[source] |= own


def _whole(node: Node) -> Box:
    return tuple(map(np.arange, node.shape))


def _restrict(program: Program, boxes: Sequence[Box | None]) -> Program:
    builder, numbers = Builder(), dict[int, int]()
    own = [_whole(node) if node.operation in LEAVES else box for node, box in zip(program.nodes, boxes)]

    def view(source: int, places: Sequence[Array]) -> int:
        """An operand at some places of each axis; outside of its box it is zero."""
        box = own[source]
        if box is None:
            return builder.constant(np.zeros([len(x) for x in places], dtype=np.int64))
        table = np.full(program.nodes[source].shape, -1, dtype=np.int64)
        shape = [len(x) for x in box]
        table[np.ix_(*box)] = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
        return builder.gather([numbers[source]], table[np.ix_(*places)])

    for place, (node, box) in enumerate(zip(program.nodes, own)):
        if node.operation in LEAVES:
            numbers[place] = builder.append(node.operation, (), node.shape, **node.data)
        elif box is not None:
            numbers[place] = _restrict_node(builder, program, node, box, own, view)
    return builder.build(numbers[program.output])


def _restrict_node(
    builder: Builder, program: Program, node: Node, box: Box, boxes: Sequence[Box | None], view: View
) -> int:
    if node.operation == "gather":
        index = node.data["index"].reshape(node.shape)[np.ix_(*box)]
        return builder.gather([view(source, _whole(program.nodes[source])) for source in node.inputs], index)
    if node.operation == "contract":
        terms, out = node.data["subscripts"].split("->")
        words = terms.split(",")
        places = dict(zip(out, box))
        for word, source in zip(words, node.inputs):
            for letter, kept in zip(word, boxes[source] or ()):
                if letter not in out:
                    places[letter] = np.intersect1d(places.get(letter, kept), kept)
        if any(boxes[source] is None for source in node.inputs) or not all(map(len, places.values())):
            return builder.constant(np.zeros([len(x) for x in box], dtype=np.int64))
        operands = [view(source, [places[letter] for letter in word]) for word, source in zip(words, node.inputs)]
        return builder.contract(node.data["subscripts"], *operands)
    if node.operation == "pattern" and node.data["kind"] == "order":
        return builder.order(view(node.inputs[0], (*box[:-2], np.arange(node.shape[-1]))))
    operands = [view(source, box) for source in node.inputs]
    if node.operation == "add" and len(operands) == 2:
        return builder.add(*operands, *node.data["coefficients"])
    if node.operation == "add" and len(operands) == 1:
        return builder.scale(operands[0], node.data["coefficients"][0])
    if node.operation == "inverse":
        return builder.inverse(operands[0])
    if node.operation == "formal":
        return builder.formal(node.data["name"], operands[0])
    return builder.append(node.operation, operands, [len(x) for x in box], **node.data)
