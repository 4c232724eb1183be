"""Upper bounds from what the functions are made of: the coefficients of outputs, and of what stands under functions.

A function f(θ, ·) = Σ c_m(θ) m(x) is determined by its coefficients, so D is at most the rank of the linear span of all
c_m, and at most the number of those that are not multiples of each other. Without inputs the outputs are the
coefficients. Where roots, inverses and functions of inputs stand in the monomials, the coefficients of their arguments
count as well; a sum under a power is known up to a factor, which goes into the coefficients outside.
"""

from __future__ import annotations

from collections import defaultdict
from math import comb

from flint import fmpq, fmpq_mat

from attngeom.errors import SizeError
from attngeom.limits.recheck import COEFFICIENT_PRODUCTS, EXACT_SPAN
from attngeom.verification.atoms import ONE, AtomTable, Monomial, Polynomial, add_to, multiply

Coefficient = tuple[tuple[Monomial, fmpq], ...]
"""A polynomial in the weights whose first coefficient is 1."""


def bound_by_coefficients(terms: AtomTable) -> int | None:
    """An upper bound for D by coefficients; None if they are too many to write out and no polynomials of the inputs.

    >>> from attngeom.verification.programs import CheckedProgram
    >>> leaves = [["parameter", [], [3], {"name": "w"}], ["input", [], [], {"name": "x"}]]
    >>> nodes = [*leaves, ["contract", [0], [], {"subscripts": "i->"}], ["contract", [1, 2], [], {"subscripts": ",->"}]]
    >>> record = {"format": "attngeom/program", "version": 1, "nodes": nodes, "output": 3}
    >>> bound_by_coefficients(AtomTable(CheckedProgram.from_json(record)))
    1
    """
    try:
        return _count_coefficients(terms)
    except SizeError:
        return _count_monomials(terms)


def are_polynomials(terms: AtomTable) -> bool:
    """Whether the outputs are polynomials in the inputs: no input stands under a root, an inverse or a function."""
    return _count_monomials(terms) is not None


def _has_inputs(terms: AtomTable) -> list[bool]:
    """For each atom whether inputs reach it."""
    reached: list[bool] = []
    for atom in terms.atoms:
        inner = list(atom.definition or ()) + ([atom.argument[1]] if atom.argument else [])
        own = atom.kind in ("input", "pattern")
        reached.append(own or any(reached[a] for m in inner for a, _ in m))
    return reached


def _count_coefficients(terms: AtomTable) -> int:
    return _Coefficients(terms).count()


