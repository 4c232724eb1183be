"""Sines and cosines of sums: arguments that depend on each other over Q are written as multiples of some that do not.

What is under all sines and cosines of a program, as sums of products of entries of earlier nodes with rational
factors, spans a lattice. With a basis e_1, …, e_r of it, cos Σ n_j e_j and sin Σ n_j e_j are polynomials in the cos e_j
and sin e_j, by the theorem of addition. Filters sin(l a + b) at all places l, and powers e^{ila} of a recurrence, are
written so: their values would not be free otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm

import numpy as np
from flint import fmpz_mat

from attngeom.limits.sizes import ANGLE_ARGUMENTS, ANGLE_MULTIPLE, ANGLE_TERMS
from attngeom.programs.builder import Builder
from attngeom.programs.program import Program

Entry = tuple[int, int]
Term = tuple[Entry, ...]
"""A product of entries of nodes; that of none is 1."""
Form = dict[Term, Fraction]
"""A sum of products of entries of nodes, with rational factors."""
NUMBER: Term = ()
Pair = tuple[int, int]
"""The nodes of cosines and sines."""


def add_angles(program: Program) -> Program:
    """The same function, with sines and cosines of arguments that are independent over Q.

    >>> from attngeom.programs import trace
    >>> program = trace(lambda w, x: np.sin(w["a"] * x) + np.cos(3 * w["a"] * x), (), weights={"a": ()})
    >>> len([k for k in program.places("formal")])
    2
    """
    places = [k for k in program.places("formal") if program.nodes[k].data["name"] in ("sin", "cos")]
    if not places or sum(program.nodes[k].size for k in places) > ANGLE_ARGUMENTS:
        return program
    forms = _Forms(program)
    arguments = {place: forms.of(program.nodes[place].inputs[0]) for place in places}
    distinct = sorted({_up_to_sign(x) for own in arguments.values() for x in own if x and NUMBER not in x})
    first: dict[Key, int] = {}
    for place in places:
        for form in arguments[place]:
            first.setdefault(_up_to_sign(form), place)
    parts = [_Part(forms, program.depends_on_input) for forms in _components(distinct)]
    parts = [x for x in parts if x.is_dependent and x.last < min(first[form] for form in x.forms)]
    zeros = any(not form for own in arguments.values() for form in own)
    return _write(program, arguments, parts) if parts or zeros else program


Key = tuple[tuple[Term, Fraction], ...]


def _up_to_sign(form: Form) -> Key:
    """The form or its negative, whose first factor is positive."""
    items = sorted(form.items())
    if not items:
        return ()
    return tuple(items) if items[0][1] > 0 else tuple((entry, -x) for entry, x in items)


class _Forms:
    """Entries of nodes as sums of products of entries that are no such sums; what has no other form is itself."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[int, list[Form]] = {}

    def of(self, place: int) -> list[Form]:
        if place not in self._known:
            self._known[place] = self._find(place)
        return self._known[place]

    def _find(self, place: int) -> list[Form]:
        node = self.program.nodes[place]
        own: list[Form] = [{((place, k),): Fraction(1)} for k in range(node.size)]
        if node.size > ANGLE_ARGUMENTS:
            return own
        if node.operation == "constant":
            return [{NUMBER: x} if x else {} for x in node.data["entries"]]
        if node.operation == "gather":
            joined = [form for source in node.inputs for form in self.of(source)]
            return [joined[k] if k >= 0 else {} for k in node.data["index"].ravel().tolist()]
        if node.operation == "add":
            parts = [self.of(source) for source in node.inputs]
            return [_combine(zip(node.data["coefficients"], forms)) for forms in zip(*parts)]
        return self._contracted(place, own) if node.operation == "contract" else own

    def _contracted(self, place: int, own: list[Form]) -> list[Form]:
        """A contraction, where it is not too long."""
        program, node = self.program, self.program.nodes[place]
        terms, out = node.data["subscripts"].split("->")
        words = terms.split(",")
        letters = list(dict.fromkeys(out + terms.replace(",", "")))
        sizes: dict[str, int] = {}
        for word, source in zip(words, node.inputs):
            sizes |= dict(zip(word, program.nodes[source].shape))
        shape = [sizes[x] for x in letters]
        grid = np.indices(shape).reshape(len(letters), -1) if shape else np.zeros((0, 1), dtype=np.int64)
        if grid.shape[1] > ANGLE_TERMS:
            return own

        def flat(word: str) -> list[int]:
            number = np.zeros(grid.shape[1], dtype=np.int64)
            for letter in word:
                number = number * sizes[letter] + grid[letters.index(letter)]
            return number.tolist()

        totals: list[list[tuple[Fraction, Form]]] = [[] for _ in range(node.size)]
        operands = [[self.of(source)[k] for k in flat(word)] for word, source in zip(words, node.inputs)]
        work = 0
        for target, first, *others in zip(flat(out), *operands):
            work += len(first) * (len(others[0]) if others else 1)
            if work > ANGLE_TERMS:
                return own
            totals[target].append((Fraction(1), _product(first, others[0]) if others else first))
        return [_combine(terms) for terms in totals]


