"""When random values may stand for exponentials and Φ, and free signs for roots, in a model at many pairs of tokens.

By Lemma 0 (docs/theorems/models.md) exponentials are algebraically independent if no combination of their arguments and
of coordinates with integer coefficients is constant. Let a combination of the arguments of all pairs be constant.

- Vary the values of one pair alone. Only its own joint arguments that rest on joint values change: they are independent
  modulo constants if differences between attempts are.
- Then vary the rows of two tokens: mixed differences keep only the arguments of the two pairs of them, in both orders.
- Then vary one row: only the arguments that rest on this token alone, as the first or the second one, change.
- What is left rests on weights alone, and has to be coordinates.

Each of these is seen by a rank mod p. For Φ(f) the argument of the exponential is f². Signs of joint roots are tested
for each pair by :meth:`TokenPoint.find_attempts`, those of lone ones here. Patterns are held where differences are
taken, because a region has one function for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from attngeom.errors import SingularError
from attngeom.exact.arrays import Array
from attngeom.exact.residues import Elimination
from attngeom.models.proofs.tokens import Pairs, TokenPoint, entries, signs_are_free
from attngeom.programs.passes import Traces
from attngeom.programs.program import Program

MAX_POINTS = 24
ROWS = 256
"""Rows of the table, or pairs with two attempts, whose values are compared at one point."""
BATCHES = 8


def find_obstacle(program: Program, name: str, both_orders: bool) -> str:
    """Why values of functions or signs of roots may depend on each other; empty if they were seen not to."""
    points = _Points(program, name)
    point = points[0]
    functions = {program.nodes[k].data["name"] for k in program.places("formal")}
    if not functions <= {"exp", "gauss"}:
        return f"values of {', '.join(sorted(functions - {'exp', 'gauss'}))}, which are not described here"
    arguments = _arguments(point)
    of_weights = [k for k in arguments if not point.sources[k]]
    if any(program.nodes[program.nodes[k].inputs[0]].operation != "parameter" for k in of_weights):
        return "exponentials of weights that are no coordinates"
    if any(not point.sources[k] for k in point.roots):
        return "roots of weights alone"
    lone = [k for k in arguments if point.sources[k] and not point.is_joint(k)]
    joint = [k for k in arguments if point.is_joint(k)]
    outer = [k for k in joint if any(j in point.program.ancestors([k]) for j in joint if j != k)]
    inner = [k for k in joint if k not in outer]
    if not _independent(points, lambda own: [_lone_changes(own, lone)]):
        return "exponentials of one token whose arguments may depend on each other"
    if not _independent(points, lambda own: _mixed_differences(own, inner, both_orders)):
        return "exponentials of two tokens whose arguments may depend on each other"
    if outer and not _independent(points, lambda own: _attempt_changes(own, outer)):
        return "exponentials of exponentials whose arguments may depend on each other"
    if not _lone_signs_are_free(point):
        return "roots whose signs may depend on each other"
    return ""


class _Points:
    """Points with other weights, drawn where first asked for."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.known: dict[int, TokenPoint] = {}
        self.next = 0

    def __getitem__(self, number: int) -> TokenPoint:
        while number not in self.known:
            self.next += 1
            try:
                self.known[number] = TokenPoint(self.program, f"{self.name}/independence{self.next}")
            except SingularError:
                if self.next > 4 * MAX_POINTS:
                    raise
        return self.known[number]


def _arguments(point: TokenPoint) -> list[int]:
    return [k for k in point.program.places("formal") if point.all_flags[k].any()]


def _columns(point: TokenPoint, traces: Traces, places: Sequence[int], flags: Sequence[Array], lead: int) -> Array:
    """Arguments of exponentials, their squares for Φ, one column each."""
    parts = [np.zeros((lead, 0))]
    for place in places:
        node = point.program.nodes[place]
        values = entries(traces, [node.inputs[0]], [flags[place]], lead)
        parts.append(values if node.data["name"] == "exp" else point.domain.times(values, values))
    return np.concatenate(parts, axis=1)


def _independent(points: _Points, changes: Callable[[TokenPoint], list[Array]]) -> bool:
    """Whether the columns of each table of changes, equal ones once, are independent mod p over enough points."""
    tables: list[list[Array]] = []
    for number in range(MAX_POINTS):
        tables.append(changes(points[number]))
        if all(_full_rank(np.concatenate(rows), points[0].prime) for rows in zip(*tables)):
            return True
    return False


def _full_rank(table: Array, p: int) -> bool:
    distinct = np.unique(table[~np.isnan(table).any(axis=1)], axis=1)
    if len(distinct) < distinct.shape[1]:
        return False
    return bool(Elimination(distinct.copy(), p, keep_upper=False).run().rank == distinct.shape[1])


