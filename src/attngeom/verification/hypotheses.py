"""When a minor that is not 0 mod p is not 0 as a function: values that stand for functions must respect all relations.

Checked here from the program alone, at the named point of a certificate and points named after it; what holds at one of
them is proven, whichever it is. The theorems (docs/explanation/programs.md) ask for this:

- Roots: none is a constant times a square over those before it, so that its sign is free. Seen if what is under the
  root is a residue at some samples and not at others, among those at which the roots before exist.
- exp y = base^y is a homomorphism, which respects what arguments have in common; by Ax (1971) there is nothing else.
- log: free, if no product of powers of arguments is a constant times an exponential. Exponentials are squares mod p:
  seen if the symbols of all arguments, and a constant, are independent over GF(2).
- log inside of exp: free, if no sum of multiples of logarithms is one of arguments of exponentials and a constant. Seen
  if logarithms add their full number to a rank mod q, and if that of the arguments is what it is on paper.
- Φ: free, if no two arguments have squares that differ by a constant, and there is no logarithm beside it.
- sin, cos: free, if arguments are independent over Q modulo functions of the weights, up to their signs.
- log, Φ, sin, cos of weights alone: the same modulo constants, at other weights.

Arguments that are equal on paper count once; those that are equal mod p alone are two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.exact.modular import rank_mod_p
from attngeom.limits.recheck import (
    CHANGE_TERMS,
    FREE_ARGUMENTS,
    FREE_INSIDE,
    FREE_SPARE,
    JACOBIAN_PRODUCTS,
    SIGN_SAMPLES,
)
from attngeom.results import Proof
from attngeom.verification.atoms import ONE, AtomTable, Polynomial, Value, add_to, multiply
from attngeom.verification.budget import afford, allowance
from attngeom.verification.interpreter import PRIMES, Interpreter, Values
from attngeom.verification.programs import CheckedProgram
from attngeom.verification.reading import require

Entry = tuple[int, int]
"""A node and one of its entries."""
Sample = tuple[int, ...]


def check_hypotheses(interpreter: Interpreter, samples: Sequence[Sample]) -> list[Proof]:
    """Why the rank mod p at these samples is a bound, one part for each operation that has no value mod p.

    FormatError where values were seen to be related, SizeError where more samples were needed than are afforded.
    """
    return _Hypotheses(interpreter, samples).check()


class _Hypotheses:
    def __init__(self, interpreter: Interpreter, samples: Sequence[Sample]) -> None:
        self.interpreter, self.program, self.samples = interpreter, interpreter.program, samples
        self.needed = needed_entries(self.program)
        self.varies, self.moves = self.program.reached("input"), self.program.reached("parameter")
        self.names = {node.data["name"] for node in self.program.nodes if node.operation == "formal"}
        self._table: AtomTable | None = None

    def check(self) -> list[Proof]:
        operations = {node.operation for node in self.program.nodes}
        parts = []
        if "root" in operations:
            self._check_roots()
            parts.append(Proof("certified", "signs of roots are free"))
        if self.names & {"exp", "gauss"}:
            parts.append(self._check_exponentials())
        if {"exp", "log"} <= self.names and self._inside():
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
        if "pattern" in operations:
            parts.append(Proof("certified", "signs are those of floats with a margin"))
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
            return Proof("probabilistic", "exponentials are nested deeper than the chain of primes")
        sources = [node.inputs[0] for node in self.program.nodes if node.operation == "formal"]
        if "gauss" in self.names and any(not self.varies[k] and not self.moves[k] for k in sources):
            return Proof("probabilistic", "e and π may be algebraically dependent")
        numbers = self._numbers()
        if any(n.data.get("name") in ("exp", "gauss") and numbers[n.inputs[0]] for n in self.program.nodes):
            return Proof("probabilistic", "exponentials of numbers that are not rational may be algebraic")
        return Proof("certified", "exponentials are independent by Ax")

    def _numbers(self) -> list[bool]:
        """For each node whether numbers such as e stand in it alone, or in a sum with others."""
        flags: list[bool] = []
        for place, node in enumerate(self.program.nodes):
            own = node.operation in ("circle", "formal") or any(flags[k] for k in node.inputs)
            moves = self.varies[place] or self.moves[place]
            flags.append(own and not (moves and node.operation in ("formal", "contract", "pattern")))
        return flags

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

    def _check_values(self, names: Sequence[str], is_free: Callable[[list[Entry]], bool]) -> Proof:
        """Arguments that inputs reach are independent modulo functions of the weights, all others modulo constants."""
        words, functions = " and ".join(names), self._functions(names)
        for varies in (True, False):
            places = [k for k in functions if self.varies[k] == varies]
            if not varies and not all(self.moves[k] for k in places):
                return Proof("probabilistic", f"{words} of numbers, whose relations are not tested")
            count = sum(int(self.needed[k].sum()) for k in places)
            if count > FREE_ARGUMENTS:
                return Proof("probabilistic", f"{count:,} values of {words}, too many to test for relations")
            arguments = self._arguments(places, up_to_signs=names[0] == "sin")
            is_seen = not places or is_free(arguments)
            require(is_seen, f"values of {words} were not seen to be independent of each other")
        return Proof("certified", f"values of {words} are free")

    def _rows(self, arguments: list[Entry], count: int) -> Iterator[list[int]]:
        """The arguments at samples at which all of them exist: those of the certificate first, then others.

        Where no input reaches them, at other weights.
        """
        afford(8 * (count + FREE_SPARE) * self.interpreter.cost(), JACOBIAN_PRODUCTS, "products for free values")
        levels, given = self.interpreter.levels + 1, 0
        for number in range(8 * (count + FREE_SPARE)):
            if self.varies[arguments[0][0]]:
                own = self.samples[: 2 * (count + FREE_SPARE)]
                sample = own[number] if number < len(own) else (number - len(own),) * levels
                values = self.interpreter.values(sample)
            else:
                other = f"{self.interpreter.name}/weights{number}"
                values = Interpreter(self.program, other, self.interpreter.region).values((0,) * levels)
            row = _read(values, arguments)
            if row is not None:
                yield row
                given += 1
            if given >= count + FREE_SPARE:
                return

    def _logarithms_are_free(self, arguments: list[Entry]) -> bool:
        p, table = PRIMES[0], []
        for row in self._rows(arguments, len(arguments) + 1):
            table.append([1, *(int(pow(x, (p - 1) // 2, p) != 1) for x in row)])
        return bool(table) and rank_mod_p(np.array(table), 2) == len(arguments) + 1

    def _integrals_are_free(self, arguments: list[Entry]) -> bool:
        p, rows = PRIMES[0], list(self._rows(arguments, 1))
        changes = [tuple((row[k] ** 2 - rows[0][k] ** 2) % p for row in rows) for k in range(len(arguments))]
        return len({(0,) * len(rows), *changes}) == len(arguments) + 1

    def _angles_are_free(self, arguments: list[Entry]) -> bool:
        p = PRIMES[0]
        if self.varies[arguments[0][0]]:
            return rank_mod_p(self._differences("angle", arguments, p), p) == len(arguments)
        rows = np.array(list(self._rows(arguments, len(arguments))), dtype=np.int64)
        return rank_mod_p((rows[1:] - rows[:1]) % p, p) == len(arguments)

    def _inside(self) -> list[int]:
        """The logarithms that some exponential takes, directly or inside of others."""
        return [k for k in self._functions(("log",)) if self.interpreter.depths[k]]

    def _check_inside(self) -> Proof:
        outer, inner, q = self._functions(("exp", "gauss")), self._inside(), PRIMES[1]
        width = 1 + sum(int(self.needed[k].sum()) for k in (*outer, *inner))
        if width > FREE_INSIDE:
            return Proof("probabilistic", f"{width:,} exponentials and logarithms in each other, too many to test")
        if not all(self.varies[k] for k in inner):
            return Proof("probabilistic", "log of weights alone, whose relations are not tested")
        arguments, logarithms = self._arguments(outer), self._arguments(inner)
        places = {self.program.nodes[k].inputs[0]: k for k in inner}
        columns = [*arguments, *((places[source], k) for source, k in logarithms)]
        table = self._differences("log", columns, PRIMES[1], lowest=1)
        whole, without = rank_mod_p(table, q), rank_mod_p(table[:, : len(arguments)], q)
        require(whole == without + len(logarithms), "exponentials of logarithms may be algebraic")
        is_written = without == written_rank(self.table, [self.table.values[place][k] for place, k in arguments])
        require(is_written, f"arguments of exponentials beside logarithms may be related mod {q} alone")
        return Proof("certified", "arguments of exponentials are independent of logarithms")

    def _differences(self, word: str, columns: list[Entry], p: int, lowest: int = 0) -> Array:
        """Changes of some entries between inputs at the same weights, at more weights than there are entries."""
        count, parts, total = len(columns) + FREE_SPARE, [np.zeros((1, len(columns)), dtype=np.int64)], 0
        afford(8 * count * self.interpreter.cost(), JACOBIAN_PRODUCTS, "products for free values")
        for number in range(2 * count):
            other = Interpreter(self.program, f"{self.interpreter.name}/{word}{number}", self.interpreter.region)
            values = (other.values((k,) * (other.levels + 1), lowest) for k in range(4))
            rows = np.array([row for row in (_read(x, columns) for x in values) if row is not None], dtype=np.int64)
            if len(rows) > 1:
                parts.append((rows[1:] - rows[:1]) % p)
                total += len(rows) - 1
            if total >= count:
                break
        return np.concatenate(parts)

    # Roots

    def _check_roots(self) -> None:
        """SizeError unless the signs of all roots were seen to be free: of weights, of single inputs, of all others."""
        roots = self._roots()
        lone = self._lone() if len(self.interpreter.inputs) > 1 else {}
        budget = min(SIGN_SAMPLES, int(allowance(2 * JACOBIAN_PRODUCTS) / max(1, 100 * self.interpreter.cost())))

        def at_weights(number: int) -> Values:
            other = Interpreter(self.program, f"{self.interpreter.name}/root{number}", self.interpreter.region)
            return other.values((0,) * (other.levels + 1))

        def at_index(number: int) -> Values:
            return self.interpreter.values((number,) * (self.interpreter.levels + 1))

        groups: list[tuple[list[Entry], Callable[[int], Values]]] = []
        groups.append(([root for root in roots if not self.varies[root[0]]], at_weights))
        for name in self.interpreter.inputs:
            groups.append(([root for root in roots if lone.get(root[0]) == name], at_index))
        joint = [root for root in roots if self.varies[root[0]] and root[0] not in lone]
        groups.append((joint, self._at_good_inputs(lone, budget) if lone and joint else at_index))
        for own, draw in groups:
            if own and not self._signs_are_free(own, draw, budget):
                raise SizeError(f"the signs of {len(own)} roots were not seen to be free at {budget:,} samples")

    def _roots(self) -> list[Entry]:
        """Roots on which outputs rest; of one and the same number on paper, one."""
        distinct: dict[Any, Entry] = {}
        for place, node in enumerate(self.program.nodes):
            if node.operation == "root":
                for k in np.flatnonzero(self.needed[place]).tolist():
                    distinct.setdefault(self.table.values[node.inputs[0]][k], (place, k))
        return list(distinct.values())

    def _lone(self) -> dict[int, str]:
        """The roots that rest on one input alone and on no function, with its name."""
        sources: list[frozenset[str]] = []
        for node in self.program.nodes:
            own = {node.data["name"]} if node.operation == "input" else set()
            if node.operation in ("formal", "pattern"):
                own = {"", *self.interpreter.inputs}
            sources.append(frozenset(own).union(*(sources[k] for k in node.inputs)))
        nodes = enumerate(self.program.nodes)
        return {k: next(iter(sources[k])) for k, node in nodes if node.operation == "root" and len(sources[k]) == 1}

    def _at_good_inputs(self, lone: dict[int, str], budget: int) -> Callable[[int], Values]:
        """Samples of inputs whose own roots exist at every level: what inputs give is independent of each other."""
        inputs, levels = self.interpreter.inputs, self.interpreter.levels + 1
        good: list[list[list[int]]] = [[[] for _ in inputs] for _ in range(levels)]
        for index in range(budget):
            for level in range(levels):
                values = self.interpreter.values((index,) * levels, lowest=level)
                for k, name in enumerate(inputs):
                    own = [values[place] for place in lone if lone[place] == name]
                    if not any(x[1].any() for x in own if x is not None):
                        good[level][k].append(index)
            if all(len(row) >= FREE_SPARE for rows in good for row in rows):
                break

        def draw(number: int) -> Values:
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
            return self.interpreter.values(tuple(sample))

        return draw

    def _signs_are_free(self, roots: list[Entry], draw: Callable[[int], Values], budget: int) -> bool:
        """Whether each root exists at some samples and not at others, among those at which the ones before exist.

        A number times a square is a residue at all of them or at none. That the root of 0 is missing, or of what is
        missing itself, says nothing.
        """
        cases = {(root, exists) for root in roots for exists in (True, False)}
        for number in range(budget):
            values = draw(number)
            for root in roots:
                place, k = root
                if _entry(values, place, k) is not None:
                    cases.discard((root, True))
                    continue
                if _entry(values, self.program.nodes[place].inputs[0], k):
                    cases.discard((root, False))
                break
            if not cases:
                return True
        return False


def _entry(values: Values, place: int, k: int) -> int | None:
    """One entry of a node, None where it is missing."""
    value = values[place]
    return None if value is None or value[1].ravel()[k] else int(value[0].ravel()[k])


def _read(values: Values, entries: Sequence[Entry]) -> list[int] | None:
    """Some entries; None where one of them is missing."""
    row = [_entry(values, place, k) for place, k in entries]
    return None if None in row else [x for x in row if x is not None]


def written_rank(table: AtomTable, values: Sequence[Value], constants: bool = False) -> int:
    """The rank over Q of values modulo functions of the weights, as it is seen when sums are written out.

    It is at least the rank of the functions, which is at least that of their values mod a prime. ``constants``: modulo
    constants alone.
    """
    leaves = ("input", "pattern", "weight") if constants else ("input", "pattern")
    varies: list[bool] = []
    for atom in table.atoms:
        parts = [*(atom.definition or ()), *([atom.argument[1]] if atom.argument else [])]
        varies.append(atom.kind in leaves or any(varies[a] for m in parts for a, _ in m))
    rows = []
    for number, monomial in values:
        terms = _write_out(table, {monomial: number} if number else {})
        rows.append({m: c for m, c in terms.items() if any(varies[a] for a, _ in m)})
    columns = {m: k for k, m in enumerate(dict.fromkeys(m for row in rows for m in row))}
    matrix = fmpq_mat(len(rows), len(columns))
    for i, row in enumerate(rows):
        for m, number in row.items():
            matrix[i, columns[m]] = number
    return int(matrix.rank())


def _write_out(table: AtomTable, terms: Polynomial) -> Polynomial:
    """The same polynomial with sums written out, the last first, as long as it stays short."""
    while True:
        whole = max((a for m in terms for a, e in m if e > 1 and table.atoms[a].definition), default=None)
        if whole is None:
            return terms
        result: Polynomial = {}
        for m, number in terms.items():
            is_there = dict(m).get(whole, 0) > 1
            rest = multiply(m, ((whole, -2),)) if is_there else m
            for n, c in ((table.atoms[whole].definition or {}) if is_there else {ONE: fmpq(1)}).items():
                add_to(result, multiply(rest, n), number * c)
        if len(result) > CHANGE_TERMS:
            return terms
        terms = result


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