def _product(one: Form, other: Form) -> Form:
    return _combine((x, {tuple(sorted(m + n)): y for n, y in other.items()}) for m, x in one.items())


def _combine(terms: Iterable[tuple[int | Fraction, Form]]) -> Form:
    """Σ c·form over pairs (c, form)."""
    total: Form = {}
    for times, form in terms:
        for term, x in form.items():
            total[term] = total.get(term, Fraction(0)) + times * x
    return {term: x for term, x in total.items() if x}


def _lattice(forms: Sequence[Mapping[Term, Fraction]]) -> tuple[list[Form], list[list[int]]]:
    """A basis of the lattice of some forms, and the integers by which each form is a sum of it."""
    entries = sorted({entry for form in forms for entry in form})
    if not entries:
        return [], []
    scale = lcm(*(x.denominator for form in forms for x in form.values()))
    table = [[int(form.get(entry, Fraction(0)) * scale) for entry in entries] for form in forms]
    reduced = fmpz_mat(table).hnf()
    rank = reduced.rank()
    short = fmpz_mat([[int(x) for x in row] for row in reduced.tolist()[:rank]]).lll()
    rows = [[int(x) for x in row] for row in short.tolist()]
    # N·B = T has one solution, of integers.
    whole = fmpz_mat(rows)
    gram = whole * whole.transpose()
    right = whole * fmpz_mat(table).transpose()
    solution = gram.solve(right)
    multiples = [[int(solution[j, k].p) for j in range(rank)] for k in range(len(forms))]
    basis = [{e: Fraction(n, scale) for e, n in zip(entries, row) if n} for row in rows]
    return basis, multiples


def _components(forms: Sequence[Key]) -> list[list[Key]]:
    """Forms that share entries, directly or through others."""
    groups: list[tuple[set[Term], list[Key]]] = []
    for form in forms:
        entries, members = {entry for entry, _ in form}, [form]
        rest = []
        for other, own in groups:
            if other & entries:
                entries, members = other | entries, own + members
            else:
                rest.append((other, own))
        groups = [*rest, (entries, members)]
    return [members for _, members in groups]


class _Part:
    """Arguments that share entries, and a basis of their lattice.

    Where they depend on each other up to functions of the weights, as ax + b and ax do, what inputs reach and what they
    do not have bases of their own.
    """

    def __init__(self, forms: Sequence[Key], varies: Sequence[bool]) -> None:
        self.forms = list(forms)
        sides = [[{t: x for t, x in form if any(varies[k] for k, _ in t) == side} for form in forms] for side in (1, 0)]
        lattices = [_lattice(side) for side in sides]
        is_split = len(lattices[0][0]) < sum(map(bool, sides[0]))
        if is_split:
            self.basis = [form for basis, _ in lattices for form in basis]
            rows = zip(*(own or [[] for _ in forms] for _, own in lattices))
            self.multiples = [[n for own in pair for n in own] for pair in rows]
        else:
            self.basis, self.multiples = _lattice([dict(form) for form in forms])
        self.last = max(place for form in forms for term, _ in form for place, _ in term)
        is_short = all(abs(n) <= ANGLE_MULTIPLE for row in self.multiples for n in row)
        self.reached = len(lattices[0][0]) if is_split else len(self.basis)
        self.is_dependent = (is_split or len(self.basis) < len(self.forms)) and is_short

    def write(self, b: Builder, numbers: Mapping[int, int]) -> Pair:
        """Cosines and sines of all forms, in their order."""
        powers = self._functions(b, numbers, "cos"), self._functions(b, numbers, "sin")
        factors = [[(j, n) for j, n in enumerate(row) if n] for row in self.multiples]
        one, zero = b.constant(np.ones(1, dtype=np.int64)), b.constant(np.zeros(1, dtype=np.int64))
        whole: Pair | None = None
        for slot in range(max(map(len, factors))):
            chosen = [own[slot] if slot < len(own) else (0, 0) for own in factors]
            places, times = np.array([j for j, _ in chosen]), np.array([n for _, n in chosen])
            part: Pair | None = None
            x, y = powers
            left = np.abs(times)
            while left.any():
                # Where the bit is not set the factor is 1.
                index = np.where(left & 1, places, len(self.basis))
                factor = b.gather([x, one], index), b.gather([y, zero], index)
                part = factor if part is None else _turn(b, part, factor)
                x, y, left = *_turn(b, (x, y), (x, y)), left >> 1
            assert part is not None
            signs = b.constant(np.where(times < 0, -1, 1))
            part = part[0], b.multiply(part[1], signs)
            whole = part if whole is None else _turn(b, whole, part)
        assert whole is not None
        return whole

    def _functions(self, b: Builder, numbers: Mapping[int, int], name: str) -> int:
        """Cosines or sines of the basis; nodes of its first part, which inputs reach, have none of the second."""
        sides = [side for side in (self.basis[: self.reached], self.basis[self.reached :]) if side]
        nodes = []
        for side in sides:
            terms = sorted({term for form in side for term in form})
            table = np.array([[form.get(term, Fraction(0)) for term in terms] for form in side], dtype=object)
            nodes.append(b.formal(name, b.contract("ij,j->i", b.constant(table), _take(b, numbers, terms))))
        return b.gather(nodes, np.arange(len(self.basis)))


