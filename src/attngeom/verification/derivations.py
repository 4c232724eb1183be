"""Proofs that a field is a symmetry for all weights and inputs: the change of every node is calculated exactly.

Along a field ξ every atom of :mod:`attngeom.verification.atoms` changes by a Laurent polynomial in atoms, by the
rules of derivatives alone. Sums that occur as a whole are written as their atoms (so g on one contracted axis and −gᵀ
on the other cancel, and the exponentials of a row sum to what they are divided by). What vanishes at random points, but
not yet on paper, is expanded until it does. If the change of the output comes out as 0, then df·ξ = 0 identically:
nothing here rests on random numbers, which only say where expanding is worth while.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from flint import fmpq

from attngeom.exact.arrays import Array
from attngeom.limits.recheck import CHANGE_TERMS, FIELD_HALVINGS, FIELD_MONOMIALS, FIELD_STEPS, SHORT_CHANGE
from attngeom.verification.atoms import ONE, AtomTable, Monomial, Polynomial, add_to, multiply, power
from attngeom.verification.programs import CheckedProgram

HALF = fmpq(1, 2)
SLOPES = {"gauss": ("density", 1), "sin": ("cos", 1), "cos": ("sin", -1)}
"""Functions whose derivative is another function of the same argument, with its sign."""


class TooLong(Exception):
    """A calculation that was given up."""


class Derivations:
    """Changes of all atoms of a program along fields; see the module docstring.

    ``values``: for each node its entries mod p at a few samples, negative where they do not exist.

    >>> leaves = [["parameter", [], [], {"name": "a"}], ["parameter", [], [], {"name": "b"}]]
    >>> nodes = [*leaves, ["contract", [0, 1], [], {"subscripts": ",->"}]]
    >>> program = CheckedProgram.from_json({"format": "attngeom/program", "version": 1, "nodes": nodes, "output": 2})
    >>> changes = Derivations(program, [], 7)
    >>> changes.vanishes({(0, 0): fmpq(1), (1, 1): fmpq(-1)}), changes.vanishes({(0, 0): fmpq(1)})
    (True, False)
    """

    def __init__(self, program: CheckedProgram, values: Sequence[Array], p: int) -> None:
        self.terms = AtomTable(program)
        self.p = p
        self._work = self._steps = self._given_up = 0
        self._evaluate(values)

    def _evaluate(self, values: Sequence[Array]) -> None:
        """The values of all atoms at the samples: those that the program computes, and sums of them."""
        self._samples = len(values[0]) if values else 0
        self._numbers: dict[int, list[int]] = {}
        self._halves: dict[int, list[int]] = {}
        for number, atom in enumerate(self.terms.atoms if values else ()):
            if number in self.terms.roots:
                self._store(self._halves, number, values, self.terms.roots[number])
            if atom.definition is None:
                self._store(self._numbers, number, values, atom.place)
                continue
            sums = [self._value(atom.definition, sample) for sample in range(self._samples)]
            if None not in sums:
                self._numbers[number] = [value for value in sums if value is not None]

    def _store(self, table: dict[int, list[int]], number: int, values: Sequence[Array], place: tuple[int, int]) -> None:
        """The value of an atom that the program computes, unless it does not exist."""
        column = [int(x) for x in values[place[0]].reshape(self._samples, -1)[:, place[1]]]
        if min(column) < 0:
            return
        if self.terms.values[place[0]][place[1]][1][0][1] < 0:
            # exp(−x) is written as the inverse of an atom.
            column = [pow(x, -1, self.p) for x in column]
        table[number] = column

    def _value(self, polynomial: Polynomial, sample: int) -> int | None:
        """The polynomial mod p at a sample; None where an atom has no value."""
        p, total = self.p, 0
        for m, times in polynomial.items():
            product = int(times.p) * pow(int(times.q), -1, p) % p
            for atom, exponent in m:
                values = (self._halves if exponent % 2 else self._numbers).get(atom)
                if values is None or (exponent < 0 and not values[sample]):
                    return None
                product = product * pow(values[sample], exponent if exponent % 2 else exponent // 2, p) % p
            total += product
        return total % p

    def vanishes(self, field: Mapping[tuple[int, int | None], fmpq]) -> bool:
        """Whether df·ξ = 0 was proven; False says only that it was not.

        ``field``: (weight that moves, weight by which, or None for 1): times what. Every calculation that is given up
        halves what the next ones may cost, down to a small part, so that many of them cost no more than a few.
        """
        self._work = self._steps = 0
        try:
            return self._vanishes(field)
        except TooLong:
            self._given_up = min(self._given_up + 1, FIELD_HALVINGS)
            return False

    def _vanishes(self, field: Mapping[tuple[int, int | None], fmpq]) -> bool:
        terms, changes = self.terms, dict[int, Polynomial]()
        for (moved, source), times in field.items():
            monomial: Monomial = ONE if source is None else ((terms.weights[source], 2),)
            add_to(changes.setdefault(terms.weights[moved], {}), monomial, times)
        waiting = [user for atom in changes if changes[atom] for user in terms.atoms[atom].users]
        heapq.heapify(waiting)
        last = -1
        while waiting:
            number = heapq.heappop(waiting)
            if number == last:
                continue
            last = number
            change = self._simplify(self._change_of_atom(number, changes))
            if change:
                changes[number] = change
                for user in terms.atoms[number].users:
                    heapq.heappush(waiting, user)
        for times, monomial in terms.values[terms.program.output]:
            total: Polynomial = {}
            self._add_change(total, monomial, times, changes)
            if total and self._simplify(total):
                return False
        return True

    def _change_of_atom(self, number: int, changes: Mapping[int, Polynomial]) -> Polynomial:
        """The rule of derivatives for one atom."""
        terms, atom, total = self.terms, self.terms.atoms[number], dict[Monomial, fmpq]()
        for m, times in (atom.definition or {}).items():
            self._add_change(total, m, times, changes)
        if atom.argument is None:
            return total
        times, m = atom.argument
        inner: Polynomial = {}
        self._add_change(inner, m, fmpq(1), changes)
        own: Monomial = ((number, 2),)
        if atom.kind == "exp":
            factor, outer = times, own
        elif atom.kind == "log":
            factor, outer = fmpq(1), power(m, -1)
        elif atom.kind == "root":
            factor, outer = HALF, multiply(own, power(m, -1))
        elif atom.kind == "density":
            factor, outer = -times * times, multiply(own, m)
        else:
            other, sign = SLOPES[atom.kind]
            factor, outer = sign * times, ((terms.function_atom(other, times, m), 2),)
        return {multiply(n, outer): factor * c for n, c in inner.items()}

    def _spend(self, products: int) -> None:
        self._work += products
        if self._work > FIELD_MONOMIALS >> self._given_up:
            raise TooLong

    def _look(self, monomials: int) -> None:
        """Pay for monomials that are about to be looked at."""
        self._steps += monomials
        if self._steps > FIELD_STEPS >> self._given_up:
            raise TooLong

    def _add_change(self, total: Polynomial, m: Monomial, times: fmpq, changes: Mapping[int, Polynomial]) -> None:
        """total += times · d m."""
        for atom, exponent in m:
            change = changes.get(atom)
            if change:
                rest = multiply(m, ((atom, -2),))
                self._spend(len(change))
                for n, c in change.items():
                    add_to(total, multiply(rest, n), times * c * exponent * HALF)
        if len(total) > CHANGE_TERMS:
            raise TooLong

    # Simplification: every step is an identity

    def _simplify(self, polynomial: Polynomial) -> Polynomial:
        """The same change, shorter: sums as atoms; zero if it vanishes at random samples and expanding shows why."""
        self._fold(polynomial)
        while len(polynomial) > 1 and self._cancel(polynomial):
            self._fold(polynomial)
        if polynomial and self._seems_zero(polynomial) and not self._expanded(polynomial):
            return {}
        return polynomial

    def _fold(self, polynomial: Polynomial) -> None:
        """Write cofactor·(terms of a sum) as cofactor·(its atom), wherever all of them are there, in place."""
        for m in list(polynomial):
            if m not in polynomial:
                continue
            self._look(len(m) ** 2)
            for part in _parts(m):
                whole = next(
                    (s for s in self.terms.sums_with.get(part, ()) if self._holds(polynomial, m, part, s)), None
                )
                if whole is None:
                    continue
                definition = self.terms.atoms[whole].definition
                assert definition is not None
                cofactor = multiply(m, power(part, -1))
                times = polynomial[m] / definition[part]
                for n in definition:
                    del polynomial[multiply(cofactor, n)]
                add_to(polynomial, multiply(cofactor, ((whole, 2),)), times)
                break

    def _cancel(self, polynomial: Polynomial) -> bool:
        """Write out a sum whose terms cancel against others, so that fewer are left; whether there was one."""
        for m, times in polynomial.items():
            for atom, exponent in m:
                definition = self.terms.atoms[atom].definition
                if definition is None or exponent < 2:
                    continue
                self._look(len(definition))
                rest = multiply(m, ((atom, -2),))
                written = {multiply(rest, n): times * c for n, c in definition.items()}
                gone = sum(polynomial.get(n) == -c for n, c in written.items())
                new = sum(n not in polynomial for n in written)
                if new < 1 + gone:
                    del polynomial[m]
                    for n, c in written.items():
                        add_to(polynomial, n, c)
                    return True
        return False

    def _holds(self, polynomial: Polynomial, m: Monomial, part: Monomial, whole: int) -> bool:
        definition = self.terms.atoms[whole].definition
        assert definition is not None
        self._look(len(definition))
        cofactor, times = multiply(m, power(part, -1)), polynomial[m] / definition[part]
        return all(polynomial.get(multiply(cofactor, n)) == times * c for n, c in definition.items())

    def _seems_zero(self, polynomial: Polynomial) -> bool:
        """Whether the polynomial vanishes at the samples; short ones with atoms without a value are suspected too.

        A single term does not vanish, also where its pattern is 0 at the samples.
        """
        if len(polynomial) == 1:
            return False
        self._look(sum(map(len, polynomial)) * self._samples)
        values = [self._value(polynomial, sample) for sample in range(self._samples)]
        return len(polynomial) <= SHORT_CHANGE if None in values or not values else not any(values)

    def _expanded(self, polynomial: Polynomial) -> Polynomial:
        """The polynomial times a monomial, with its sums written out, the outermost first; {} proves that it is 0."""
        current = self._split_exponentials(polynomial)
        while current:
            least: dict[int, int] = {}
            for m in current:
                for atom, e in m:
                    if e < least.get(atom, 0):
                        least[atom] = e
            clear: Monomial = tuple(sorted((atom, -e) for atom, e in least.items()))
            current = {multiply(m, clear): c for m, c in current.items()} if clear else current
            sums = {atom for m in current for atom, e in m if e >= 2 and self.terms.atoms[atom].definition is not None}
            if not sums:
                return current
            current = self._substitute(current, max(sums))
        return current

    def _substitute(self, polynomial: Polynomial, whole: int) -> Polynomial:
        """Write one sum out, wherever it has a positive exponent."""
        definition = self.terms.atoms[whole].definition
        assert definition is not None
        result: Polynomial = {}
        for m, times in polynomial.items():
            exponent = dict(m).get(whole, 0)
            if exponent < 2:
                add_to(result, m, times)
                continue
            rest = multiply(m, ((whole, -2 * (exponent // 2)),))
            partial: Polynomial = {rest: times}
            for _ in range(exponent // 2):
                product: Polynomial = {}
                self._spend(len(partial) * len(definition))
                for n, c in partial.items():
                    for k, d in definition.items():
                        add_to(product, multiply(n, k), c * d)
                partial = product
                if len(partial) > CHANGE_TERMS:
                    raise TooLong
            for n, c in partial.items():
                add_to(result, n, c)
            if len(result) > CHANGE_TERMS:
                raise TooLong
        return result

    def _split_exponentials(self, polynomial: Polynomial) -> Polynomial:
        """exp of a sum as a product of exponentials of monomials, so that exp a · exp b = exp(a + b)."""
        atoms = {atom for m in polynomial for atom, _ in m if self.terms.atoms[atom].kind == "exp"}
        if len(atoms) < 2:
            return polynomial
        products = {atom: self._split_exponential(atom) for atom in atoms}
        result: Polynomial = {}
        for m, times in polynomial.items():
            product: Monomial = ONE
            for atom, exponent in m:
                factor = products.get(atom)
                whole: Monomial = ((atom, exponent),)
                if factor is not None and exponent % 2 == 0:
                    whole = power(factor, exponent // 2)
                product = multiply(product, whole)
            add_to(result, product, times)
        return result

    def _split_exponential(self, atom: int) -> Monomial:
        argument = self.terms.atoms[atom].argument
        assert argument is not None
        times, m = argument
        expanded: Polynomial = {m: times}
        while True:
            sums = {a for n in expanded for a, e in n if e >= 2 and self.terms.atoms[a].definition is not None}
            if not sums:
                break
            expanded = self._substitute(expanded, max(sums))
        product: Monomial = ONE
        for n, c in expanded.items():
            sign = 1 if c > 0 else -1
            part = self.terms.function_atom("exp", sign * c, n)
            product = multiply(product, ((part, 2 * sign),))
        return product


def _parts(m: Monomial) -> Iterator[Monomial]:
    """The monomials of up to four atoms that divide m: those that may be terms of a sum."""
    yield ONE
    for size in (1, 2, 3, 4):
        for part in combinations(m, size):
            yield part
            for place, (atom, exponent) in enumerate(part):
                if abs(exponent) > 2:
                    yield (*part[:place], (atom, 2 if exponent > 0 else -2), *part[place + 1 :])
