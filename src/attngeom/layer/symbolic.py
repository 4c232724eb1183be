"""Output coordinates as polynomials of FLINT and SymPy in the entries of X."""

from __future__ import annotations

from typing import Any

import sympy
from flint import Ordering, fmpq_mpoly, fmpq_mpoly_ctx

from attngeom.errors import DomainError, InputError
from attngeom.exact.domains import QQ
from attngeom.layer.coefficients import Coefficients, Entry
from attngeom.layer.files import iterate_terms


def variable_names(d: int, t: int) -> tuple[str, ...]:
    """x_1_1, x_1_2, … row by row, counted from 1 as in the papers.

    >>> variable_names(1, 2)
    ('x_1_1', 'x_1_2')
    """
    return tuple(f"x_{row + 1}_{column + 1}" for row in range(d) for column in range(t))


def _terms(coefficients: Coefficients, output: Entry) -> dict[tuple[int, ...], Any]:
    if not (0 <= output[0] < coefficients.d_out and 0 <= output[1] < coefficients.t):
        raise InputError(
            f"output {output} given; row < {coefficients.d_out} and column < {coefficients.t} are required"
        )
    if coefficients.domain != QQ:
        raise DomainError(f"polynomials over {coefficients.domain.name} asked for; exact rationals are required")
    terms = {}
    for term in iterate_terms(coefficients):
        if term.output == output:
            exponents = [0] * (coefficients.d * coefficients.t)
            for row, column in term.monomial:
                exponents[row * coefficients.t + column] += 1
            terms[tuple(exponents)] = term.value
    return terms


def flint_polynomial(coefficients: Coefficients, output: Entry) -> fmpq_mpoly:
    """F_output as a python-flint polynomial over Q."""
    names = variable_names(coefficients.d, coefficients.t)
    return fmpq_mpoly_ctx.get(names, Ordering.degrevlex).from_dict(_terms(coefficients, output))


def sympy_polynomial(coefficients: Coefficients, output: Entry) -> sympy.Poly:
    """F_output as a SymPy polynomial over Q."""
    symbols = sympy.symbols(variable_names(coefficients.d, coefficients.t))
    terms = {powers: sympy.Rational(int(c.p), int(c.q)) for powers, c in _terms(coefficients, output).items()}
    return sympy.Poly.from_dict(terms, *symbols, domain="QQ")
