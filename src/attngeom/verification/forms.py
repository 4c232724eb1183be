"""Recheck claims for one token: a quadratic form shared by all rows, its signature, and that it is the only one."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from attngeom.errors import FormatError, InputError
from attngeom.exact.domains import CubicField, CubicNumber
from attngeom.exact.multisets import triples
from attngeom.layer.coefficients import Coefficients
from attngeom.limits.recheck import FIELD_PRODUCTS, RATIONAL_PRODUCTS
from attngeom.results import Proof
from attngeom.verification.budget import afford, afford_elimination, height
from attngeom.verification.reading import read_list, read_matrix, read_object, read_rational, require

Matrix = list[list[Any]]


def check_form(coefficients: Coefficients, verdict: str, attention: int | None, claimed: Any, witness: Any) -> Proof:
    """F_n = ν_n · xᵀBx for every row, ν and B not zero unless F is; then the verdict follows from the signature of B.

    A real A of rank a with symmetric part B has at most a positive and a negative squares, and such an A exists; a
    complex one needs rank B ≤ 2a. If there are two squares of one sign, xᵀBx is irreducible over the reals, and over
    C if its rank is at least 3: then no other splitting exists. Numbers lie in Q, or in the field of a root of an
    irreducible cubic: there a product vanishes only if a factor does, and the signs are those at a real root.
    """
    require(coefficients.t == 1, "a form is a witness for one token")
    require(not coefficients.outside, "a term lies outside the support of attention")
    form = read_object(read_object(witness, ("form",), "witness")["form"], ("modulus", "V", "B"), "form")
    d, d_out = coefficients.d, coefficients.d_out
    field = None if form["modulus"] is None else _read_field(form["modulus"])
    products = 6 * d_out * len(triples(d))
    if field is None:
        afford(products, RATIONAL_PRODUCTS, "products of rational numbers")
    else:
        afford(products + d**4, FIELD_PRODUCTS, "products of numbers in a cubic field")
    V, B = _read(form["V"], d_out, d, field, "V"), _read(form["B"], d, d, field, "B")
    require(all(B[k][l] == B[l][k] for k in range(d) for l in range(k)), "B must be symmetric")
    require(any(x != 0 for row in V for x in row), "V must not be zero")
    for n in range(d_out):
        for place, R in enumerate(triples(d)):
            total = sum((V[n][k] * B[l][m] for k, l, m in set(permutations(R))), start=V[n][0] * 0)
            require(total == coefficients.single[n, 0, place], f"row {n} differs from the product at {R}")
    p, n = signature(B)
    size, needed = p + n, max(p, n)
    bound = size if attention is None else attention
    expected: int | None = None
    if verdict == "realizable":
        require(needed <= bound, f"signature ({p}, {n}) needs rank {needed}")
        expected = size if size <= bound else needed
    elif verdict == "closure_only":
        require(needed > bound >= (size + 1) // 2, f"signature ({p}, {n}) does not decide closure_only")
        expected = (size + 1) // 2
    else:
        require(size > 2 * bound, f"rank {size} is at most twice the attention width")
    require(claimed == expected, f"the rank is {expected}")
    return Proof("certified", f"every row is a linear form times one quadratic form of signature ({p}, {n})")


def signature(B: Matrix) -> tuple[int, int]:
    """Positive and negative eigenvalues of a symmetric matrix, by Descartes' rule on its characteristic polynomial.

    All roots are real, so the rule is exact.

    >>> signature([[fmpq(1), fmpq(2)], [fmpq(2), fmpq(1)]])
    (1, 1)
    """
    signs = [_sign(c) for c in _characteristic(B)]
    return _changes(signs), _changes([s * (-1) ** k for k, s in enumerate(signs)])


def _characteristic(B: Matrix) -> list[Any]:
    """The coefficients of det(x − B) from the leading one down, over a field by the method of Faddeev and LeVerrier."""
    size = len(B)
    if not isinstance(B[0][0], CubicNumber):
        entries = [x for row in B for x in row]
        # Over the common denominator the coefficients are sums of minors of integers with the bits of all entries.
        afford_elimination(size, 2 * height(entries))
        polynomial = fmpq_mat(size, size, entries).charpoly()
        return [polynomial[k] for k in reversed(range(size + 1))]
    field = B[0][0].field
    matrix, coefficients, M = field.convert(B), [field.one], field.zeros((size, size))
    for k in range(1, size + 1):
        M = field.matmul(matrix, M + coefficients[-1] * field.eye(size))
        coefficients.append(np.trace(M) * fmpq(-1, k))
    return coefficients


def _changes(signs: list[int]) -> int:
    nonzero = [s for s in signs if s]
    return sum(x != y for x, y in pairwise(nonzero))


def _sign(x: Any) -> int:
    if isinstance(x, CubicNumber):
        return x.sign()
    return int(x > 0) - int(x < 0)


def _read_field(value: Any) -> CubicField:
    """The field of a monic cubic without rational root: modulo any other one a product can be zero."""
    modulus = tuple(read_rational(x) for x in read_list(value, 4, "coefficients of a cubic, from the constant one up,"))
    if modulus[3] != 1:
        raise FormatError("a monic modulus is required")
    afford_elimination(3, height(modulus))
    try:
        return CubicField(modulus)
    except InputError:
        raise FormatError("a modulus that is irreducible over Q is required") from None


def _read(value: Any, rows: int, columns: int, field: CubicField | None, name: str) -> Matrix:
    return [[_number(x, field) for x in row] for row in read_matrix(value, rows, columns, name)]


def _number(value: Any, field: CubicField | None) -> Any:
    if field is None:
        return read_rational(value)
    return field.element(*map(read_rational, read_list(value, 3, "coefficients of a number in the cubic field")))
