"""Polynomials as SymPy expressions, for tests against code that shares nothing with ours."""

import sympy

from attngeom.exact import Polynomial


def as_sympy(f: Polynomial) -> sympy.Expr:
    """The expression in symbols of the same names, term by term."""
    symbols = [sympy.Symbol(name) for name in f.variables]
    terms = [sympy.Rational(str(c)) * sympy.prod(x**e for x, e in zip(symbols, exponents)) for exponents, c in f.terms]
    return sympy.Add(*terms)
