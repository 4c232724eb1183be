"""A short search for symmetries: only fields that the roles of axes suggest, which are few (:mod:`attngeom.rank.axes`).

Where the bounds of a rank meet with what it finds, nothing is missing; where not, :mod:`attngeom.rank.search` looks
for all fields of its ansatz.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from math import prod

import numpy as np
from flint import fmpq

from attngeom.errors import InputError, SingularError
from attngeom.exact.arrays import Array
from attngeom.exact.lifting import reconstruct
from attngeom.exact.residues import BalancedResidues
from attngeom.limits.memory import GROUP_UNKNOWNS
from attngeom.limits.trials import POINT_TRIES, SPARE_UNKNOWNS, SUGGESTION_ROUNDS
from attngeom.programs.points import NamedPoint
from attngeom.programs.program import Program
from attngeom.rank.axes import AxisRoles
from attngeom.rank.lower import RankBound
from attngeom.rank.search import Field, Symmetries, echelon, nullspace, shorten
from attngeom.rank.stages import name_point


@dataclass(frozen=True)
class Suggestion:
    """Fields with one unknown for each row: weights ``moved`` change by the weights ``sources``, or by 1 (None)."""

    moved: Array
    sources: Array | None

    def columns(self, rows: Array, weights: Array, field: BalancedResidues) -> Array:
        """Rows of the Jacobian times each of the fields."""
        gradients = rows[:, self.moved]
        products = gradients if self.sources is None else field.times(gradients, weights[self.sources])
        return field.balance(products.sum(axis=-1))

    def terms(self, unknown: int) -> Iterator[tuple[int, int | None]]:
        for k, moved in enumerate(self.moved[unknown].tolist()):
            yield moved, None if self.sources is None else int(self.sources[unknown, k])


def suggest_fields(program: Program) -> list[Suggestion]:
    """Mixtures along free axes, scales along entrywise ones, each at one place of the entrywise axes; and shifts.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> [suggestion.moved.shape for suggestion in suggest_fields(program)]
    [(4, 3), (4, 3)]
    """
    roles, fields = AxisRoles(program), list[Suggestion]()
    for place in program.places("parameter"):
        node = program.nodes[place]
        axes, shape = range(len(node.shape)), node.shape
        numbers = program.offsets[node.data["name"]].start + np.arange(prod(shape)).reshape(shape)
        given = [roles.is_given(place, k) for k in axes]
        single = [k for k in axes if roles.is_entrywise(place, k) and not given[k]]
        free = [k for k in axes if not given[k] and k not in single]
        groups = prod(shape[k] for k in single)
        if not free:
            lines = numbers.transpose([*single, *(k for k in axes if k not in single)]).reshape(groups, -1)
            fields.append(Suggestion(lines, lines))
        for axis in free:
            rest = [k for k in axes if k != axis and k not in single]
            table = numbers.transpose([*single, axis, *rest]).reshape(groups, shape[axis], -1)
            i, j = (x.ravel() for x in np.indices((shape[axis], shape[axis])))
            fields.append(Suggestion(*(table[:, k].reshape(-1, table.shape[2]) for k in (i, j))))
        if len(shape) < 2 or not any(given) or roles.is_only_added(place):
            fields.append(Suggestion(numbers.reshape(-1, 1), None))
        else:
            fields += [
                Suggestion(np.moveaxis(numbers, axis, -1).reshape(-1, shape[axis]), None)
                for axis in axes
                if roles.is_summed(place, axis) and not given[axis]
            ]
    return fields


def find_suggested(bound: RankBound, seed: int = 0) -> Symmetries:
    """The suggested fields that the Jacobian annihilates at random weights and inputs mod p.

    >>> from attngeom.programs import trace
    >>> from attngeom.rank.lower import bound_rank
    >>> program = trace(lambda w, x: w["B"] @ (w["A"] @ x), 3, weights={"A": (2, 3), "B": (3, 2)})
    >>> len(find_suggested(bound_rank(program)).fields)
    4
    """
    program, field = bound.point.program, BalancedResidues(bound.prime)
    fields = suggest_fields(program)
    unknowns = sum(len(own.moved) for own in fields)
    if unknowns > GROUP_UNKNOWNS or not bound.samples or not program.inputs:
        return Symmetries(fields=(), unknowns=unknowns)
    points = _points(program, seed, bound.point.region)
    rows = bound.point.rows(list(dict.fromkeys(bound.samples[: unknowns + SPARE_UNKNOWNS])))
    system = [_columns(fields, bound.point, rows, field)]
    while sum(map(len, system)) < unknowns + SPARE_UNKNOWNS:
        left = unknowns + SPARE_UNKNOWNS - sum(map(len, system))
        system.append(_equations(fields, points, min(left, bound.value), field))
    basis = nullspace(np.concatenate(system), field.p)
    for _ in range(SUGGESTION_ROUNDS):
        if not len(basis):
            break
        fresh = _equations(fields, points, min(bound.value, len(basis) + SPARE_UNKNOWNS), field)
        left_over = field.multiply(fresh, basis.T)
        if not np.any(left_over):
            break
        basis = field.multiply(nullspace(left_over, field.p), basis)
    return _lift(fields, echelon(basis, field.p) if len(basis) else basis, field.p)


def _points(program: Program, seed: int, region: int) -> Iterator[NamedPoint]:
    return (name_point(program, f"attngeom/{10**6 * number + seed}", region, quick=True) for number in count(1))


def _equations(
    fields: Sequence[Suggestion], points: Iterator[NamedPoint], number: int, field: BalancedResidues
) -> Array:
    """Equations from the next point at which the program exists."""
    for point in islice(points, POINT_TRIES):
        try:
            return _columns(fields, point, point.draw_rows(max(1, number))[1], field)
        except SingularError:
            continue
    raise InputError(f"the network does not exist at {POINT_TRIES} random points; ask for fewer outputs: --last-token")


def _columns(fields: Sequence[Suggestion], point: NamedPoint, rows: Array, field: BalancedResidues) -> Array:
    weights = point.program.join(point.weights(), 1)[0]
    return np.concatenate([own.columns(rows, weights, field) for own in fields], axis=1)


def _lift(fields: Sequence[Suggestion], basis: Array, p: int) -> Symmetries:
    """The fields with rational coefficients; each of few terms, as the echelon form has them."""
    starts = np.cumsum([0, *(len(own.moved) for own in fields)])
    results: list[Field] = []
    lost = 0
    for row in basis:
        coefficients = {k: reconstruct(int(row[k]) % p, p) for k in np.flatnonzero(row).tolist()}
        numbers = {k: times for k, times in coefficients.items() if times is not None}
        if len(numbers) < len(coefficients):
            lost += 1
            continue
        result: Field = {}
        for unknown, times in numbers.items():
            block = int(np.searchsorted(starts, unknown, side="right")) - 1
            for term in fields[block].terms(unknown - int(starts[block])):
                result[term] = result.get(term, fmpq(0)) + times
        results.append({term: times for term, times in result.items() if times})
    kept = shorten([x for x in results if x])
    return Symmetries(fields=tuple(kept), unknowns=int(starts[-1]), lost=lost)
