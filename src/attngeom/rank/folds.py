"""Other coordinates behind a norm with gain: W = W' diag(1/g) and b = b' − Wβ, so that W(gx + β) + b = W'x + b'.

The change of coordinates is invertible where no entry of g is 0, so that the functions near generic weights stay the
same, and with them D. Fields that are rational before become linear: what a centred norm does not see is W' += c 1ᵀ, of
which W += c/g and b −= c Σ β/g were the former coordinates. It helps where the gain itself is no gauge, because the
output of the norm goes elsewhere too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.programs.builder import Builder
from attngeom.programs.program import Node, Program
from attngeom.rank.slices import classify


@dataclass(frozen=True)
class Fold:
    """A matrix that is contracted, along ``axis``, with a normed vector times ``gain`` (plus ``shift``).

    ``bias`` is added to the result; without a shift there need not be one.
    """

    matrix: str
    axis: int
    gain: str
    shift: str | None = None
    bias: str | None = None


def find_folds(program: Program) -> list[Fold]:
    """The matrices behind a norm with gain, each once; with a shift those alone whose product has a bias.

    >>> from attngeom.programs import trace
    >>> def network(w, x):
    ...     h = w["g"] * ((x - x.mean()) / np.sqrt(x.var() + 1))
    ...     return h + w["W"] @ h
    >>> find_folds(trace(network, 2, weights={"W": (2, 2), "g": 2}))
    [Fold(matrix='W', axis=1, gain='g', shift=None, bias=None)]
    """
    kinds, folds, taken = classify(program), dict[str, Fold](), set[str]()
    users: dict[int, list[int]] = {}
    for place, node in enumerate(program.nodes):
        for source in node.inputs:
            users.setdefault(source, []).append(place)
    for place, node in enumerate(program.nodes):
        if node.operation != "contract" or len(node.inputs) != 2:
            continue
        words = node.data["subscripts"].split("->")[0].split(",")
        for k in (0, 1):
            matrix, normed = _leaf(program, node.inputs[k]), _strip(program, node.inputs[1 - k])
            if matrix is None or len(matrix.shape) != 2 or kinds[normed] != "normalised":
                continue
            gain, shift = _affine(program, normed, kinds)
            axis = _contracted_axis(program, node.inputs[k], words[k], words[1 - k], node)
            if gain is None or axis is None or matrix.shape[axis] != gain.shape[0]:
                continue
            bias = _bias(program, place, users, matrix.shape[1 - axis])
            if shift is not None and bias is None:
                continue
            names = [x.data["name"] for x in (matrix, gain, shift, bias) if x is not None]
            own = {names[0]} | ({bias.data["name"]} if shift is not None and bias is not None else set())
            others = {x.gain for x in folds.values()} | {x.shift for x in folds.values()}
            if len(set(names)) == len(names) and not own & (taken | others) and not set(names) & taken:
                taken |= own
                folds[names[0]] = Fold(
                    names[0],
                    axis,
                    gain.data["name"],
                    None if shift is None else shift.data["name"],
                    None if shift is None or bias is None else bias.data["name"],
                )
    return list(folds.values())


def fold(program: Program, folds: Sequence[Fold]) -> Program:
    """The program in the other coordinates; names and shapes of the weights stay."""
    builder, numbers = Builder(), dict[int, int]()
    own = {place: program.nodes[place] for place in program.places("parameter")}
    leaves = {node.data["name"]: builder.parameter(node.data["name"], node.shape) for node in own.values()}
    replaced = dict(leaves)
    for item in folds:
        inverse = builder.inverse(leaves[item.gain])
        letters = "ij"
        replaced[item.matrix] = builder.contract(f"ij,{letters[item.axis]}->ij", leaves[item.matrix], inverse)
        if item.shift is not None and item.bias is not None:
            words = f"ij,{letters[item.axis]}->{letters[1 - item.axis]}"
            moved = builder.contract(words, replaced[item.matrix], leaves[item.shift])
            replaced[item.bias] = builder.subtract(leaves[item.bias], moved)
    for place, node in enumerate(program.nodes):
        known = place in own
        numbers[place] = replaced[node.data["name"]] if known else builder.copy(node, numbers)
    return builder.build(numbers[program.output])


def _strip(program: Program, place: int) -> int:
    """The array behind index work on it alone."""
    node = program.nodes[place]
    return _strip(program, node.inputs[0]) if node.operation == "gather" and len(node.inputs) == 1 else place


def _leaf(program: Program, place: int) -> Node | None:
    node = program.nodes[_strip(program, place)]
    return node if node.operation == "parameter" else None


def _affine(program: Program, place: int, kinds: Sequence[str]) -> tuple[Node | None, Node | None]:
    """The gain and the shift of an array g x + β with a normed x, as leaves."""
    node, shift = program.nodes[place], None
    if node.operation == "add" and node.data["coefficients"] == (1, 1):
        leaves = [_leaf(program, k) for k in node.inputs]
        if (leaves[0] is None) == (leaves[1] is None):
            return None, None
        shift = leaves[0] or leaves[1]
        node = program.nodes[_strip(program, node.inputs[0 if leaves[0] is None else 1])]
    if node.operation != "contract" or len(node.inputs) != 2:
        return None, None
    vectors = [leaf for leaf in (_leaf(program, k) for k in node.inputs) if leaf is not None and len(leaf.shape) == 1]
    gain = vectors[0] if len(vectors) == 1 else None
    return (None, None) if shift is not None and len(shift.shape) != 1 else (gain, shift)


def _contracted_axis(program: Program, place: int, word: str, other: str, node: Node) -> int | None:
    """The axis of the matrix that is summed over in a contraction, through transposition."""
    out = node.data["subscripts"].split("->")[1]
    summed = [k for k, letter in enumerate(word) if letter in other and letter not in out]
    if len(summed) != 1:
        return None
    shape = program.nodes[_strip(program, place)].shape
    numbers = np.arange(shape[0] * shape[1])
    operand = program.nodes[place]
    if operand.operation == "gather":
        numbers = operand.data["index"]
    moved = np.moveaxis(numbers.reshape(operand.shape), summed[0], 0)
    if len(moved) < 2 or (moved < 0).any():
        return None
    steps = set((moved[1] - moved[0]).ravel().tolist())
    return {(1,): 1, (shape[1],): 0}.get(tuple(steps)) if len(steps) == 1 and shape[1] != 1 else None


def _bias(program: Program, place: int, users: dict[int, list[int]], size: int) -> Node | None:
    """The vector of this length that is added to an array."""
    for user in users.get(place, []):
        node = program.nodes[user]
        if node.operation == "gather":
            bias = _bias(program, user, users, size)
            if bias is not None:
                return bias
        elif node.operation == "add" and node.data["coefficients"] == (1, 1):
            for source in node.inputs:
                leaf = _leaf(program, source)
                if leaf is not None and leaf.shape == (size,):
                    return leaf
    return None