def _turn(b: Builder, one: Pair, two: Pair) -> Pair:
    """Cosine and sine of a sum."""
    (a, c), (d, e) = one, two
    return b.subtract(b.multiply(a, d), b.multiply(c, e)), b.add(b.multiply(a, e), b.multiply(c, d))


def _take(b: Builder, numbers: Mapping[int, int], terms: Sequence[Term]) -> int:
    """Some products of entries of nodes as a vector."""
    sources = sorted({place for term in terms for place, _ in term})
    nodes = [numbers[k] for k in sources] + [b.constant(np.ones(1, dtype=np.int64))]
    starts = np.cumsum([0, *(b.nodes[k].size for k in nodes[:-1])]).tolist()
    first = dict(zip(sources, starts))
    total: int | None = None
    for slot in range(max(map(len, terms))):
        index = [first[term[slot][0]] + term[slot][1] if slot < len(term) else starts[-1] for term in terms]
        factor = b.gather(nodes, np.array(index))
        total = factor if total is None else b.multiply(total, factor)
    assert total is not None
    return total


def _write(program: Program, arguments: Mapping[int, Sequence[Form]], parts: Sequence[_Part]) -> Program:
    """The program with the sines and cosines of these arguments written in those of their bases."""
    b, numbers = Builder(), dict[int, int]()
    home = {form: (part, k) for part in parts for k, form in enumerate(part.forms)}
    written: dict[int, Pair] = {}
    for place, node in enumerate(program.nodes):
        own = arguments.get(place)
        if own is None or not any(not form or _up_to_sign(form) in home for form in own):
            numbers[place] = b.copy(node, numbers)
            continue
        is_sine = node.data["name"] == "sin"
        rest = [k for k, form in enumerate(own) if form and _up_to_sign(form) not in home]
        sources = [b.constant(np.array([0 if is_sine else 1])), b.constant(np.array([-1]))]
        if rest:
            kept = b.gather([numbers[node.inputs[0]]], np.array(rest))
            sources[1] = b.formal(node.data["name"], kept)
        starts = {-1: 1}
        for part in dict.fromkeys(home[_up_to_sign(form)][0] for form in own if _up_to_sign(form) in home):
            if id(part) not in written:
                written[id(part)] = part.write(b, numbers)
            starts[id(part)] = sum(b.nodes[k].size for k in sources)
            sources.append(written[id(part)][is_sine])
        index, signs = [], []
        for k, form in enumerate(own):
            key = _up_to_sign(form)
            known = home.get(key)
            signs.append(-1 if known and is_sine and dict(key) != form else 1)
            index.append(0 if not form else starts[id(known[0])] + known[1] if known else 1 + rest.index(k))
        values = b.gather(sources, np.array(index).reshape(node.shape))
        numbers[place] = b.multiply(values, b.constant(np.array(signs).reshape(node.shape))) if -1 in signs else values
    return b.build(numbers[program.output]).with_notes(*program.notes)
