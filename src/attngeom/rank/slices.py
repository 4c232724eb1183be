"""Slices: tensors that proven symmetries move freely are fixed, gains of norms to 1, biases to 0, matrices to identity.

If the fields are independent on the fixed entries at a point of the slice, then the group times the slice contains an
open set, so that the slice has the same functions: D stays, and the fiber is what was fixed plus the orbits of the
slice. Fields that are rational before are linear there: the centring of weights behind a gain, rotations of latents
behind one, what readers do not see of an embedding E = AB, mixtures of the scores qᵀk of several heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.residues import BalancedResidues, Elimination
from attngeom.programs.builder import Builder
from attngeom.programs.program import Program
from attngeom.rank.lower import find_point
from attngeom.rank.search import Field, evaluate_fields

Fixed = int | str
"""All entries 0 or 1, or those of :func:`repeat_identity` ("identity")."""


@dataclass(frozen=True)
class Slice:
    """A program with some tensors fixed, and how many numbers that are."""

    program: Program
    fixed: Mapping[str, Fixed]
    count: int


def repeat_identity(shape: tuple[int, ...]) -> Array:
    """1 where the last two indices are congruent modulo the smaller size: identity matrices, one beside the other.

    >>> repeat_identity((4, 2)).tolist()
    [[1, 0], [0, 1], [1, 0], [0, 1]]
    """
    rows, columns = np.indices(shape)[-2:]
    return np.asarray((rows - columns) % min(shape[-2:]) == 0, dtype=np.int64)


def _entries(shape: tuple[int, ...], number: Fixed) -> Array:
    return repeat_identity(shape) if isinstance(number, str) else np.full(shape, number, dtype=np.int64)


def find_slice(program: Program, fields: Sequence[Field], seed: int) -> Slice | None:
    """The slice of all gains and biases of norms that these fields move freely; None if there are none.

    >>> from attngeom.programs import trace
    >>> norm = lambda x: x / np.sqrt((x * x).mean() + 1)
    >>> program = trace(lambda w, x: w["W"] @ (norm(x) * w["g"]), 2, weights={"W": (2, 2), "g": 2})
    >>> find_slice(program, [], 0) is None, gains_and_biases(program)
    (True, {'g': 1})
    """
    fixed: dict[str, Fixed] = {}
    for name, number in gains_and_biases(program).items():
        if _moves_freely(program, fields, {**fixed, name: number}, seed):
            fixed[name] = number
    if not fixed or len(fixed) == len(program.parameters):
        return None
    return _slice(program, fixed)


def next_slices(program: Program, fields: Sequence[Field], fixed: Mapping[str, Fixed], seed: int) -> Iterator[Slice]:
    """Slices with one more tensor that the fields move freely, each fixed to identity matrices, to 1 or to 0.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> gl = [{(3 * i + k, 3 * j + k): 1 for k in range(3)} for i in range(2) for j in range(2)]
    >>> [own.fixed for own in next_slices(program, gl, {}, 0)]
    []
    """
    for name, shape in program.parameters.items():
        if name in fixed or len(fixed) + 1 == len(program.parameters):
            continue
        numbers: list[Fixed] = ["identity", 1, 0] if len(shape) > 1 else [1, 0]
        for number in numbers:
            if _moves_freely(program, fields, {**fixed, name: number}, seed):
                yield _slice(program, {**fixed, name: number})
                break


def _slice(program: Program, fixed: Mapping[str, Fixed]) -> Slice:
    count = sum(program.offsets[name].stop - program.offsets[name].start for name in fixed)
    return Slice(fix_weights(program, fixed), fixed, count)


def _moves_freely(program: Program, fields: Sequence[Field], fixed: Mapping[str, Fixed], seed: int) -> bool:
    """Whether the fields are independent on the fixed entries at a point of the slice."""
    point = find_point(program, seed)
    residues = BalancedResidues(point.prime)
    weights = residues.to_integers(program.join(point.weights(), 1))[0]
    columns: list[int] = []
    for name, number in fixed.items():
        weights[program.offsets[name]] = _entries(program.parameters[name], number).ravel()
        columns += range(program.offsets[name].start, program.offsets[name].stop)
    if len(fields) < len(columns):
        return False
    values = residues.from_residues(evaluate_fields(fields, weights, point.prime)[:, columns])
    return Elimination(values.copy(), point.prime, keep_upper=False).run().rank == len(columns)


def fix_weights(program: Program, fixed: Mapping[str, Fixed]) -> Program:
    """The program with constants in the place of some weights."""
    builder = Builder()
    numbers: dict[int, int] = {}
    for place, node in enumerate(program.nodes):
        if node.operation == "parameter" and node.data["name"] in fixed:
            numbers[place] = builder.constant(_entries(node.shape, fixed[node.data["name"]]))
        else:
            numbers[place] = builder.copy(node, numbers)
    return builder.build(numbers[program.output])


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
