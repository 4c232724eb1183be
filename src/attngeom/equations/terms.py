"""Sparse exact polynomials while they are built: mappings from sorted tuples of variables to rationals.

A variable is a tuple (kind, *indices), 0-based, in scaled coordinates:

- ("y", i, k, l, m): cross-column y_{(k,l),m} of output row i, k ≤ l, at target column 0 and its first context column;
- ("s", i, k, l, m): single-column y_{(k,l,m)} of output row i, k ≤ l ≤ m, at target column 0;
- ("yc", i, j, n, k, l, m) and ("sc", i, j, k, l, m): the copies at other columns j and contexts n.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from flint import fmpq

from attngeom.exact.combinations import signed_permutations

Variable: TypeAlias = tuple[Any, ...]
Monomial: TypeAlias = tuple[Variable, ...]
Terms: TypeAlias = dict[Monomial, fmpq]


def cross(row: int, k: int, l: int, m: int) -> Variable:
    """The variable y_{(k,l),m} of an output row, in either order of k and l."""
    return ("y", row, k, l, m) if k <= l else ("y", row, l, k, m)


def linear(coefficients: Iterable[tuple[Variable, Any]]) -> Terms:
    """The linear form with these coefficients; repeated variables add up.

    >>> linear([(("x",), 1), (("x",), 2)])
    {(('x',),): 3}
    """
    form: Terms = {}
    for variable, c in coefficients:
        form[variable,] = form.get((variable,), fmpq(0)) + c
    return {monomial: c for monomial, c in form.items() if c != 0}


def add(*parts: tuple[Any, Mapping[Monomial, fmpq]]) -> Terms:
    """The linear combination Σ c f of pairs (c, f)."""
    total: Terms = {}
    for scale, f in parts:
        for monomial, c in f.items():
            total[monomial] = total.get(monomial, 0) + scale * c
    return {monomial: c for monomial, c in total.items() if c != 0}


def multiply(f: Mapping[Monomial, fmpq], g: Mapping[Monomial, fmpq]) -> Terms:
    """The product of two polynomials.

    >>> x = linear([(("x",), 1)])
    >>> multiply(x, x)
    {(('x',), ('x',)): 1}
    """
    product: Terms = {}
    for left, a in f.items():
        for right, b in g.items():
            monomial = tuple(sorted(left + right))
            product[monomial] = product.get(monomial, 0) + a * b
    return {monomial: c for monomial, c in product.items() if c != 0}


def expand_determinant(rows: Sequence[Sequence[Mapping[Monomial, fmpq]]]) -> Terms:
    """The determinant of a square matrix of polynomials, by minors of the first rows; zeros are skipped.

    >>> x, y = linear([(("x",), 1)]), linear([(("y",), 1)])
    >>> expand_determinant([[x, y], [y, x]])
    {(('x',), ('x',)): 1, (('y',), ('y',)): -1}
    """
    n = len(rows)
    minors: dict[int, Terms] = {0: {(): fmpq(1)}}
    for row in rows:
        larger: dict[int, Terms] = {}
        for columns, f in minors.items():
            for j in range(n):
                if columns >> j & 1 or not row[j]:
                    continue
                sign = -1 if (columns >> (j + 1)).bit_count() % 2 else 1
                term = multiply(f, row[j])
                key = columns | 1 << j
                larger[key] = add((1, larger.get(key, {})), (sign, term))
        minors = larger
    return minors.get((1 << n) - 1, {})


def variable_determinant(rows: Sequence[Sequence[Variable]], factor: int = 1) -> Terms:
    """``factor`` times the determinant of a matrix of variables, by its permutations.

    >>> variable_determinant([[("a",), ("b",)], [("c",), ("d",)]])
    {(('a',), ('d',)): 1, (('b',), ('c',)): -1}
    """
    total: Terms = {}
    for order, sign in signed_permutations(len(rows)):
        monomial = tuple(sorted([row[j] for row, j in zip(rows, order)]))
        total[monomial] = total.get(monomial, 0) + fmpq(sign * factor)
    return {monomial: c for monomial, c in total.items() if c != 0}


def variable_name(variable: Variable, d_out: int = 1) -> str:
    """The name of a variable in files: kind and indices joined by underscores; an only row is left out.

    >>> variable_name(("y", 0, 0, 1, 2)), variable_name(("y", 0, 0, 1, 2), d_out=2)
    ('y_0_1_2', 'y_0_0_1_2')
    """
    kind, row, *rest = variable
    indices = rest if d_out == 1 else [row, *rest]
    return "_".join([kind, *map(str, indices)])
