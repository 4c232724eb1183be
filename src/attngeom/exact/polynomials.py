"""Sparse exact polynomials: FLINT does the arithmetic, a plain record travels to files and other systems."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from flint import fmpq, fmpq_mpoly

from attngeom.errors import InputError
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.exact.numbers import as_fmpq

# FLINT's types over Q and GF(p) have the same methods but no common base class.
FlintPolynomial: TypeAlias = Any

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[0-9]+)*")


def exponent_table(f: FlintPolynomial) -> Array:
    """The exponents of a FLINT polynomial: terms × variables.

    >>> exponent_table(QQ.polynomials(("x", "y")).from_dict({(2, 1): 3, (0, 1): 1})).tolist()
    [[2, 1], [0, 1]]
    """
    width, monomials = f.context().nvars(), f.monoms()
    try:
        flat = np.frombuffer(b"".join(map(bytes, monomials)), np.uint8).astype(np.int64)
    except ValueError:  # an exponent is no byte
        flat = np.fromiter(chain.from_iterable(monomials), np.int64, len(monomials) * width)
    return flat.reshape(-1, width)


@dataclass(frozen=True)
class Polynomial:
    """A polynomial over Q as data: variable names and terms (exponents, coefficient), largest monomial first.

    Names are letters and digits, with indices after underscores: ``y_0_1_2``.

    >>> Polynomial.from_terms(("x", "y"), {(1, 1): 2, (0, 0): "-1/3"})
    Polynomial('2*x*y - 1/3')
    """

    variables: tuple[str, ...]
    terms: tuple[tuple[tuple[int, ...], fmpq], ...]

    def __post_init__(self) -> None:
        for name in self.variables:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise InputError(f"variable {str(name)[:40]!r} given; a name such as x or y_0_12 is required")
        if len(set(self.variables)) != len(self.variables):
            raise InputError("repeated variable given; distinct names are required")

    @classmethod
    def from_terms(cls, variables: Sequence[str], terms: Mapping[tuple[int, ...], Any]) -> Polynomial:
        """The polynomial with these terms; zero coefficients are dropped and the order is made canonical."""
        for exponents in terms:
            if len(exponents) != len(variables) or any(type(e) is not int or not 0 <= e < 2**16 for e in exponents):
                given = str(exponents)[:40]
                raise InputError(f"exponents {given} given; {len(variables)} integers from 0 to 2^16 are required")
        ring = QQ.polynomials(variables)
        return cls.from_flint(ring.from_dict({e: as_fmpq(c) for e, c in terms.items()}))

    @classmethod
    def from_flint(cls, f: fmpq_mpoly) -> Polynomial:
        """The record of a FLINT polynomial over Q."""
        terms = tuple((tuple(int(e) for e in exponents), c) for exponents, c in f.terms())
        return cls(tuple(f.context().names()), terms)

    def to_flint(self, domain: Domain = QQ) -> FlintPolynomial:
        """The FLINT polynomial over Q or GF(p)."""
        ring = domain.polynomials(self.variables)
        values = domain.convert([c for _, c in self.terms]).tolist()
        return ring.from_dict({e: c for (e, _), c in zip(self.terms, values) if c})

    @property
    def degree(self) -> int:
        """The total degree; −1 for the zero polynomial."""
        return max((sum(e) for e, _ in self.terms), default=-1)

    def to_json(self) -> dict[str, Any]:
        """A JSON object: {"variables": [...], "terms": [[[exponents], "p/q"], ...]}."""
        return {"variables": list(self.variables), "terms": [[list(e), str(c)] for e, c in self.terms]}

    def to_sympy(self) -> Any:
        """The expression of SymPy, with exact coefficients and one symbol for each variable.

        >>> Polynomial.from_terms(("x_0", "y"), {(2, 1): 3, (0, 0): "-1/2"}).to_sympy()
        3*x_0**2*y - 1/2
        """
        import sympy

        symbols = [sympy.Symbol(name) for name in self.variables]
        return sympy.Add(
            *(
                sympy.Rational(int(c.p), int(c.q)) * sympy.Mul(*(x**e for x, e in zip(symbols, exponents) if e))
                for exponents, c in self.terms
            )
        )

    def __str__(self) -> str:
        return format_terms(self, lambda name: name)

    def __repr__(self) -> str:
        return f"Polynomial({str(self)!r})"

    def _repr_latex_(self) -> str:
        return f"${self.to_latex()}$"

    def to_latex(self) -> str:
        """The polynomial in LaTeX; y_0_1 becomes y_{0,1}, and a name of several letters is upright.

        >>> Polynomial.from_terms(("sc_1_0",), {(1,): 2}).to_latex()
        '2 \\\\mathrm{sc}_{1,0}'
        """
        return format_terms(self, latex_name, latex=True)


def latex_name(name: str) -> str:
    """The variable in LaTeX; several letters are one upright word, not a product.

    >>> latex_name("y_0_1")
    'y_{0,1}'
    """
    head, *indices = name.split("_")
    word = head if len(head) == 1 else f"\\mathrm{{{head}}}"
    return f"{word}_{{{','.join(indices)}}}" if indices else word


def format_terms(f: Polynomial, rename: Callable[[str], str], latex: bool = False) -> str:
    """The polynomial as text with renamed variables, in the syntax of computer algebra systems or of LaTeX.

    >>> format_terms(Polynomial.from_terms(("x",), {(2,): -1, (0,): "1/2"}), str.upper)
    '-X^2 + 1/2'
    """
    names = [rename(name) for name in f.variables]
    parts = []
    for exponents, c in f.terms:
        factors = [
            name + ("" if e == 1 else f"^{{{e}}}" if latex else f"^{e}") for name, e in zip(names, exponents) if e
        ]
        size = abs(c)
        if size != 1 or not factors:
            whole = int(size.q) == 1
            factors.insert(0, f"\\frac{{{size.p}}}{{{size.q}}}" if latex and not whole else str(size))
        parts.append(("-" if c < 0 else "+", (" " if latex else "*").join(factors)))
    if not parts:
        return "0"
    head = ("-" if parts[0][0] == "-" else "") + parts[0][1]
    return head + "".join(f" {sign} {term}" for sign, term in parts[1:])
