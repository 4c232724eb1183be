"""Recheck claims for one token: a quadratic form shared by all rows, its signature, and that it is the only one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, permutations
from typing import Any

from flint import fmpq

from attngeom.errors import FormatError
from attngeom.exact.cubic_fields import CubicNumber, read_modulus
from attngeom.layer.coefficients import Coefficients
from attngeom.layer.labels import triples

Matrix = list[list[Any]]


def check_form(
    coefficients: Coefficients, verdict: str, attention: int | None, claimed: Any, witness: Mapping[str, Any]
) -> str:
    """F_n = ν_n · xᵀBx for every row; then the verdict follows from the signature of B. FormatError if not.

    A real A of rank a with symmetric part B has at most a positive and a negative squares, and such an A exists; a
    complex one needs rank B ≤ 2a. If there are two squares of one sign, xᵀBx is irreducible over the reals, and over
    C if its rank is at least 3: then no other splitting exists.
    """
    _demand(coefficients.t == 1, "a form is a witness for one token")
    _demand(set(witness) == {"form"}, "the witness must be a form")
    form = witness["form"]
    _demand(type(form) is dict and set(form) == {"modulus", "V", "B"}, "modulus, V and B are required")
    d, d_out = coefficients.d, coefficients.d_out
    modulus = None if form["modulus"] is None else read_modulus(form["modulus"])
    V, B = _read(form["V"], d_out, d, modulus), _read(form["B"], d, d, modulus)
    _demand(all(B[k][l] == B[l][k] for k in range(d) for l in range(k)), "B must be symmetric")
    _demand(any(x != 0 for row in V for x in row), "V must not be zero")
    for n in range(d_out):
        for place, R in enumerate(triples(d)):
            total = sum((V[n][k] * B[l][m] for k, l, m in set(permutations(R))), start=V[n][0] * 0)
            _demand(total == coefficients.single[n, 0, place], f"row {n} differs from the product at {R}")
    p, n = signature(B)
    size, needed = p + n, max(p, n)
    bound = size if attention is None else attention
    if verdict == "realizable":
        _demand(needed <= bound, f"signature ({p}, {n}) needs rank {needed}")
        expected = size if size <= bound else needed
    elif verdict == "closure_only":
        _demand(needed > bound >= (size + 1) // 2, f"signature ({p}, {n}) does not decide closure_only")
        expected = (size + 1) // 2
    else:
        _demand(size > 2 * bound, f"rank {size} is at most twice the attention width")
        expected = None
    _demand(claimed == expected and type(claimed) is type(expected), f"the rank is {expected}")
    return f"every row is a linear form times one quadratic form of signature ({p}, {n})"


def signature(B: Matrix) -> tuple[int, int]:
    """Positive and negative eigenvalues of a symmetric matrix, by Descartes' rule on its characteristic polynomial.

    All roots are real, so the rule is exact. The polynomial is computed by the method of Faddeev and LeVerrier.

    >>> signature([[fmpq(1), fmpq(2)], [fmpq(2), fmpq(1)]])
    (1, 1)
    """
    size = len(B)
    zero = B[0][0] * 0
    coefficients = [zero + 1]
    M = [[zero for _ in range(size)] for _ in range(size)]
    for k in range(1, size + 1):
        shifted = [[M[i][j] + (coefficients[-1] if i == j else zero) for j in range(size)] for i in range(size)]
        M = [
            [sum((B[i][x] * shifted[x][j] for x in range(size)), start=zero) for j in range(size)] for i in range(size)
        ]
        trace = sum((M[i][i] for i in range(size)), start=zero)
        coefficients.append(trace * fmpq(-1, k))
    signs = [_sign(c) for c in coefficients]
    positive = _changes(signs)
    negative = _changes([s * (-1) ** k for k, s in enumerate(signs)])
    return positive, negative


def _changes(signs: list[int]) -> int:
    nonzero = [s for s in signs if s]
    return sum(x != y for x, y in pairwise(nonzero))


def _sign(x: Any) -> int:
    if isinstance(x, CubicNumber):
        return x.sign()
    return int(x > 0) - int(x < 0)


def _demand(condition: bool, reason: str) -> None:
    if not condition:
        raise FormatError(reason)


def _read(value: Any, rows: int, columns: int, modulus: tuple[fmpq, ...] | None) -> Matrix:
    shaped = type(value) is list and len(value) == rows and all(type(x) is list and len(x) == columns for x in value)
    _demand(shaped, f"a {rows}×{columns} matrix is required")
    return [[_number(x, modulus) for x in row] for row in value]


def _number(value: Any, modulus: tuple[fmpq, ...] | None) -> Any:
    if modulus is None:
        return _rational(value)
    _demand(type(value) is list and len(value) == 3, "three rational coefficients are required")
    a, b, c = (_rational(x) for x in value)
    return CubicNumber((a, b, c), modulus)


def _rational(value: Any) -> fmpq:
    _demand(type(value) is str, "a rational string is required")
    found = fmpq(*map(int, value.split("/")))
    _demand(str(found) == value, "rational numbers must be in lowest terms")
    return found
