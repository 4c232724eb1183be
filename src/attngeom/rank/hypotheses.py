"""When a rank mod p bounds the rank over the functions: the values that stand for functions must respect all relations.

- Roots: signs may be chosen freely if each u is not a constant times a square over the field of those before it. Seen
  at one θ: among inputs at which the roots before exist, u is a residue at some and not at others. A constant times a
  square is a residue at all of them or at none.
- exp down the chain is a homomorphism of the lattice of arguments, so that every relation is respected, and by Ax
  (1971) and Rosenlicht (1976) there are no others: exponentials of arguments that are independent over Q modulo
  constants are algebraically independent over the algebraic functions.
- log: free values are right if the arguments are multiplicatively independent modulo constants and exponentials. A
  relation may be taken with an odd exponent; then the symbols (a/p) are dependent over GF(2), together with a constant.
- exp of log: both together must be independent over Q modulo constants (Ax again), or exp(log u) = u would count twice.
  Seen mod the next prime: logarithms add their full number to the rank of the arguments of exponentials and 1.
- Φ: free values are right (the primitive of exp(−x²/2) is not elementary) if no two arguments have squares that differ
  by a constant, but equal ones, and there are no logarithms: a² − b² = 2 log f gives exp(−a²/2) = exp(−b²/2)/f.
- sin, cos: free values are right if the arguments, up to signs, are independent over Q modulo functions of the weights;
  seen by their differences between inputs at many weights, which are independent mod p.
- Patterns belong to a real point with a margin, so that the region is open: what is proven is about this region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from attngeom.exact.arrays import Array
from attngeom.exact.elimination import Elimination
from attngeom.exact.modular import rank_mod_p
from attngeom.programs.arithmetic import CHAIN
from attngeom.programs.passes import Traces, needed_entries
from attngeom.programs.points import NamedPoint, Sample
from attngeom.programs.program import Program
from attngeom.rank.lower import find_point
from attngeom.results import Proof

MAX_BATCHES = 64
SPARE = 40
"""Samples beyond the number of arguments whose independence is tested."""
MAX_ARGUMENTS = 2000
MAX_INSIDE = 600
"""Arguments of exponentials and logarithms in them whose independence is tested, at as many weights."""


def prove_rank(point: NamedPoint) -> Proof:
    """Whether the rank mod p at this point is a proven lower bound, a probabilistic one, or none, and why.

    Undecided: values that stand for functions were seen to be related, so that the rank may be too large.

    >>> from attngeom.programs import trace
    >>> prove_rank(find_point(trace(lambda w, x: np.exp(w["a"] * x), (), weights={"a": ()}), 0)).standing
    'proven'
    """
    program = point.program
    parts = [Proof("proven", f"rank mod {point.prime}")]
    for operation, check in CHECKS.items():
        if any(program.places(operation)):
            parts += check(point)
    reason = "; ".join(part.reason for part in parts)
    return Proof.from_parts(reason, *parts)


def _entries(traces: Traces, places: list[int], flags: Mapping[int, Array], lead: int) -> Array:
    """The values of the entries that outputs need at some nodes, one column each."""
    columns = []
    for place in places:
        trace = traces[place]
        assert trace is not None
        columns.append(np.broadcast_to(trace.result, (lead, *trace.result.shape[1:]))[:, flags[place]])
    return np.concatenate(columns, axis=1) if columns else np.zeros((lead, 0))


def _check_roots(point: NamedPoint) -> list[Proof]:
    program, flags = point.program, dict(enumerate(needed_entries(point.program)))
    varying = [k for k in program.places("root") if program.depends_on_input[k] and flags[k].any()]
    fixed = [k for k in program.places("root") if not program.depends_on_input[k] and flags[k].any()]

    def signs(traces: Traces, places: list[int], lead: int) -> tuple[Array, Array]:
        """Which roots are missing, and which of them because the radicand is 0, which says nothing."""
        missing = np.isnan(_entries(traces, places, flags, lead))
        inputs = [program.nodes[k].inputs[0] for k in places]
        radicands = [_entries(traces, [i], {i: flags[k]}, lead) for i, k in zip(inputs, places)]
        zero = np.concatenate(radicands, axis=1) == 0 if radicands else missing
        return missing, missing & zero

    def at_inputs(number: int) -> tuple[Array, Array]:
        samples: list[Sample] = [(number * point.batch + k,) * (point.levels + 1) for k in range(point.batch)]
        traces, _ = point.evaluate(samples)
        return signs(traces, varying, len(samples))

    def at_weights(number: int) -> tuple[Array, Array]:
        other = NamedPoint(program, f"{point.name}/root{number}", point.region)
        traces, _ = other.evaluate([(0,) * (point.levels + 1)])
        return signs(traces, fixed, 1)

    failed = (varying and not _signs_are_free(at_inputs)) or (fixed and not _signs_are_free(at_weights))
    if failed:
        return [Proof("undecided", "roots whose signs may depend on each other")]
    return [Proof("proven", "signs of roots are free")]


def _signs_are_free(draw: Callable[[int], tuple[Array, Array]]) -> bool:
    """Whether each root is there at some draws and missing at others, among those at which the roots before are."""
    present: Array | None = None
    absent: Array | None = None
    for number in range(MAX_BATCHES):
        missing, zero = draw(number)
        # A root whose argument rests on a missing one is missing as well: only the first missing one of a row counts.
        before = np.cumsum(missing, axis=1) - missing
        there, gone = (~missing & (before == 0)).any(axis=0), (missing & ~zero & (before == 0)).any(axis=0)
        present = there if present is None else present | there
        absent = gone if absent is None else absent | gone
        if (present & absent).all():
            return True
    return False


def _arguments(point: NamedPoint, names: tuple[str, ...], count: int) -> tuple[Array, bool]:
    """The arguments of functions at honest samples, one column each, and whether inputs reach all of them."""
    program, flags = point.program, needed_entries(point.program)
    places = [k for k in program.places("formal") if program.nodes[k].data["name"] in names and flags[k].any()]
    traces, clear = point.evaluate(point.draw(count))
    columns = [
        _entries(traces, [program.nodes[k].inputs[0]], {program.nodes[k].inputs[0]: flags[k]}, count) for k in places
    ]
    values = np.concatenate(columns, axis=1)
    reached = all(program.depends_on_input[program.nodes[k].inputs[0]] for k in places)
    return values[clear & ~np.isnan(values).any(axis=1)], reached


def _check_formal(point: NamedPoint) -> list[Proof]:
    program = point.program
    names = {program.nodes[k].data["name"] for k in program.places("formal")}
    proofs = []
    if names & {"exp", "gauss"}:
        proofs.append(_check_exponentials(program, names))
    if "exp" in names and "log" in names and _logarithms_inside(program):
        proofs.append(_check_logarithms_inside(point))
    for group, check in GROUPS.items():
        if names & set(group):
            proofs.append(_check_values(point, group, check))
    if {"log", "gauss"} <= names:
        proofs.append(Proof("probabilistic", "squares of arguments of Φ may differ by a logarithm"))
    return proofs


def _check_exponentials(program: Program, names: set[str]) -> Proof:
    if max(program.exponents.values()) >= len(CHAIN):
        return Proof("probabilistic", f"exponentials nested more than {len(CHAIN) - 1} deep")
    constants = any(
        not program.depends_on_weights[n.inputs[0]] and not program.depends_on_input[n.inputs[0]]
        for n in program.nodes
        if n.operation == "formal"
    )
    if "gauss" in names and constants:
        return Proof("probabilistic", "e and π may be algebraically dependent")
    return Proof("proven", "exp: Ax")


def _logarithms_inside(program: Program) -> list[int]:
    """The logarithms that some exponential takes, directly or inside of others."""
    return [k for k in program.places("formal") if program.nodes[k].data["name"] == "log" and program.exponents[k]]


def _check_logarithms_inside(point: NamedPoint) -> Proof:
    """Whether no rational combination of arguments of exponentials is one of logarithms: exp(log u) = u is not free.

    Ax's theorem asks that both together are independent over Q modulo constants. They are if logarithms add their full
    number to the rank of the arguments and 1, mod the prime of the next level, at random weights and inputs.
    """
    program, q = point.program, CHAIN[1]
    flags = needed_entries(program)
    names = {k: program.nodes[k].data["name"] for k in program.places("formal")}
    outer = [k for k, name in names.items() if name in ("exp", "gauss") and flags[k].any()]
    inner = [k for k in _logarithms_inside(program) if flags[k].any()]
    sources = {k: program.nodes[k].inputs[0] for k in outer}
    width = 1 + sum(int(flags[k].sum()) for k in (*outer, *inner))
    if width > MAX_INSIDE:
        return Proof("probabilistic", f"{width:,} exponentials and logarithms in each other, too many to test")
    rows: list[Array] = []
    number = 0
    while sum(map(len, rows)) < width + SPARE and number < 8 * (width + SPARE):
        other = NamedPoint(program, f"{point.name}/log{number}", point.region, quick=True)
        number += 1
        traces, clear = other.evaluate([(k,) * (point.levels + 1) for k in range(4)], lowest=1)
        arguments = [_entries(traces, [sources[k]], {sources[k]: flags[k]}, 4) for k in outer]
        values = np.concatenate(
            [*arguments, np.ones((4, 1)), _entries(traces, inner, dict(enumerate(flags)), 4)], axis=1
        )
        rows.append(values[clear & ~np.isnan(values).any(axis=1)])
    table = np.concatenate(rows)
    logarithms = sum(int(flags[k].sum()) for k in inner)
    equal = np.unique(table[:, width - logarithms :], axis=1).shape[1]
    whole = Elimination(table.copy(), q, keep_upper=False).run().rank
    without = Elimination(table[:, : width - logarithms].copy(), q, keep_upper=False).run().rank
    if len(table) < width + SPARE or whole < without + equal:
        return Proof("undecided", "exponentials of logarithms, which may be algebraic")
    return Proof("proven", "arguments of exp are independent of logarithms")


def _check_values(point: NamedPoint, names: tuple[str, ...], check: Callable[[NamedPoint, int], bool]) -> Proof:
    values, reached = _arguments(point, names, 2)
    words = " and ".join(names)
    if not reached:
        return Proof("probabilistic", f"{words} of weights alone, whose relations are not tested")
    if values.shape[1] > MAX_ARGUMENTS:
        return Proof("probabilistic", f"{values.shape[1]:,} values of {words}, too many to test for relations")
    if not check(point, values.shape[1] + SPARE):
        return Proof("undecided", f"values of {words} that may depend on each other")
    return Proof("proven", f"values of {words} are free")


def _logarithms_are_free(point: NamedPoint, count: int) -> bool:
    """Whether the symbols of the arguments, equal ones once, and a constant are independent over GF(2)."""
    p, values = point.prime, np.unique(_arguments(point, ("log",), count)[0], axis=1)
    symbols = np.array([[pow(int(x) % p, (p - 1) // 2, p) != 1 for x in row] for row in values], dtype=np.int64)
    table = np.concatenate([np.ones((len(symbols), 1), dtype=np.int64), symbols.reshape(len(values), -1)], axis=1)
    return bool(rank_mod_p(table, 2) == table.shape[1])


def _integrals_are_free(point: NamedPoint, count: int) -> bool:
    """Whether no argument is constant, and no two squares differ by a constant, but for equal arguments."""
    values = np.unique(_arguments(point, ("gauss",), min(count, SPARE))[0], axis=1)
    squares = (values.astype(np.int64) ** 2) % point.prime
    columns = {tuple(column) for column in ((squares - squares[:1]) % point.prime).T.tolist()}
    return len(columns) == squares.shape[1] and tuple([0] * len(squares)) not in columns


def _angles_are_free(point: NamedPoint, count: int) -> bool:
    """Whether the arguments, up to their signs, are independent modulo functions of the weights."""
    parts, each, total = [], 8, 0
    while total < count:
        other = find_point(point.program, seed=total, region=point.region, name=f"{point.name}/angle")
        values, _ = _arguments(other, ("sin", "cos"), each)
        parts.append(values[1:] - values[:1])
        total += each - 1
    changes = np.mod(np.concatenate(parts), point.prime)
    changes = np.where(changes > point.prime // 2, changes - point.prime, changes)
    signs = np.array([next((np.sign(x) for x in column if x), 1.0) for column in changes.T])
    distinct = np.unique(changes * signs, axis=1)
    return bool(Elimination(distinct.copy(), point.prime, keep_upper=False).run().rank == distinct.shape[1])


def _check_patterns(point: NamedPoint) -> list[Proof]:
    return [Proof("proven", "of this region")]


GROUPS: dict[tuple[str, ...], Callable[[NamedPoint, int], bool]] = {
    ("log",): _logarithms_are_free,
    ("gauss",): _integrals_are_free,
    ("sin", "cos"): _angles_are_free,
}
"""Functions with free values, and what makes them right."""

CHECKS: dict[str, Callable[[NamedPoint], list[Proof]]] = {
    "root": _check_roots,
    "formal": _check_formal,
    "pattern": _check_patterns,
}
"""What is checked for programs with an operation."""
