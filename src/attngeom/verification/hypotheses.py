"""When a minor that is not 0 mod p is not 0 as a function: values that stand for functions must respect all relations.

Checked here from the program alone, at the named point of a certificate and points named after it; what holds at one of
them is proven, whichever it is. The theorems (docs/explanation/programs.md) ask for this:

- Roots: their signs are free (:mod:`attngeom.verification.signs`).
- exp y = base^y is a homomorphism, which respects what arguments have in common; by Ax (1971) there is nothing else.
- log: free, if no product of powers of arguments is a constant times an exponential. Exponentials are squares mod p:
  seen if the symbols of all arguments, and a constant, are independent over GF(2).
- log inside of exp: free, if no sum of multiples of logarithms is one of arguments of exponentials and a constant, nor,
  of those that inputs reach, a function of the weights. Seen if logarithms add their full number to a rank mod q, and
  if that of the arguments is what it is on paper.
- Φ: free, if no two arguments have squares that differ by a constant, and there is no logarithm beside it.
- sin, cos: free, if arguments are independent over Q modulo functions of the weights, up to their signs.
- log, Φ, sin, cos of weights alone: the same modulo constants, at other weights, where functions stay what they are.
- log, Φ of numbers: those of rational numbers alone, which have no relations but those that are looked for, if
  Schanuel's conjecture holds. Exponentials of other numbers, sin and cos of numbers are refused.

Relations may hold in one piece alone: signs and orders are those of each sample of the certificate, in the whole test.
Where inputs reach a function through signs alone, its values on two pieces may be related: such programs are refused.
Arguments that are equal on paper count once; those that are equal mod p alone are two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.limits.recheck import FREE_ARGUMENTS, FREE_INSIDE, FREE_SPARE, JACOBIAN_PRODUCTS
from attngeom.results import Proof
from attngeom.verification.atoms import ONE, AtomTable, Value, power
from attngeom.verification.budget import afford
from attngeom.verification.draws import draw_sample
from attngeom.verification.interpreter import PRIMES, Interpreter, Values
from attngeom.verification.programs import CheckedNode, CheckedProgram
from attngeom.verification.reading import require
from attngeom.verification.relations import check_numbers, constant_part, written_rank
from attngeom.verification.signs import Entry, check_signs, element
from attngeom.verification.stages import check_stages
from attngeom.verification.towers import Element, TowerInterpreter, is_square, multiply

Sample = tuple[int, ...]


def check_hypotheses(interpreter: Interpreter, samples: Sequence[Sample]) -> list[Proof]:
    """Why the rank mod p at these samples is a bound, one part for each operation that has no value mod p.

    FormatError where values were seen to be related, SizeError where more samples were needed than are afforded.
    """
    pieces = _pieces(interpreter, samples)
    if len(pieces) > 1:
        for piece, _ in pieces:
            _check_choices(interpreter.program, piece.program)
    parts = [part for piece, own in pieces for part in _Hypotheses(piece, own, len(pieces)).check()]
    if any(node.operation == "pattern" for node in interpreter.program.nodes):
        parts.append(Proof("certified", "signs are those of floats, whatever their rounding errors"))
    return list(dict.fromkeys(parts))


def _pieces(interpreter: Interpreter, samples: Sequence[Sample]) -> list[tuple[Interpreter, list[Sample]]]:
    """The program with constants in the place of patterns, those of some samples, once for all on which tests rest."""
    program, places = interpreter.program, set[int]()
    if not any(node.operation == "pattern" for node in program.nodes):
        return [(interpreter, list(samples))]
    for place in range(len(program.nodes) - 1, -1, -1):
        node = program.nodes[place]
        if place in places or node.operation in ("root", "formal"):
            places.update(node.inputs)
    pieces: dict[tuple[bytes, ...], tuple[Interpreter, list[Sample]]] = {}
    for sample in samples:
        patterns = interpreter.patterns(sample[0])
        key = tuple(patterns[place].tobytes() for place in sorted(places & patterns.keys()))
        if key not in pieces:
            nodes = list(program.nodes)
            for place, pattern in patterns.items():
                entries = tuple(map(Fraction, pattern.astype(int).ravel().tolist()))
                nodes[place] = CheckedNode("constant", (), nodes[place].shape, {"entries": entries})
            piece = interpreter.elsewhere(program=replace(program, nodes=tuple(nodes)))
            pieces[key] = (piece, [])
        pieces[key][1].append(sample)
    return list(pieces.values())


def _check_choices(whole: CheckedProgram, piece: CheckedProgram) -> None:
    """FormatError where inputs reach a root or function through signs alone: on a piece it is one of weights or of
    numbers, which may be related to that of another piece.
    """
    before, after, needed = whole.reached("input"), piece.reached("input"), needed_entries(piece)
    for place, node in enumerate(piece.nodes):
        is_tested = node.operation == "root" or (node.operation == "formal" and node.data["name"] != "exp")
        if is_tested and needed[place].any():
            source = node.inputs[0]
            require(after[source] or not before[source], "roots or functions of weights that signs choose")


class _Hypotheses:
    """The tests for one piece; ``share``: in how many parts the budget is divided."""

    def __init__(self, interpreter: Interpreter, samples: Sequence[Sample], share: int) -> None:
        self.interpreter, self.program, self.samples, self.share = interpreter, interpreter.program, samples, share
        self.needed = needed_entries(self.program)
        self.varies, self.moves = self.program.reached("input"), self.program.reached("parameter")
        self.names = {node.data["name"] for node in self.program.nodes if node.operation == "formal"}
        self._table: AtomTable | None = None

    def check(self) -> list[Proof]:
        operations = {node.operation for node in self.program.nodes}
        parts = []
        if "root" in operations:
            if isinstance(self.interpreter, TowerInterpreter):
                check_stages(self.interpreter, self.needed, self.table, self.share, self.samples)
            else:
                check_signs(self.interpreter, self.needed, self.table, self.share, self.samples)
            parts.append(Proof("certified", "signs of roots are free"))
        if self.names & {"exp", "gauss"}:
            parts.append(self._check_exponentials())
        if self._inside():
            parts.append(self._check_inside())
        for names, is_free in (
            (("log",), self._logarithms_are_free),
            (("gauss",), self._integrals_are_free),
            (("sin", "cos"), self._angles_are_free),
        ):
            if self.names & set(names):
                parts.append(self._check_values(names, is_free))
        if {"log", "gauss"} <= self.names:
            parts.append(Proof("probabilistic", "squares of arguments of Φ may differ by a logarithm"))
        return parts

    @property
    def table(self) -> AtomTable:
        """All entries on paper."""
        if self._table is None:
            self._table = AtomTable(self.program)
        return self._table

    # Functions

    def _check_exponentials(self) -> Proof:
        if max(self.interpreter.depths) >= len(PRIMES):
            raise SizeError("exponentials that are nested deeper than the chain of primes found")
        densities = [_power(value, 2) for value in self._values(self._functions(("gauss",)))]
        for value in (*self._values(self._functions(("exp",))), *densities):
            is_rational = constant_part(self.table, value).keys() <= {ONE}
            require(is_rational, "exponentials of numbers that are not rational may be algebraic")
        sources = [node.inputs[0] for node in self.program.nodes if node.operation == "formal"]
        if "gauss" in self.names and any(self._is_number(k) for k in sources):
            return Proof("probabilistic", "e and π may be algebraically dependent")
        return Proof("certified", "exponentials are independent by Ax")

    def _is_number(self, place: int) -> bool:
        return not (self.varies[place] or self.moves[place])

    def _functions(self, names: Sequence[str]) -> list[int]:
        """The nodes of these functions on which outputs rest."""
        nodes = enumerate(self.program.nodes)
        places = [k for k, node in nodes if node.operation == "formal" and node.data["name"] in names]
        return [place for place in places if self.needed[place].any()]

    def _arguments(self, places: Sequence[int], up_to_signs: bool = False) -> list[Entry]:
        """The arguments of functions, those once that are equal on paper."""
        distinct: dict[Any, Entry] = {}
        for place in places:
            source = self.program.nodes[place].inputs[0]
            for k in np.flatnonzero(self.needed[place]).tolist():
                number, monomial = self.table.values[source][k]
                distinct.setdefault((abs(number) if up_to_signs else number, monomial), (source, k))
        return list(distinct.values())

    def _values(self, places: Sequence[int]) -> list[Value]:
        """The arguments on paper."""
        return [self.table.values[source][k] for source, k in self._arguments(places)]

    def _check_values(self, names: Sequence[str], is_free: Callable[[list[Entry]], bool]) -> Proof:
        """Arguments that inputs reach are independent modulo functions of the weights, all others modulo constants."""
        words, functions = " and ".join(names), self._functions(names)
        for varies in (True, False):
            places = [k for k in functions if self.varies[k] == varies and not self._is_number(k)]
            afford(sum(int(self.needed[k].sum()) for k in places), FREE_ARGUMENTS, f"values of {words} to be tested")
            is_seen = not places or is_free(self._arguments(places, up_to_signs=names[0] == "sin"))
            require(is_seen, f"values of {words} were not seen to be independent of each other")
        numbers = [k for k in functions if self._is_number(k)]
        if numbers:
            check_numbers(names[0], self._values(numbers))
            return Proof("probabilistic", f"{words} of numbers, which are free if Schanuel's conjecture holds")
        return Proof("certified", f"values of {words} are free")

    def _afford(self, rows: int) -> None:
        afford(8 * rows * self.interpreter.cost() * self.share, JACOBIAN_PRODUCTS, "products for free values")

    def _rows(self, arguments: list[Entry], count: int) -> Iterator[list[Element]]:
        """The arguments at samples at which all of them exist: those of the certificate first, then others.

        Where no input reaches them, at other weights.
        """
        rows = count + FREE_SPARE
        self._afford(rows)
        levels, varies = self.interpreter.levels + 1, self.varies[arguments[0][0]]
        own = self.samples[: 2 * rows] if varies else []
        there = 0
        for number in range(8 * rows):
            if number < len(own):
                values = self.interpreter.values(own[number])
            else:
                index = (number - len(own) if varies else 0,) * levels
                values = (self.interpreter if varies else self._at_other_weights("weights", number)).values(index)
            row = _read_elements(values, arguments)
            if row is not None:
                yield row
                there += 1
            if there >= rows:
                return

    def _at_other_weights(self, word: str, number: int) -> Interpreter:
        """Other weights mod p, with the same functions: what rests on numbers alone stays what it is."""
        return self.interpreter.elsewhere(weights=f"{self.interpreter.name}/{word}{number}")

    def _logarithms_are_free(self, arguments: list[Entry]) -> bool:
        if isinstance(self.interpreter, TowerInterpreter) and self.varies[arguments[0][0]]:
            return True  # With the signs of roots.
        p, table = PRIMES[0], []
        for row in self._rows(arguments, len(arguments) + 1):
            table.append([1, *(int(not is_square(x, p)) for x in row)])
        return bool(table) and rank_mod_p(np.array(table), 2) == len(arguments) + 1

    def _integrals_are_free(self, arguments: list[Entry]) -> bool:
        rows = list(self._rows(arguments, 1))
        changes = _changes([rows], [2] * len(arguments), PRIMES[0]).T.tolist()
        return len({(0,) * len(changes[0]), *map(tuple, changes)}) == len(arguments) + 1

    def _angles_are_free(self, arguments: list[Entry]) -> bool:
        p = PRIMES[0]
        if self.varies[arguments[0][0]]:
            return rank_mod_p(self._differences("angle", [(x, 1) for x in arguments], p), p) == len(arguments)
        rows = list(self._rows(arguments, len(arguments)))
        return rank_mod_p(_changes([rows], [1] * len(arguments), p), p) == len(arguments)

    def _inside(self) -> list[int]:
        """The logarithms that some exponential takes, directly or inside of others."""
        return [k for k in self._functions(("log",)) if self.interpreter.depths[k]]

    def _check_inside(self) -> Proof:
        """All together modulo constants, and those that inputs reach modulo functions of the weights."""
        q, functions = PRIMES[1], (self._functions(("exp",)), self._functions(("gauss",)))
        inner = [k for k in self._inside() if not self._is_number(k)]
        width = 1 + sum(int(self.needed[k].sum()) for own in (*functions, inner) for k in own)
        afford(width, FREE_INSIDE, "exponentials and logarithms in each other")
        # The density of Φ is an exponential of −x²/2.
        powers = [(k, 1 + place) for place, own in enumerate(functions) for k in self._arguments(own)]
        sources = {self.program.nodes[k].inputs[0]: k for k in inner}
        for is_constant in (True, False):
            logarithms = [
                (sources[source], k) for source, k in self._arguments(inner) if is_constant or self.varies[source]
            ]
            columns = [*powers, *((place, 1) for place in logarithms)]
            table = self._together(columns) if is_constant else self._differences("log", columns, q, lowest=1)
            whole, without = rank_mod_p(table, q), rank_mod_p(table[:, : len(powers)], q)
            require(whole == without + len(logarithms), "exponentials of logarithms may be algebraic")
            values = [_power(self.table.values[place][k], exponent) for (place, k), exponent in powers]
            is_written = without == written_rank(self.table, values, is_constant)
            require(is_written, f"arguments of exponentials beside logarithms may be related mod {q} alone")
        return Proof("certified", "arguments of exponentials are independent of logarithms")

    def _together(self, columns: list[tuple[Entry, int]]) -> Array:
        """Changes of powers of some entries, one level down, between weights and inputs."""
        rows, count, runs = list[list[Element]](), len(columns) + FREE_SPARE, 0
        self._afford(count)
        for number in range(8 * count):
            other = self._at_other_weights("log", number)
            values, _, tried = draw_sample(other, self.needed, number, 1)
            row = None if values is None else _read_elements(values, [place for place, _ in columns])
            rows += [] if row is None else [row]
            if len(rows) > count:
                break
            runs = self._count_runs(runs + tried, len(rows), count)
        return _changes([rows], [exponent for _, exponent in columns], PRIMES[1])

    def _differences(self, word: str, columns: list[tuple[Entry, int]], p: int, lowest: int = 0) -> Array:
        """Changes of powers of entries between inputs at the same weights, at more weights than there are entries."""
        count, parts, places = len(columns) + FREE_SPARE, list[list[list[Element]]](), [place for place, _ in columns]
        self._afford(count)
        runs = known = 0
        for number in range(2 * count):
            other = self.interpreter.elsewhere(name=f"{self.interpreter.name}/{word}{number}")
            rows, start = list[list[Element]](), 0
            for _ in range(4):
                values, start, tried = draw_sample(other, self.needed, start, lowest)
                runs = self._count_runs(runs + tried, known + len(rows), count)
                if values is None:
                    break
                row = _read_elements(values, places)
                rows += [] if row is None else [row]
            parts.append(rows)
            known += max(0, len(rows) - 1)
            if known >= count:
                break
        return _changes(parts, [exponent for _, exponent in columns], p)

    def _count_runs(self, runs: int, known: int, count: int) -> int:
        """SizeError where the samples that are missing take more runs than are afforded, at the rate so far."""
        expected = runs * max(1.0, count / (1 + known)) * self.interpreter.cost() * self.share
        afford(expected, 8 * JACOBIAN_PRODUCTS, "products for free values inside of exponentials")
        return runs


def _changes(parts: Sequence[list[list[Element]]], exponents: Sequence[int], p: int) -> Array:
    """The differences between powers of the first and of every other row of each part, mod p, one row a coordinate."""
    table = [np.zeros((1, len(exponents)), dtype=np.int64)]
    for rows in parts:
        powers = np.array([[x if e == 1 else multiply(x, x, p) for x, e in zip(row, exponents)] for row in rows])
        if len(rows) > 1 and exponents:
            table.append(np.moveaxis((powers[1:] - powers[:1]) % p, 2, 1).reshape(-1, len(exponents)))
    return np.concatenate(table)


def _power(value: Value, exponent: int) -> Value:
    return value[0] ** exponent, power(value[1], exponent)


def _read_elements(values: Values, entries: Sequence[Entry]) -> list[Element] | None:
    """The coordinates of some entries; None where one of them is missing."""
    row = [element(values, place, k) for place, k in entries]
    return None if None in row else [x for x in row if x is not None]


def needed_entries(program: CheckedProgram) -> list[Array]:
    """For each node which entries the output rests on."""
    flags = [np.zeros(node.size, dtype=bool) for node in program.nodes]
    flags[program.output][:] = True
    for place in range(program.output, -1, -1):
        node, own = program.nodes[place], flags[place]
        if node.operation == "gather":
            total = np.zeros(sum(program.nodes[k].size for k in node.inputs) + 1, dtype=bool)
            total[node.data["index"][own]] = True
            start = 0
            for k in node.inputs:
                flags[k] |= total[start : start + program.nodes[k].size]
                start += program.nodes[k].size
        elif node.operation == "contract":
            terms, out = node.data["subscripts"].split("->")
            words = terms.split(",")
            for number, k in enumerate(node.inputs):
                others = [words[1 - number]] if len(words) == 2 else []
                operands = [own.reshape(node.shape).astype(np.int64)]
                operands += [np.ones(program.nodes[node.inputs[1 - number]].shape, dtype=np.int64)] if others else []
                rest = "".join(x for x in words[number] if x not in out + "".join(others))
                kept = "".join(x for x in words[number] if x not in rest)
                reached = np.einsum(f"{','.join([out, *others])}->{kept}", *operands) > 0
                shape = [n if x in kept else 1 for x, n in zip(words[number], program.nodes[k].shape)]
                flags[k] |= np.broadcast_to(reached.reshape(shape), program.nodes[k].shape).ravel()
        elif node.operation == "pattern" and node.data["kind"] == "order":
            flags[node.inputs[0]] |= bool(own.any())
        else:
            for k in node.inputs:
                flags[k] |= own
    return flags
