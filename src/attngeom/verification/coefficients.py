"""Upper bounds from what the functions are made of: the coefficients of outputs that are polynomials in the inputs.

A function f(θ, ·) = Σ c_m(θ) m(x) is determined by its coefficients, so D is at most the rank of the linear span of all
c_m, and at most the number of those that are not multiples of each other. Without inputs the outputs are the
coefficients.
"""

from __future__ import annotations

from collections import defaultdict
from math import comb

from flint import fmpq, fmpq_mat

from attngeom.errors import SizeError
from attngeom.limits.recheck import COEFFICIENT_PRODUCTS, EXACT_SPAN
from attngeom.verification.atoms import ONE, AtomTable, Monomial, Polynomial, add_to, multiply


def bound_by_coefficients(terms: AtomTable) -> int | None:
    """An upper bound for D by the coefficients of polynomial outputs, None if an output is no polynomial of inputs.

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


def _has_inputs(terms: AtomTable) -> list[bool]:
    """For each atom whether inputs reach it."""
    reached: list[bool] = []
    for atom in terms.atoms:
        inner = list(atom.definition or ()) + ([atom.argument[1]] if atom.argument else [])
        own = atom.kind in ("input", "pattern")
        reached.append(own or any(reached[a] for m in inner for a, _ in m))
    return reached


def _count_coefficients(terms: AtomTable) -> int | None:
    reached, work = _has_inputs(terms), 0
    expanded: dict[int, Polynomial] = {}

    def expand(number: fmpq, m: Monomial) -> Polynomial | None:
        """The monomial with every sum that inputs reach written out."""
        nonlocal work
        result: Polynomial = {ONE: number}
        for atom, exponent in m:
            factor: Polynomial = {((atom, exponent),): fmpq(1)}
            times = 1
            if reached[atom] and terms.atoms[atom].kind != "input":
                inner = terms.atoms[atom].definition
                if inner is None or exponent < 2 or exponent % 2:
                    return None
                if atom not in expanded:
                    total: Polynomial = {}
                    for n, c in inner.items():
                        part = expand(c, n)
                        if part is None:
                            return None
                        for k, d in part.items():
                            add_to(total, k, d)
                    expanded[atom] = total
                factor, times = expanded[atom], exponent // 2
            elif reached[atom] and (exponent < 0 or exponent % 2):
                return None
            for _ in range(times):
                work += len(result) * len(factor)
                if work > COEFFICIENT_PRODUCTS:
                    raise SizeError("too many coefficients to write out")
                product: Polynomial = {}
                for n, c in result.items():
                    for k, d in factor.items():
                        add_to(product, multiply(n, k), c * d)
                result = product
        return result

    coefficients: set[tuple[tuple[Monomial, fmpq], ...]] = set()
    for number, m in terms.values[terms.program.output]:
        polynomial = expand(number, m)
        if polynomial is None:
            return None
        grouped: dict[Monomial, Polynomial] = defaultdict(dict)
        for n, c in polynomial.items():
            inside = tuple(x for x in n if reached[x[0]])
            add_to(grouped[inside], tuple(x for x in n if not reached[x[0]]), c)
        for coefficient in grouped.values():
            items = sorted(coefficient.items())
            if len(items) == 1 and items[0][0] == ONE:
                # A constant does not depend on the weights.
                continue
            coefficients.add(tuple((n, c / items[0][1]) for n, c in items))
    return _rank(coefficients) if len(coefficients) <= EXACT_SPAN else len(coefficients)


def _rank(coefficients: set[tuple[tuple[Monomial, fmpq], ...]]) -> int:
    """The rank over Q of the span of polynomials in the weights, without constants."""
    columns = {m: k for k, m in enumerate(sorted({m for row in coefficients for m, _ in row if m != ONE}))}
    if not columns:
        return 0
    matrix = fmpq_mat(len(coefficients), len(columns))
    for k, row in enumerate(sorted(coefficients)):
        for m, c in row:
            if m != ONE:
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