def _lone_changes(point: TokenPoint, lone: Sequence[int]) -> Array:
    """Changes of lone arguments and of coordinates, from one row of the table to another, patterns held."""
    sources = [point.program.nodes[k].inputs[0] for k in lone]
    tables = []
    for rows in (point.tokens, np.roll(point.tokens, 1, axis=0)):
        traces, _ = point.lone_traces(rows, point.real_tokens, sources)
        tables.append(np.concatenate([rows, _columns(point, traces, lone, point.all_flags, len(rows))], axis=1))
    return point.domain.reduce(tables[1] - tables[0])


def _quadruples(point: TokenPoint) -> Array:
    """Four different tokens each: two first ones, two second ones."""
    rng = np.random.default_rng(len(point.name))
    return np.array([rng.permutation(point.vocabulary)[:4] for _ in range(ROWS)])


def _mixed_differences(point: TokenPoint, inner: Sequence[int], both_orders: bool) -> list[Array]:
    """a(x, y) − a(x', y) − a(x, y') + a(x', y') of joint arguments, for each place, and of both orders for two."""
    if point.vocabulary < 4:
        return [np.zeros((1, 1))]
    one, other, two, another = _quadruples(point).T
    numbers = np.arange(len(one))
    sources = point.program.ancestors([point.program.nodes[k].inputs[0] for k in inner])

    def differences(swapped: bool) -> list[Array]:
        tables: list[list[Array]] = []
        zeros = np.zeros_like(one)
        shown = Pairs(two, one, zeros, numbers) if swapped else Pairs(one, two, zeros, numbers)
        for x, y in ((one, two), (other, two), (one, another), (other, another)):
            pairs = Pairs(y, x, zeros, numbers) if swapped else Pairs(x, y, zeros, numbers)
            traces, _ = point.evaluate(pairs, numbers, sources.__contains__, shown=shown)
            tables.append([_columns(point, traces, inner, flags, len(one)) for flags in point.flags])
        return [point.domain.reduce(a - b - c + d) for a, b, c, d in zip(*tables)]

    forth = differences(False)
    if not both_orders:
        return forth
    back = differences(True)
    return [np.concatenate([a, b], axis=1) for a in forth for b in back]


def _attempt_changes(point: TokenPoint, outer: Sequence[int]) -> list[Array]:
    """Changes of arguments that rest on joint values, from one attempt of a pair to another, for each place."""
    sources = point.program.ancestors([point.program.nodes[k].inputs[0] for k in outer])
    tables = []
    tries = 1 << (point.joint_roots + 2)
    count = max(8, min(ROWS, 4 * ROWS // tries))
    first, second = _quadruples(point)[:count, :2].T
    for number, flags in enumerate(point.flags):
        pairs = Pairs(first, second, np.full(count, number), np.arange(count))[np.repeat(np.arange(count), tries)]
        traces, _ = point.evaluate(pairs, np.arange(len(pairs)), sources.__contains__)
        values = _columns(point, traces, outer, flags, len(pairs)).reshape(count, tries, -1)
        rows = [np.zeros((0, values.shape[2]))]
        for own in values:
            good = own[~np.isnan(own).any(axis=1)]
            if len(good) > 1:
                rows.append(point.domain.reduce(good[1:] - good[:1]))
        tables.append(np.concatenate(rows))
    return tables


def _lone_signs_are_free(point: TokenPoint) -> bool:
    """Whether each lone root of a token is there at some rows and missing at others, where those before it are."""
    lone = [k for k in point.roots if not point.is_joint(k)]
    sources = [point.program.nodes[k].inputs[0] for k in lone]
    if not lone:
        return True
    flags = [point.all_flags[k] for k in lone]
    patterns = any(point.program.nodes[k].operation == "pattern" for k in point.program.ancestors(lone))
    for real in point.real_tokens if patterns else point.real_tokens[:1]:
        missing, known, distinct = [], [], None
        for batch in range(BATCHES):
            shape = (ROWS, point.tokens.shape[1])
            rows = point.domain.balanced(point.streams.tensor(f"s{batch}", shape, point.prime))
            traces, _ = point.lone_traces(rows, np.repeat(real[None], ROWS, axis=0), lone)
            radicands = entries(traces, sources, flags, ROWS)
            if distinct is None:
                distinct = np.sort(np.unique(np.nan_to_num(radicands), axis=1, return_index=True)[1])
            missing.append(np.isnan(entries(traces, lone, flags, ROWS)[:, distinct]))
            known.append(~np.isnan(radicands[:, distinct]) & (radicands[:, distinct] != 0))
        if not signs_are_free(np.concatenate(missing)[None], np.concatenate(known)[None])[0]:
            return False
    return True
