"""Slices: gains and biases of norms that proven symmetries move freely are fixed to 1 and 0.

If the fields are independent on the fixed entries at a point of the slice, then the group times the slice contains an
open set, so that the slice has the same functions: D stays, and the fiber is what was fixed plus the orbits of the
slice. Fields that are rational before (the centring of weights behind a gain, rotations of latents behind one) are
linear there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact.residues import BalancedResidues, Elimination
from attngeom.programs.builder import Builder
from attngeom.programs.program import Node, Program
from attngeom.rank.lower import find_point
from attngeom.rank.search import Field, evaluate_fields


@dataclass(frozen=True)
class Slice:
    """A program with some tensors fixed to 0 or 1, and how many numbers that are."""

    program: Program
    fixed: Mapping[str, int]
    count: int


def find_slice(program: Program, fields: Sequence[Field], seed: int) -> Slice | None:
    """The slice of all gains and biases of norms that these fields move freely; None if there are none.

    >>> from attngeom.programs import trace
    >>> norm = lambda x: x / np.sqrt((x * x).mean() + 1)
    >>> program = trace(lambda w, x: w["W"] @ (norm(x) * w["g"]), 2, weights={"W": (2, 2), "g": 2})
    >>> find_slice(program, [], 0) is None, gains_and_biases(program)
    (True, {'g': 1})
    """
    fixed: dict[str, int] = {}
    for name, number in gains_and_biases(program).items():
        if _moves_freely(program, fields, {**fixed, name: number}, seed):
            fixed[name] = number
    if not fixed or len(fixed) == len(program.parameters):
        return None
    count = sum(program.offsets[name].stop - program.offsets[name].start for name in fixed)
    return Slice(fix_weights(program, fixed), fixed, count)


def _moves_freely(program: Program, fields: Sequence[Field], fixed: Mapping[str, int], seed: int) -> bool:
    """Whether the fields are independent on the fixed entries at a point of the slice."""
    point = find_point(program, seed)
    residues = BalancedResidues(point.prime)
    weights = residues.to_integers(program.join(point.weights(), 1))[0]
    columns: list[int] = []
    for name, number in fixed.items():
        weights[program.offsets[name]] = number
        columns += range(program.offsets[name].start, program.offsets[name].stop)
    if len(fields) < len(columns):
        return False
    values = residues.from_residues(evaluate_fields(fields, weights, point.prime)[:, columns])
    return Elimination(values.copy(), point.prime, keep_upper=False).run().rank == len(columns)


def fix_weights(program: Program, fixed: Mapping[str, int]) -> Program:
    """The program with constants in the place of some weights."""
    builder = Builder()
    numbers: dict[int, int] = {}
    for place, node in enumerate(program.nodes):
        if node.operation == "parameter" and node.data["name"] in fixed:
            numbers[place] = builder.constant(np.full(node.shape, fixed[node.data["name"]], dtype=np.int64))
        else:
            numbers[place] = copy_node(builder, node, numbers)
    return builder.build(numbers[program.output])


def copy_node(builder: Builder, node: Node, numbers: Mapping[int, int]) -> int:
    """The node again in another program, where its operands have other numbers."""
    inputs = [numbers[k] for k in node.inputs]
    if node.operation == "gather":
        return builder.gather(inputs, node.data["index"].reshape(node.shape))
    if node.operation == "contract":
        return builder.contract(node.data["subscripts"], *inputs)
    if node.operation == "add" and len(inputs) == 2:
        return builder.add(*inputs, *node.data["coefficients"])
    return builder.append(node.operation, inputs, node.shape, **node.data)


def gains_and_biases(program: Program) -> dict[str, int]:
    """The vectors that only multiply what a norm gives (1), and those that are only added to that (0)."""
    kinds = classify(program)
    users: dict[int, list[int]] = {}
    for place, node in enumerate(program.nodes):
        for source in node.inputs:
            users.setdefault(source, []).append(place)
    roles: dict[str, int] = {}
    for place in program.places("parameter"):
        node = program.nodes[place]
        if len(node.shape) != 1:
            continue
        ends = _ends(program, place, users)
        if ends and all(program.nodes[k].operation == "contract" and kinds[k] == "normalised" for k in ends):
            roles[node.data["name"]] = 1
        elif ends and all(program.nodes[k].operation == "add" and kinds[k] == "normalised" for k in ends):
            roles[node.data["name"]] = 0
    return roles


def classify(program: Program) -> list[str]:
    """What each node is to a norm: root, inverse root, normalised (also times weights, plus weights), or nothing."""
    kinds: list[str] = []
    for place in range(len(program.nodes)):
        kinds.append(_kind(program, place, kinds))
    return kinds


def _ends(program: Program, place: int, users: Mapping[int, list[int]]) -> list[int]:
    """The nodes that use an array, beyond index work."""
    ends = []
    for user in users.get(place, []):
        ends += _ends(program, user, users) if program.nodes[user].operation == "gather" else [user]
    return ends


def _kind(program: Program, place: int, kinds: Sequence[str]) -> str:
    """What a node is to a norm: a root, the inverse of one, something normalised by it, or nothing."""
    node = program.nodes[place]
    inner = [kinds[k] for k in node.inputs]
    if node.operation == "root":
        return "inverse root" if inner == ["inverse"] else "root"
    if node.operation == "inverse":
        return "inverse root" if inner == ["root"] else "inverse"
    if node.operation == "gather" and len(node.inputs) == 1:
        return inner[0]
    weights_only = [program.nodes[k].operation == "constant" or _is_weight(program, k) for k in node.inputs]
    if node.operation == "contract" and _is_entrywise(node.data["subscripts"]):
        if "inverse root" in inner:
            return "normalised"
        if "normalised" in inner and any(weights_only):
            return "normalised"
    if node.operation == "add" and "normalised" in inner and any(weights_only):
        return "normalised"
    return ""


def _is_weight(program: Program, place: int) -> bool:
    node = program.nodes[place]
    if node.operation == "gather" and len(node.inputs) == 1:
        return _is_weight(program, node.inputs[0])
    return node.operation == "parameter"


def _is_entrywise(subscripts: str) -> bool:
    """Whether nothing is summed."""
    terms, out = subscripts.split("->")
    return "," in terms and set(terms) - {","} == set(out)
