"""Whether the signs of roots are free at points in larger fields, where all of them exist: stage by stage.

A root is of stage 1 if it is taken of a function of weights, inputs and values of functions without roots, on paper, of
stage d + 1 if it is taken of a function of roots of stage d at most. At residues roots of stage d lie in GF(p^(2^d)),
and what those of stage d + 1 are taken of lies there too. *If the quadratic symbols there of all that is under the
roots of one stage, and a constant, are independent over GF(2) at samples with the same weights, then the signs of all
roots are free.* For else some product of them would be c w², c a function of the weights, and w one of earlier roots
(Kummer); c is a residue at these weights, so that its symbol is the same at all samples, and that of w² is 1. The local
rings of samples at which no root is 0 are regular, so that w has a value there.

Products of powers of what logarithms are taken of are no constants times exponentials, if they are independent as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.limits.recheck import FREE_SPARE, SIGN_SAMPLES
from attngeom.verification.atoms import AtomTable, Monomial
from attngeom.verification.interpreter import PRIMES, Values
from attngeom.verification.signs import Entry, check_signs, element, entry, good_samples, lone_roots
from attngeom.verification.towers import TowerInterpreter, is_square

Sample = tuple[int, ...]


class RootStages:
    """The stages of all atoms of a program; what is under roots of the first argument is a square of residues."""

    def __init__(self, table: AtomTable, drawn: Iterable[Any]) -> None:
        self.drawn, self._atoms = set(drawn), table.atoms
        self._stages: list[int] = []
        for atom in table.atoms:
            inner = [self.of_value(m) for m in atom.definition or ()] if atom.kind == "sum" else []
            if atom.kind == "root" and atom.argument is not None:
                inner = [self.of_root(atom.argument)]
            self._stages.append(max(inner, default=0))

    def of_value(self, m: Monomial) -> int:
        """The largest stage of a root on which a monomial rests."""
        return max((self._of_factor(atom, halves) for atom, halves in m), default=0)

    def of_root(self, value: tuple[Any, Monomial]) -> int:
        """The stage of the root of a value."""
        return 0 if value in self.drawn else self.of_value(value[1]) + 1

    def _of_factor(self, number: int, halves: int) -> int:
        atom = self._atoms[number]
        if halves % 2:
            return self.of_root((1, ((number, 2),)))
        is_square = atom.kind == "root" and halves % 4 == 0
        return self.of_value(atom.argument[1]) if is_square and atom.argument else self._stages[number]


def check_stages(
    interpreter: TowerInterpreter, needed: Sequence[Array], table: AtomTable, share: int, samples: Sequence[Sample]
) -> None:
    """SizeError unless the symbols of what is under the roots of each stage were seen to be independent.

    ``samples``: those of the minor. Roots of one of several inputs alone count as functions of this input, where all of
    these samples have residues for them; they and those of weights alone are looked at without larger fields.
    """
    p, program, varies = PRIMES[0], interpreter.program, interpreter.program.reached("input")
    known = list(dict.fromkeys(samples))
    roots = [
        (place, k)
        for place, node in enumerate(program.nodes)
        if node.operation == "root"
        for k in np.flatnonzero(needed[place]).tolist()
    ]
    lone = lone_roots(interpreter)
    has_residues = all(_are_residues(interpreter.values(x), [r for r in roots if r[0] in lone]) for x in known)
    given = [(place, k) for place, k in roots if not varies[place] or (has_residues and place in lone)]
    check_signs(interpreter.residues(), needed, table, share, (), set(given).__contains__)
    stages = RootStages(table, [table.values[program.nodes[place].inputs[0]][k] for place, k in given])
    entries: dict[Any, tuple[Entry, int]] = {}
    for place, k in roots:
        source = program.nodes[place].inputs[0]
        own = table.values[source][k]
        if own not in stages.drawn:
            entries.setdefault(("root", own), ((source, k), stages.of_root(own)))
    for place, node in enumerate(program.nodes):
        if node.operation == "formal" and node.data["name"] == "log" and varies[place]:
            for k in np.flatnonzero(needed[place]).tolist():
                own = table.values[node.inputs[0]][k]
                entries.setdefault(("log", own), ((node.inputs[0], k), stages.of_value(own[1]) + 1))
    _check_symbols(
        interpreter,
        list(entries.values()),
        _more_samples(interpreter, known, len(entries), lone if has_residues else {}),
        given,
        p,
    )


def _are_residues(values: Values, entries: Iterable[Entry]) -> bool:
    return all(entry(values, place, k) is not None for place, k in entries)


def _more_samples(
    interpreter: TowerInterpreter, known: Sequence[Sample], count: int, drawn: Mapping[int, str]
) -> list[Sample]:
    """Those that are known and others, with residues for the roots of single inputs that are drawn."""
    missing = range(max(0, count + FREE_SPARE - len(known)))
    if not drawn:
        return list(dict.fromkeys([*known, *((10**5 + number,) * (interpreter.levels + 1) for number in missing)]))
    good = good_samples(interpreter.residues(), drawn, SIGN_SAMPLES)
    return list(dict.fromkeys([*known, *map(good, missing)]))


def _check_symbols(
    interpreter: TowerInterpreter,
    entries: Sequence[tuple[Entry, int]],
    samples: Sequence[Sample],
    given: Sequence[Entry],
    p: int,
) -> None:
    stages = sorted({stage for _, stage in entries})
    if stages and 2 ** (stages[-1] - 1) > interpreter.degree:
        raise SizeError("roots inside each other, deeper than the field of their point shows, found")
    rows: dict[int, list[list[int]]] = {stage: [] for stage in stages}
    for sample in samples:
        values = interpreter.values(sample)
        if not _are_residues(values, given):
            raise SizeError("a root that is no residue where it has to be one found")
        for stage in stages:
            row = [1]
            for place, k in (own for own, s in entries if s == stage):
                x = element(values, place, k)
                if x is None or not any(x):
                    break
                if any(x[2 ** (stage - 1) :]):
                    raise SizeError("a number in a larger field than the stage of its root says found")
                row.append(int(not is_square(x[: 2 ** (stage - 1)], p)))
            else:
                rows[stage].append(row)
    for stage, table in rows.items():
        width = 1 + sum(s == stage for _, s in entries)
        if not table or rank_mod_p(np.array(table, dtype=np.int64), 2) < width:
            raise SizeError(f"the signs of {width - 1} roots of stage {stage} were not seen to be free")
