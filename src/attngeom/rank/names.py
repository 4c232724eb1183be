"""Names for symmetries that were found: which algebra acts on which axes of which weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
from flint import fmpq

from attngeom.exact.arrays import Array
from attngeom.exact.residues import BalancedResidues, Elimination
from attngeom.programs.program import Program
from attngeom.rank.lower import find_point
from attngeom.rank.search import Field, evaluate_fields


@dataclass(frozen=True, kw_only=True)
class FiberPart:
    """One factor of the fiber: its algebra, how many dimensions it adds, the axes (or tensors) on which it acts."""

    name: str
    count: int
    tensors: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.count} {self.name} on {', '.join(self.tensors)}"


@dataclass(frozen=True)
class _Action:
    """What a field does: where it acts (tensor.axis, or tensor), which places of the first axis, of which kind."""

    labels: tuple[str, ...]
    indices: frozenset[int]
    kind: str


def group_fields(program: Program, fields: Sequence[Field]) -> list[tuple[str, tuple[str, ...], list[Field]]]:
    """The fields by where they act, those that move few tensors first, each group with the name of its algebra.

    >>> one = {(0, 0): fmpq(1), (1, 1): fmpq(-1)}
    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: w["a"] * (w["b"] * x), (), weights={"a": (), "b": ()})
    >>> [group[:2] for group in group_fields(program, [one])]
    [('scale', ('a', 'b'))]
    """
    actions: dict[tuple[str, ...], list[tuple[_Action, Field]]] = defaultdict(list)
    for field in fields:
        action = _action(program, field)
        actions[action.labels].append((action, field))
    groups = []
    for labels, members in sorted(actions.items(), key=lambda item: (len(item[0]), item[0])):
        named: dict[str, list[Field]] = defaultdict(list)
        for component in _components(members):
            named[_algebra(component)] += [field for _, field in component]
        scales = named.pop("scale", [])
        if scales:
            named["scale" if len(scales) == 1 else f"torus({len(scales)})"] = scales
        groups += [(name, labels, own) for name, own in named.items()]
    return groups


def _action(program: Program, field: Field) -> _Action:
    owners = _owners(program)
    by_tensor: dict[str, list[tuple[int, int | None, fmpq]]] = defaultdict(list)
    for (moved, source), times in field.items():
        by_tensor[owners[moved]].append((moved, source, times))
    labels, indices, kinds = [], set[int](), set[str]()
    for number, (name, terms) in enumerate(by_tensor.items()):
        axis, places, kind = _tensor_action(program, name, terms, owners)
        labels.append(name if axis is None else f"{name}.{axis}")
        kinds.add(kind)
        if number == 0:
            indices = places
    if kinds <= {"shift", "shear"}:
        is_single = len(field) == 1 and "shift" in kinds
        kind = "unused" if is_single else "shift" if "shift" in kinds else "shear"
    else:
        kind = "diagonal" if kinds <= {"diagonal", "shift", "shear"} else "linear"
    return _Action(tuple(sorted(labels)), frozenset(indices), kind)


def _owners(program: Program) -> list[str]:
    return [name for name, place in program.offsets.items() for _ in range(place.stop - place.start)]


def _tensor_action(
    program: Program, name: str, terms: list[tuple[int, int | None, fmpq]], owners: list[str]
) -> tuple[int | None, set[int], str]:
    """The axis of a tensor on which a field acts, the places of that axis that it touches, and how."""
    shape, start = program.parameters[name], program.offsets[name].start
    if any(source is None or owners[source] != name for _, source, _ in terms):
        kind = "shift" if any(source is None for _, source, _ in terms) else "shear"
        return None, {moved - start for moved, _, _ in terms}, kind
    if len(shape) < 2:
        is_diagonal = all(moved == source for moved, source, _ in terms)
        places = {k - start for moved, source, _ in terms for k in (moved, source) if k is not None}
        return (0 if shape else None), places, "diagonal" if is_diagonal else "linear"
    moves = [(np.unravel_index(m - start, shape), np.unravel_index((s or 0) - start, shape)) for m, s, _ in terms]
    axes = {k for a, b in moves for k in range(len(shape)) if a[k] != b[k]}
    if len(axes) > 1:
        return None, {m - start for m, _, _ in terms}, "linear"
    if axes:
        axis = axes.pop()
        return axis, {int(x[axis]) for pair in moves for x in pair}, "linear"
    scales = np.zeros(shape)
    for (place, _), (_, _, times) in zip(moves, terms):
        scales[place] = float(times)
    for axis in range(len(shape)):
        lines = np.moveaxis(scales, axis, 0).reshape(shape[axis], -1)
        if (lines == lines[:, :1]).all():
            used = np.flatnonzero(lines[:, 0])
            if len(used) == shape[axis] and (lines == lines[0, 0]).all():
                return None, {-1}, "diagonal"
            return axis, set(used.tolist()), "diagonal"
    return None, {m - start for m, _, _ in terms}, "diagonal"


def _components(members: list[tuple[_Action, Field]]) -> list[list[tuple[_Action, Field]]]:
    """Fields that share a place of the first axis belong together: one head, one expert."""
    components: list[tuple[set[int], list[tuple[_Action, Field]]]] = []
    for action, field in members:
        joined, rest = [(action, field)], []
        places = set(action.indices)
        for own, content in components:
            if own & places:
                places |= own
                joined = content + joined
            else:
                rest.append((own, content))
        components = [*rest, (places, joined)]
    return [content for _, content in components]


def _algebra(component: list[tuple[_Action, Field]]) -> str:
    """The algebra of one component by its dimension and the places that it moves."""
    kinds = {action.kind for action, _ in component}
    if kinds <= {"unused"}:
        return "unused"
    if kinds <= {"shift", "unused", "shear"}:
        return "shear" if kinds == {"shear"} else "shift"
    if len(component) == 1 and kinds == {"diagonal"}:
        return "scale"
    n = len(frozenset[int]().union(*(action.indices for action, _ in component)))
    m = len(component)
    if m == n * n:
        return f"gl({n})"
    if m == n * (n - 1) // 2 and "diagonal" not in kinds:
        return f"so({n})"
    if m == n == 2 and kinds == {"diagonal", "linear"}:
        return "complex scale"
    if kinds == {"diagonal"}:
        return "scale" if m == n else f"torus({m})"
    if m == n * n - 1:
        return f"sl({n})"
    root = isqrt(m)
    # Two halves of one axis, such as queries and keys in a fused tensor.
    return f"gl({root})" if root * root == m and 2 * root == n else f"algebra of dimension {m}"


def split_fiber(program: Program, fields: Sequence[Field], seed: int) -> list[FiberPart]:
    """The orbit dimension by group of fields: each adds what the ones before do not move already."""
    groups = group_fields(program, fields)
    ordered = [(k, field) for k, (_, _, own) in enumerate(groups) for field in own]
    chosen = _independent(program, [field for _, field in ordered], seed)
    counts = np.bincount([ordered[k][0] for k in chosen], minlength=len(groups)).tolist()
    merged: dict[tuple[str, tuple[str, ...]], int] = {}
    for (name, labels, _), count in zip(groups, counts):
        if count:
            merged[name, labels] = merged.get((name, labels), 0) + count
    return [FiberPart(name=name, count=count, tensors=labels) for (name, labels), count in merged.items()]


def _independent(program: Program, fields: Sequence[Field], seed: int) -> list[int]:
    if not fields:
        return []
    point = find_point(program, seed)
    residues = BalancedResidues(point.prime)
    weights = residues.to_integers(program.join(point.weights(), 1))[0]
    values: Array = residues.from_residues(evaluate_fields(fields, weights, point.prime))
    return [int(k) for k in Elimination(values.T.copy(), point.prime, keep_upper=False).run().columns]