class _Coefficients:
    """The numbers on which a function depends: coefficients of its outputs, and of what stands under functions in them.

    An *opaque* atom is one that inputs reach and that is not written out: a sum with a power that is no positive
    integer, a value of a function, a pattern. An output is a sum of coefficients times monomials in inputs and opaque
    atoms, and these are given by their own coefficients in turn. A sum s = Σ c_k m_k under a power or root is
    taken as s/c_0, whose coefficients are one number less, and c_0 to that power goes into the coefficients outside.
    """

    def __init__(self, terms: AtomTable) -> None:
        self.terms, self.reached, self.work, self.total = terms, _has_inputs(terms), 0, 0
        self.expanded: dict[int, Polynomial] = {}
        self.scaled: dict[int, bool] = {}

    def count(self) -> int:
        outputs = [self._expand(number, m) for number, m in self.terms.values[self.terms.program.output]]
        return self._numbers(self._collect(outputs)) + self.total

    def _expand(self, number: fmpq, m: Monomial) -> Polynomial:
        """The monomial with every sum that inputs reach and that has a positive integer as power written out."""
        result: Polynomial = {ONE: number}
        for atom, exponent in m:
            factor: Polynomial = {((atom, exponent),): fmpq(1)}
            times, inner = 1, self.terms.atoms[atom].definition
            if self.reached[atom] and inner is not None and exponent > 0 and exponent % 2 == 0:
                if atom not in self.expanded:
                    self.expanded[atom] = self._expand_all(inner)
                factor, times = self.expanded[atom], exponent // 2
            for _ in range(times):
                self.work += len(result) * len(factor)
                if self.work > COEFFICIENT_PRODUCTS:
                    raise SizeError("too many coefficients to write out")
                product: Polynomial = {}
                for n, c in result.items():
                    for k, d in factor.items():
                        add_to(product, multiply(n, k), c * d)
                result = product
        return result

    def _expand_all(self, polynomial: Polynomial) -> Polynomial:
        total: Polynomial = {}
        for n, c in polynomial.items():
            for k, d in self._expand(c, n).items():
                add_to(total, k, d)
        return total

    def _collect(self, polynomials: list[Polynomial]) -> dict[Monomial, set[Coefficient]]:
        """The coefficients, up to rational factors, by the powers of leading coefficients that multiply them."""
        groups: dict[Monomial, set[Coefficient]] = defaultdict(set)
        for polynomial in polynomials:
            grouped: dict[Monomial, Polynomial] = defaultdict(dict)
            for n, c in polynomial.items():
                outside = tuple(x for x in n if self.reached[x[0]])
                add_to(grouped[outside], tuple(x for x in n if not self.reached[x[0]]), c)
            for outside, coefficient in grouped.items():
                leads = tuple(x for x in outside if self._is_scaled(x[0]))
                items = sorted(coefficient.items())
                groups[leads].add(tuple((n, c / items[0][1]) for n, c in items))
        return groups

    def _numbers(self, groups: dict[Monomial, set[Coefficient]]) -> int:
        """How many numbers give these coefficients; what does not depend on the weights is known."""
        return sum(_rank(group, constants=bool(leads)) for leads, group in groups.items())

    def _is_scaled(self, atom: int) -> bool:
        """Whether an opaque atom is divided by its leading coefficient; its own coefficients are counted once."""
        if atom not in self.scaled:
            own = self.terms.atoms[atom]
            self.scaled[atom] = False
            if own.definition is not None:
                inner = self._expand_all(own.definition)
            elif own.argument is not None:
                inner = self._expand(*own.argument)
            else:
                return False
            groups = self._collect([inner])
            numbers = self._numbers(groups)
            if own.kind in ("sum", "root"):
                span = sum(_rank(group, constants=True) for group in groups.values())
                # Where 1 is in the span, it takes the place of the leading coefficient.
                self.scaled[atom], numbers = span == numbers, span - 1
            self.total += numbers
        return self.scaled[atom]


def _rank(coefficients: set[Coefficient], constants: bool) -> int:
    """The rank over Q of the span of polynomials in the weights, or a bound for it; with or without constants."""
    columns = {m: k for k, m in enumerate(sorted({m for row in coefficients for m, _ in row if constants or m != ONE}))}
    if not columns:
        return 0
    if len(coefficients) > EXACT_SPAN:
        return sum(constants or any(m != ONE for m, _ in row) for row in coefficients)
    matrix = fmpq_mat(len(coefficients), len(columns))
    for k, row in enumerate(sorted(coefficients)):
        for m, c in row:
            if m in columns:
                matrix[k, columns[m]] = c
    return int(matrix.rank())


def _count_monomials(terms: AtomTable) -> int | None:
    """Outputs times monomials of the degrees that may occur in the inputs that reach them."""
    known: list[tuple[int, int, frozenset[int]] | None] = []

    def degrees(m: Monomial) -> tuple[int, int, frozenset[int]] | None:
        low, high, seen = 0, 0, frozenset[int]()
        for atom, exponent in m:
            inner = known[atom]
            if inner is None or (inner[2] and (exponent < 0 or exponent % 2)):
                return None
            low, high, seen = low + inner[0] * exponent // 2, high + inner[1] * exponent // 2, seen | inner[2]
        return low, high, seen

    for number, atom in enumerate(terms.atoms):
        if atom.kind == "input":
            known.append((1, 1, frozenset([number])))
            continue
        inner = [degrees(m) for m in (atom.definition or ())] + ([degrees(atom.argument[1])] if atom.argument else [])
        parts = [part for part in inner if part is not None]
        seen = frozenset[int]().union(*(part[2] for part in parts))
        if len(parts) < len(inner) or atom.kind == "pattern" or (atom.kind != "sum" and seen):
            known.append(None)
        else:
            low, high = min((part[0] for part in parts), default=0), max((part[1] for part in parts), default=0)
            known.append((low, high, seen))
    total = 0
    for _, m in terms.values[terms.program.output]:
        count = degrees(m)
        if count is None:
            return None
        low, high, seen = count
        total += sum(comb(len(seen) + d - 1, d) if seen else int(d == 0) for d in range(low, high + 1))
    return total
