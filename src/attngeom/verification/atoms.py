"""The entries of all nodes of a program as Laurent monomials in atoms: what local proofs calculate with.

An *atom* is a weight, an input, a sum of at least two monomials, a value of a function, or an entry of a pattern. Index
work, products, inverses and roots of atoms are written out: every entry of every node is a rational number times a
product of powers of atoms. Exponents are counted in halves, so that roots need no atoms of their own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flint import fmpq

from attngeom.errors import SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.recheck import ATOM_TERMS
from attngeom.verification.programs import CheckedNode, CheckedProgram

Monomial = tuple[tuple[int, int], ...]
"""Atoms with their exponents in halves, in the order of the atoms: ((a, 2), (b, −1)) is a/√b."""
Polynomial = dict[Monomial, fmpq]
Value = tuple[fmpq, Monomial]
"""A rational number times a monomial."""
ONE: Monomial = ()


def multiply(m: Monomial, n: Monomial) -> Monomial:
    """The product of two monomials.

    >>> multiply(((1, 2),), ((0, 2), (1, -2)))
    ((0, 2),)
    """
    if not m:
        return n
    if not n:
        return m
    powers = dict(m)
    for atom, exponent in n:
        powers[atom] = powers.get(atom, 0) + exponent
    return tuple(sorted((atom, exponent) for atom, exponent in powers.items() if exponent))


def power(m: Monomial, exponent: int) -> Monomial:
    return tuple((atom, exponent * e) for atom, e in m)


def add_to(total: Polynomial, m: Monomial, times: fmpq) -> None:
    """total += times·m, in place."""
    left = total.get(m)
    new = times if left is None else left + times
    if new:
        total[m] = new
    elif left is not None:
        del total[m]


def _common_factor(total: Polynomial) -> Monomial:
    """What all terms of a polynomial have in common: the powers of atoms that divide each of them."""
    monomials = iter(total)
    common = dict(next(monomials))
    for m in monomials:
        powers = dict(m)
        for atom in list(common):
            e, f = common[atom], powers.get(atom, 0)
            if e * f <= 0:
                del common[atom]
            else:
                common[atom] = min(e, f) if e > 0 else max(e, f)
        if not common:
            break
    return tuple(sorted(common.items()))


@dataclass
class Atom:
    """``kind``: weight, input, sum, pattern, circle, or the name of a function of ``argument``."""

    kind: str
    place: tuple[int, int]
    definition: Polynomial | None = None
    argument: Value | None = None
    users: set[int] = field(default_factory=set)


class AtomTable:
    """All entries of a program in atoms; ``values[node]`` has one (number, monomial) for each entry.

    >>> leaves = [["parameter", [], [], {"name": "a"}], ["input", [], [], {"name": "x"}]]
    >>> nodes = [*leaves, ["inverse", [0], [], {}], ["contract", [1, 2], [], {"subscripts": ",->"}]]
    >>> record = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": 3}
    >>> AtomTable(CheckedProgram.from_json(record)).values[3]
    [(1, ((0, -2), (1, 2)))]
    """

    def __init__(self, program: CheckedProgram) -> None:
        self.program = program
        self.atoms: list[Atom] = []
        self.weights: list[int] = []
        self.sums_with: dict[Monomial, list[int]] = defaultdict(list)
        self.roots: dict[int, tuple[int, int]] = {}
        self._known: dict[Any, int] = {}
        self._count = 0
        self.values: list[list[Value]] = []
        for place, node in enumerate(program.nodes):
            self.values.append(getattr(self, f"_{node.operation}")(node, place))

    def _atom(self, kind: str, key: Any, place: tuple[int, int], **content: Any) -> int:
        known = self._known.get((kind, key))
        if known is not None:
            return known
        atom = Atom(kind, place, **content)
        number = len(self.atoms)
        self.atoms.append(atom)
        self._known[(kind, key)] = number
        monomials = list(atom.definition or ()) + ([atom.argument[1]] if atom.argument else [])
        for m in monomials:
            for used, _ in m:
                self.atoms[used].users.add(number)
        for m in atom.definition or ():
            self.sums_with[m].append(number)
        return number

    def function_atom(self, name: str, number: fmpq, m: Monomial) -> int:
        """The atom of a function of number·m, which need not occur in the program."""
        return self._atom(name, (number, m), (-1, -1), argument=(number, m))

    def _afford(self, terms: int) -> None:
        self._count += terms
        if self._count > ATOM_TERMS:
            raise SizeError(f"more than {ATOM_TERMS:,} products in one program")

    # One rule for each operation

    def _parameter(self, node: CheckedNode, place: int) -> list[Value]:
        atoms = [self._atom("weight", (place, k), (place, k)) for k in range(node.size)]
        self.weights += atoms
        return [(fmpq(1), ((atom, 2),)) for atom in atoms]

    def _input(self, node: CheckedNode, place: int) -> list[Value]:
        return [(fmpq(1), ((self._atom("input", (place, k), (place, k)), 2),)) for k in range(node.size)]

    def _constant(self, node: CheckedNode, place: int) -> list[Value]:
        return [(fmpq(x.numerator, x.denominator), ONE) for x in node.data["entries"]]

    def _circle(self, node: CheckedNode, place: int) -> list[Value]:
        keys = zip(node.data["classes"], node.data["multiples"])
        return [
            (fmpq(1), ((self._atom("circle", (node.data["part"], *key), (place, k)), 2),)) for k, key in enumerate(keys)
        ]

    def _pattern(self, node: CheckedNode, place: int) -> list[Value]:
        return [(fmpq(1), ((self._atom("pattern", (place, k), (place, k)), 2),)) for k in range(node.size)]

    def _gather(self, node: CheckedNode, place: int) -> list[Value]:
        joined = [value for source in node.inputs for value in self.values[source]]
        zero = (fmpq(0), ONE)
        return [joined[k] if k >= 0 else zero for k in node.data["index"].ravel().tolist()]

    def _add(self, node: CheckedNode, place: int) -> list[Value]:
        self._afford(node.size * len(node.inputs))
        results = []
        for k in range(node.size):
            total: Polynomial = {}
            for source, times in zip(node.inputs, node.data["coefficients"]):
                number, m = self.values[source][k]
                if number:
                    add_to(total, m, times * number)
            results.append(self.reduce(total, (place, k)))
        return results

    def _contract(self, node: CheckedNode, place: int) -> list[Value]:
        terms, out = node.data["subscripts"].split("->")
        words = terms.split(",")
        letters = dict.fromkeys(out + "".join(words))
        sizes: dict[str, int] = {}
        for word, source in zip(words, node.inputs):
            sizes |= dict(zip(word, self.program.nodes[source].shape))
        shape = [sizes[letter] for letter in letters]
        self._afford(int(np.prod(shape, dtype=object)))
        grids = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), dtype=int)
        axis = dict(zip(letters, grids))

        def flat(word: str) -> Array:
            place = np.zeros(grids.shape[1], dtype=np.int64)
            for letter in word:
                place = place * sizes[letter] + axis[letter]
            return place

        totals: list[Polynomial] = [{} for _ in range(node.size)]
        operands = [[self.values[source][k] for k in flat(word).tolist()] for word, source in zip(words, node.inputs)]
        for target, *factors in zip(flat(out).tolist(), *operands):
            number, m = factors[0]
            if len(factors) == 2:
                number, m = number * factors[1][0], multiply(m, factors[1][1])
            if number:
                add_to(totals[target], m, number)
        return [self.reduce(total, (place, k)) for k, total in enumerate(totals)]

    def reduce(self, total: Polynomial, place: tuple[int, int]) -> Value:
        """A polynomial as a number times a monomial: one that has several terms becomes an atom."""
        if not total:
            return fmpq(0), ONE
        if len(total) == 1:
            ((m, number),) = total.items()
            return number, m
        common = _common_factor(total)
        if common:
            inverse = power(common, -1)
            total = {multiply(m, inverse): number for m, number in total.items()}
        items = sorted(total.items(), key=lambda item: item[0])
        lead = items[0][1]
        key = tuple((m, number / lead) for m, number in items)
        atom = self._atom("sum", key, place, definition=dict(key))
        return lead, multiply(common, ((atom, 2),))

    def _inverse(self, node: CheckedNode, place: int) -> list[Value]:
        # What is divided by 0 exists nowhere.
        return [(1 / n if n else n, power(m, -1)) for n, m in self.values[node.inputs[0]]]

    def _root(self, node: CheckedNode, place: int) -> list[Value]:
        results: list[Value] = []
        for k, (number, m) in enumerate(self.values[node.inputs[0]]):
            if number == 1 and len(m) == 1 and m[0][1] == 2:
                self.roots.setdefault(m[0][0], (place, k))
                results.append((number, ((m[0][0], 1),)))
            else:
                atom = self._atom("root", (number, m), (place, k), argument=(number, m))
                results.append((fmpq(1), ((atom, 2),)))
        return results

    def _formal(self, node: CheckedNode, place: int) -> list[Value]:
        name = node.data["name"]
        results: list[Value] = []
        for k, (number, m) in enumerate(self.values[node.inputs[0]]):
            sign = -1 if name == "exp" and number < 0 else 1
            atom = self._atom(name, (sign * number, m), (place, k), argument=(sign * number, m))
            results.append((fmpq(1), ((atom, 2 * sign),)))
        return results
