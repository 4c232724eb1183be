"""How deep the roots of a program are nested, and whether their signs are free, seen in fields where all of them exist.

A root is of the first stage if what is under it is a residue wherever weights and inputs are, of stage d + 1 if the
roots that it rests on are of stage d at most. On paper (x/√u)² is x²/u, so that a norm of a multiple of n(x) is of the
same stage as that of x. At residues roots of stage d lie in GF(p^(2^d)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from attngeom.errors import FormatError, SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.limits.sizes import TOWER_DEGREE
from attngeom.limits.trials import ROOTS_DRAWN, SPARE_ARGUMENTS
from attngeom.programs.passes import Traces, needed_entries
from attngeom.programs.points import NamedPoint
from attngeom.programs.program import Program
from attngeom.programs.tower_points import TowerPoint, drawn_roots
from attngeom.programs.towers import Tower
from attngeom.rank.logarithms import table_of
from attngeom.verification.atoms import AtomTable, Monomial


@dataclass(frozen=True)
class Radicand:
    """What a root, or a logarithm, is taken of: an entry of a node, and the stage of the root."""

    place: int
    entry: int
    stage: int


class _Stages:
    """The stages of the atoms of a program; roots in ``given`` are residues."""

    def __init__(self, table: AtomTable, given: set[Any]) -> None:
        self.table, self.given = table, given
        self.stages: list[int] = []
        for atom in table.atoms:
            own = 0
            if atom.kind == "sum":
                assert atom.definition is not None
                own = max(map(self.of, atom.definition), default=0)
            elif atom.kind == "root":
                own = self.of_root(atom.argument)
            self.stages.append(own)

    def of(self, m: Monomial) -> int:
        """The least stage for which a monomial lies in the field of its roots."""
        return max((self.of_power(atom, e) for atom, e in m), default=0)

    def of_power(self, atom: int, exponent: int) -> int:
        """Exponents are counted in halves; the square of a root is what it is taken of."""
        if exponent % 2:
            return self.of_root((1, ((atom, 2),)))
        argument = self.table.atoms[atom].argument
        if self.table.atoms[atom].kind == "root" and exponent % 4 == 0 and argument is not None:
            return self.of(argument[1])
        return self.stages[atom]

    def of_root(self, radicand: Any) -> int:
        return 0 if radicand in self.given else 1 + self.of(radicand[1])


@lru_cache(maxsize=16)
def radicands(program: Program, logarithms: bool = False) -> list[Radicand]:
    """Of roots that inputs reach and that are not drawn, one of each number on paper; of logarithms besides, or not.

    SizeError where the program is too long to be written out.
    """
    table, flags, drawn = table_of(program), needed_entries(program), drawn_roots(program)
    varies = program.depends_on_input
    entries: dict[Any, tuple[int, int]] = {}
    given: set[Any] = set()
    for place in program.places("root"):
        source = program.nodes[place].inputs[0]
        for k in np.flatnonzero(flags[place]).tolist():
            if place in drawn or not varies[place]:
                given.add(table.values[source][k])
            else:
                entries.setdefault(table.values[source][k], (source, k))
    stages = _Stages(table, given)
    unsolved = [Radicand(*entry, stages.of_root(key)) for key, entry in entries.items() if key not in given]
    if logarithms:
        others: dict[Any, tuple[int, int]] = {}
        for place in program.places("formal"):
            node = program.nodes[place]
            if node.data["name"] == "log" and varies[place]:
                for k in np.flatnonzero(flags[place]).tolist():
                    others.setdefault(table.values[node.inputs[0]][k], (node.inputs[0], k))
        unsolved += [Radicand(*entry, 1 + stages.of(key[1])) for key, entry in others.items()]
    return unsolved


@lru_cache(maxsize=16)
def degree_for(program: Program) -> int:
    """The degree of the field in which all roots of a program exist; 1 where they are few, so that samples are drawn.

    >>> from attngeom.programs import trace
    >>> norm = lambda x: x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1)
    >>> degree_for(trace(lambda w, x: norm(w["B"] @ norm(x @ w["A"].T).T), (9, 3), weights={"A": (2, 3), "B": (4, 2)}))
    2
    """
    joint = [k for k in program.places("root") if program.depends_on_input[k] and k not in drawn_roots(program)]
    if sum(program.nodes[k].size for k in joint) < ROOTS_DRAWN or len(program.inputs) == 0:
        return 1
    try:
        own = radicands(program)
    except (SizeError, FormatError):
        return 1
    if len(own) < ROOTS_DRAWN:
        return 1
    return int(min(2 ** max(root.stage for root in own), TOWER_DEGREE))


def name_point(program: Program, name: str, region: int = 0, quick: bool = False, functions: str = "") -> NamedPoint:
    """The point with this name, in the field that the roots of the program ask for."""
    degree = degree_for(program)
    if degree == 1:
        return NamedPoint(program, name, region, quick, functions)
    return TowerPoint(program, name, region, quick, functions, degree)


def _given_roots(program: Program) -> list[tuple[int, int]]:
    """The needed entries of roots that must be residues: those of weights alone, and those that are drawn."""
    flags, drawn = needed_entries(program), drawn_roots(program)
    places = [k for k in program.places("root") if k in drawn or not program.depends_on_input[k]]
    return [(place, k) for place in places for k in np.flatnonzero(flags[place]).tolist()]


def split_entries(traces: Traces, entries: list[tuple[int, int]], samples: int, degree: int) -> Array:
    """Entries of nodes of a pass as (samples, coordinates, entries)."""
    columns = []
    for place, k in entries:
        trace = traces[place]
        assert trace is not None
        parts = trace.result.reshape(-1, degree, trace.node.size)[:, :, k]
        columns.append(np.broadcast_to(parts, (samples, degree)))
    return np.stack(columns, axis=2) if columns else np.zeros((samples, degree, 0))


def values_at(point: NamedPoint, entries: list[tuple[int, int]], count: int, start: int = 0) -> Array:
    """Entries of nodes at so many samples, (samples, coordinates, entries); NaN where they do not exist."""
    samples, parts = point.draw(count, start), []
    for start in range(0, count, point.batch):
        part = samples[start : start + point.batch]
        traces, clear = point.evaluate(part)
        values = split_entries(traces, entries, len(part), point.degree)
        parts.append(np.where(clear[:, None, None], values, np.nan))
    return np.concatenate(parts)


def signs_are_free(point: NamedPoint, logarithms: bool = False) -> bool:
    """Whether no product of radicands of one stage is a function of the weights times a square, of earlier roots.

    At one θ, where functions of the weights are residues, the quadratic symbols of such a product, in the field in
    which all earlier roots lie, would be the same at all samples: those of all radicands of a stage, and a constant,
    are independent over GF(2). With ``logarithms`` what these are taken of counts as radicands as well.
    """
    own, tower = radicands(point.program, logarithms), Tower(point.prime)
    given = _given_roots(point.program)
    stages = sorted({root.stage for root in own})
    if stages and 2 ** (stages[-1] - 1) > point.degree:
        return False
    count = SPARE_ARGUMENTS + max((sum(root.stage == stage for root in own) for stage in stages), default=0)
    values = values_at(point, [*((root.place, root.entry) for root in own), *given], count)
    if np.nan_to_num(values[:, 1:, len(own) :]).any():
        return False
    for stage in stages:
        size = 2 ** (stage - 1)
        part = values[:, :, [k for k, root in enumerate(own) if root.stage == stage]]
        part = part[~np.isnan(part).any(axis=(1, 2)) & (part != 0).any(axis=1).all(axis=1)]
        if not len(part) or part[:, size:].any():
            return False
        symbols = ~tower.is_square(part[:, :size])
        table = np.concatenate([np.ones((len(part), 1), dtype=np.int64), symbols.astype(np.int64)], axis=1)
        if rank_mod_p(table, 2) < table.shape[1]:
            return False
    return True
