"""Whether the signs of the roots of a program are free: none is a constant times a square over those before it.

Seen if what is under a root is a residue at some samples and not at others, where the roots before exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.recheck import FREE_SPARE, JACOBIAN_PRODUCTS, SIGN_SAMPLES
from attngeom.verification.atoms import AtomTable
from attngeom.verification.budget import allowance
from attngeom.verification.interpreter import Interpreter, Values

Entry = tuple[int, int]
"""A node and one of its entries."""


def check_signs(
    interpreter: Interpreter,
    needed: Sequence[Array],
    table: AtomTable,
    share: int,
    samples: Sequence[Sequence[int]],
    rest: Callable[[Entry], bool] | None = None,
) -> None:
    """SizeError unless the signs of all needed roots were seen to be free: of weights, of single inputs, of all others.

    ``rest``: those to be looked at, if they are not all.

    ``share``: in how many parts the budget is divided. ``samples``: those of the minor, at which outputs exist. Below
    the first level their inputs are taken, so that roots inside of exponentials need not exist by chance again: inputs
    at different levels are independent.
    """
    program, varies = interpreter.program, interpreter.program.reached("input")
    roots = [root for root in distinct_roots(interpreter, needed, table) if rest is None or rest(root)]
    lone = lone_roots(interpreter)
    products = max(1, 100 * interpreter.cost()) * share
    budget = min(SIGN_SAMPLES, int(allowance(2 * JACOBIAN_PRODUCTS) / products))

    def at_weights(number: int) -> Values:
        other = Interpreter(program, f"{interpreter.name}/root{number}", interpreter.region)
        return other.values((0,) * (other.levels + 1))

    def at_index(number: int) -> Values:
        return interpreter.values((number,) * (interpreter.levels + 1))

    known = samples[:FREE_SPARE]

    def at_sample(number: int) -> Values:
        own = known[number % len(known)]
        return interpreter.values_up_to(own if number < len(known) else (number, *own[1:]), flags)

    groups: list[tuple[list[Entry], Callable[[int], Values]]] = []
    groups.append(([root for root in roots if not varies[root[0]]], at_weights))
    for name in interpreter.inputs:
        groups.append(([root for root in roots if lone.get(root[0]) == name], at_index))
    joint = [root for root in roots if varies[root[0]] and root[0] not in lone]
    flags: dict[int, Array] = {}
    for place, k in joint:
        marked = flags.setdefault(place, np.zeros(interpreter.program.nodes[place].shape, dtype=bool))
        marked.reshape(-1)[k] = True
    alone = at_sample if known else at_index
    if lone and joint:
        good = good_samples(interpreter, lone, budget)
        groups.append((joint, lambda number: interpreter.values(good(number))))
    else:
        groups.append((joint, alone))
    for own, draw in groups:
        if own and not _are_free(interpreter, own, draw, budget):
            raise SizeError(f"the signs of {len(own)} roots were not seen to be free at {budget:,} samples")


def distinct_roots(interpreter: Interpreter, needed: Sequence[Array], table: AtomTable) -> list[Entry]:
    """Roots on which outputs rest; of one and the same number on paper, one."""
    distinct: dict[Any, Entry] = {}
    for place, node in enumerate(interpreter.program.nodes):
        if node.operation == "root":
            for k in np.flatnonzero(needed[place]).tolist():
                distinct.setdefault(table.values[node.inputs[0]][k], (place, k))
    return list(distinct.values())


def lone_roots(interpreter: Interpreter) -> dict[int, str]:
    """The roots that rest on one of several inputs alone and on no function, with its name."""
    if len(interpreter.inputs) < 2:
        return {}
    sources: list[frozenset[str]] = []
    for node in interpreter.program.nodes:
        own = {node.data["name"]} if node.operation == "input" else set()
        if node.operation in ("formal", "pattern"):
            own = {"", *interpreter.inputs}
        sources.append(frozenset(own).union(*(sources[k] for k in node.inputs)))
    nodes = enumerate(interpreter.program.nodes)
    return {k: next(iter(sources[k])) for k, node in nodes if node.operation == "root" and len(sources[k]) == 1}


def good_samples(interpreter: Interpreter, lone: Mapping[int, str], budget: int) -> Callable[[int], tuple[int, ...]]:
    """Samples of inputs whose own roots exist at every level: what inputs give is independent of each other."""
    inputs, levels = interpreter.inputs, interpreter.levels + 1
    good: list[list[list[int]]] = [[[] for _ in inputs] for _ in range(levels)]
    for index in range(budget):
        for level in range(levels):
            values = interpreter.values((index,) * levels, lowest=level)
            for k, name in enumerate(inputs):
                own = [values[place] for place in lone if lone[place] == name]
                if not any(x[1].any() for x in own if x is not None):
                    good[level][k].append(index)
        if all(len(row) >= FREE_SPARE for rows in good for row in rows):
            break

    def draw(number: int) -> tuple[int, ...]:
        sample = []
        for rows in good:
            chosen, rest = [], number
            for row in rows:
                if not row:
                    raise SizeError(f"inputs whose own roots exist were not seen at {budget:,} samples")
                chosen.append(row[rest % len(row)])
                rest //= len(row)
            first = chosen[0]
            sample.append(first + sum((x - first) % 2**20 << 20 * k for k, x in enumerate(chosen) if k))
        return tuple(sample)

    return draw


def _are_free(interpreter: Interpreter, roots: list[Entry], draw: Callable[[int], Values], budget: int) -> bool:
    """Whether each root exists at some samples and not at others, among those at which the ones before exist.

    A number times a square is a residue at all of them or at none. That the root of 0 is missing, or of what is
    missing itself, says nothing.
    """
    cases = {(root, exists) for root in roots for exists in (True, False)}
    for number in range(budget):
        values = draw(number)
        for root in roots:
            place, k = root
            if entry(values, place, k) is not None:
                cases.discard((root, True))
                continue
            if entry(values, interpreter.program.nodes[place].inputs[0], k):
                cases.discard((root, False))
            break
        if not cases:
            return True
    return False


def entry(values: Values, place: int, k: int) -> int | None:
    """One entry of a node, None where it is missing or no residue."""
    own = element(values, place, k)
    return None if own is None or any(own[1:]) else own[0]


def element(values: Values, place: int, k: int) -> tuple[int, ...] | None:
    """The coordinates of one entry of a node, one in GF(p); None where it is missing."""
    value = values[place]
    if value is None or value[1].ravel()[k]:
        return None
    return tuple(value[0].reshape(-1, value[1].size)[:, k].tolist())
