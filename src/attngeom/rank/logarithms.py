"""Logarithms inside of exponentials: whether exp(log u) stands there in other words, which is no free value.

By Ax's theorem, exponentials of arguments a_i and logarithms of u_j are free if the a_i and log u_j together are
independent over Q modulo constants. Seen mod the next prime of the chain: the logarithms add their full number to the
rank of the arguments, and that rank is what it is on paper, so that no relation of arguments holds mod that prime
alone. What the builder recognises (:mod:`attngeom.programs.normal_forms`) does not come here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from attngeom.errors import SingularError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.residues import BalancedResidues, Elimination
from attngeom.limits.trials import SPARE_ARGUMENTS
from attngeom.limits.work import TESTED_INSIDE
from attngeom.programs.arithmetic import CHAIN
from attngeom.programs.passes import Traces, needed_entries
from attngeom.programs.points import NamedPoint
from attngeom.programs.program import Program
from attngeom.results import Proof
from attngeom.verification.atoms import AtomTable, Value, multiply
from attngeom.verification.programs import CheckedProgram
from attngeom.verification.relations import written_rank


def entries_at(traces: Traces, places: list[int], flags: Mapping[int, Array], lead: int) -> Array:
    """The values of the entries that outputs need at some nodes, one column each."""
    columns = []
    for place in places:
        trace = traces[place]
        assert trace is not None
        columns.append(np.broadcast_to(trace.result, (lead, *trace.result.shape[1:]))[:, flags[place]])
    return np.concatenate(columns, axis=1) if columns else np.zeros((lead, 0))


@lru_cache(maxsize=1)
def table_of(program: Program) -> AtomTable:
    """The entries of a program on paper."""
    return AtomTable(CheckedProgram.from_json(program.to_json()))


def logarithms_inside(program: Program) -> list[int]:
    """The logarithms that some exponential takes, directly or inside of others."""
    return [k for k in program.places("formal") if program.nodes[k].data["name"] == "log" and program.exponents[k]]


def check_logarithms_inside(point: NamedPoint) -> Proof:
    """Whether no rational combination of arguments of exponentials is one of logarithms: exp(log u) = u is not free.

    Ax's theorem asks that both together are independent over Q modulo constants. For logarithms that inputs reach, this
    is seen modulo functions of the weights, for others modulo constants: what an input changes in a relation comes
    first. Where logarithms of numbers stand in exponents, no combination of arguments may be a number: exp(log 2) = 2.
    """
    program, flags = point.program, needed_entries(point.program)
    names = {k: program.nodes[k].data["name"] for k in program.places("formal")}
    outer = [k for k, name in names.items() if name in ("exp", "gauss") and flags[k].any()]
    inner = [k for k in logarithms_inside(program) if flags[k].any()]
    varying = [k for k in inner if program.depends_on_input[k]]
    moving = [k for k in inner if program.depends_on_weights[k] and not program.depends_on_input[k]]
    width = 1 + sum(int(flags[k].sum()) for k in (*outer, *inner))
    if width > TESTED_INSIDE:
        return Proof("probabilistic", f"{width:,} exponentials and logarithms in each other, too many to test")
    try:
        for logarithms, constants in ((varying, False), (moving, True)):
            if not logarithms:
                continue
            columns, values = _distinct_inside(program, outer, logarithms)
            table = _changes_inside(point, outer, logarithms, constants)
            start = table.shape[1] - sum(int(flags[k].sum()) for k in logarithms)
            rank = _rank_mod_q(table[:, [*range(start), *(start + k for k in columns)]])
            without = _rank_mod_q(table[:, :start])
            if len(table) < width + SPARE_ARGUMENTS or rank < without + len(columns):
                return Proof("undecided", "exponentials of logarithms, which may be algebraic")
            # A relation whose part in logarithms is a multiple of q gives one that is not, after its part in
            # arguments is taken away and both are divided; if the arguments have no relations mod q alone.
            if without != written_rank(table_of(program), values, constants):
                return Proof("undecided", f"arguments of exponentials beside logarithms may be related mod {CHAIN[1]}")
        if len(varying) + len(moving) < len(inner):
            ranks = {_rank_mod_q(_changes_inside(point, outer, [], True, numbers)) for numbers in (False, True)}
            if len(ranks) > 1:
                return Proof("undecided", "exponentials of logarithms of numbers, which may be algebraic")
    except SizeError:
        return Proof("probabilistic", "exponentials and logarithms in each other, too long to write out")
    return Proof("proven", "arguments of exp are independent of logarithms")


def _rank_mod_q(table: Array) -> int:
    return Elimination(table.copy(), CHAIN[1], keep_upper=False).run().rank


def _changes_inside(
    point: NamedPoint, outer: list[int], logarithms: list[int], constants: bool, numbers: bool = False
) -> Array:
    """Changes of arguments of exponentials, v²/2 for Φ, and of logarithms, mod q, from input to input.

    Or from weights to other weights (``constants``), or to other values of functions as well (``numbers``). Samples are
    drawn prime by prime, so that the tries for their roots add up instead of being multiplied.
    """
    program, flags, q = point.program, needed_entries(point.program), CHAIN[1]
    field, rows, vain = BalancedResidues(q), list[Array](), 0
    width = 1 + sum(int(flags[k].sum()) for k in (*outer, *logarithms))
    for number in range(8 * (width + SPARE_ARGUMENTS)):
        name = f"{point.name}/log{number}"
        own = replace(point, name=name, quick=True, functions="")
        draws = [(own, 4, 0)]
        if constants:
            named = (f"{name}.{k}" for k in range(4))
            functions = "" if numbers else name
            others = [replace(point, name=x, quick=True, functions=functions) for x in named]
            draws = [(other, 1, k) for k, other in enumerate(others)]
        parts = [np.zeros((0, point.degree, width - 1))]
        for other, count, start in draws:
            if not other.weights_exist(1):
                continue
            try:
                given = other.draw(count, start, lowest=1)
            except SingularError:
                vain += 1
                continue
            traces, clear = other.evaluate(given, lowest=1)
            columns = [np.zeros((point.degree * len(given), 0))]
            for k in outer:
                source = program.nodes[k].inputs[0]
                entries = entries_at(traces, [source], {source: flags[k]}, point.degree * len(given))
                is_square = program.nodes[k].data["name"] == "gauss"
                domain = other.domain_of(1, len(given))
                columns.append(domain.half(domain.times(entries, entries)) if is_square else entries)
            last = entries_at(traces, logarithms, dict(enumerate(flags)), point.degree * len(given))
            values = np.concatenate([*columns, last], axis=1).reshape(len(given), -1, width - 1)
            parts.append(values[clear & ~np.isnan(values).any(axis=(1, 2))])
        # Each coordinate is a linear form on the field, which respects all relations with rational coefficients.
        together = np.concatenate(parts)
        rows.append((together[1:] - together[:1]).reshape(-1, width - 1))
        count = sum(map(len, rows)) // point.degree
        if count >= width + SPARE_ARGUMENTS or vain > 8 + count:
            break
    return field.balance(np.concatenate(rows))


def _distinct_inside(program: Program, outer: list[int], inner: list[int]) -> tuple[list[int], list[Value]]:
    """Which of the logarithms are different on paper, and the arguments of exponentials, v²/2 for Φ."""
    flags, values = needed_entries(program), table_of(program).values
    keys = [values[program.nodes[k].inputs[0]][i] for k in inner for i in np.flatnonzero(flags[k]).tolist()]
    first = {key: number for number, key in reversed(list(enumerate(keys)))}
    arguments = []
    for k in outer:
        for i in np.flatnonzero(flags[k]).tolist():
            times, monomial = values[program.nodes[k].inputs[0]][i]
            is_square = program.nodes[k].data["name"] == "gauss"
            arguments.append((times * times / 2, multiply(monomial, monomial)) if is_square else (times, monomial))
    return sorted(first.values()), arguments
