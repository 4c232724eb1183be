"""Sparse exact polynomials: FLINT does the arithmetic, a plain record travels to files and other systems."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from flint import fmpq, fmpq_mpoly

from attngeom.errors import FormatError, InputError
from attngeom.exact.determinants import laplace_expansion
from attngeom.exact.domains import QQ, Array, Domain
from attngeom.exact.numbers import as_fmpq

# FLINT's types over Q and GF(p) have the same methods but no common base class.
Context: TypeAlias = Any
FlintPolynomial: TypeAlias = Any

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[0-9]+)*")
_TABLE_SIZE = 2**20


def polynomial_ring(variables: Sequence[str], domain: Domain = QQ) -> Context:
    """FLINT's polynomial ring in these variables over Q or GF(p), graded reverse lexicographic.

    >>> x, y = polynomial_ring(("x", "y")).gens()
    >>> (x + y) ** 2
    x^2 + 2*x*y + y^2
    """
    return domain.polynomials(variables)


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
        ring = polynomial_ring(variables)
        return cls.from_flint(ring.from_dict({e: as_fmpq(c) for e, c in terms.items()}))

    @classmethod
    def from_flint(cls, f: fmpq_mpoly) -> Polynomial:
        """The record of a FLINT polynomial over Q."""
        terms = tuple((tuple(int(e) for e in exponents), c) for exponents, c in f.terms())
        return cls(tuple(f.context().names()), terms)

    def to_flint(self, domain: Domain = QQ) -> FlintPolynomial:
        """The FLINT polynomial over Q or GF(p)."""
        ring = polynomial_ring(self.variables, domain)
        values = domain.convert([c for _, c in self.terms]).tolist()
        return ring.from_dict({e: c for (e, _), c in zip(self.terms, values) if c})

    @property
    def degree(self) -> int:
        """The total degree; −1 for the zero polynomial."""
        return max((sum(e) for e, _ in self.terms), default=-1)

    def evaluate(self, points: Array, domain: Domain) -> Array:
        """The values at points (…, n) over any domain, as an array of shape (…).

        >>> f = Polynomial.from_terms(("x", "y"), {(1, 1): 2, (0, 0): 1})
        >>> f.evaluate(QQ.convert([[1, 2], [3, 4]]), QQ).tolist()
        [5, 25]
        """
        if points.shape[-1:] != (len(self.variables),):
            raise InputError(f"points of shape {points.shape} given; {len(self.variables)} coordinates are required")
        flat = points.reshape(prod(points.shape[:-1]), len(self.variables))
        exponents = [e for e, _ in self.terms]
        coefficients = domain.convert(np.array([c for _, c in self.terms], dtype=object))[:, None]
        # The table of monomials is made for some of the points at a time.
        step = max(1, _TABLE_SIZE // max(1, len(exponents)))
        parts = [domain.zeros((0, 1))]
        for start in range(0, len(flat), step):
            parts.append(domain.matmul(monomial_values(exponents, flat[start : start + step], domain), coefficients))
        return np.concatenate(parts).reshape(points.shape[:-1])

    def to_json(self) -> dict[str, Any]:
        """A JSON object: {"variables": [...], "terms": [[[exponents], "p/q"], ...]}."""
        return {"variables": list(self.variables), "terms": [[list(e), str(c)] for e, c in self.terms]}

    @classmethod
    def from_json(cls, data: Any) -> Polynomial:
        """The polynomial of :meth:`to_json`; FormatError if the data has another form."""
        try:
            variables = tuple(data["variables"])
            terms = {tuple(exponents): as_fmpq(c) for exponents, c in data["terms"]}
            return cls.from_terms(variables, terms)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(
                f"no polynomial given ({error}); variables and terms as in to_json are required"
            ) from error

    def to_sympy(self) -> Any:
        """The SymPy expression in symbols of the same names.

        >>> Polynomial.from_terms(("x", "y"), {(1, 1): 2}).to_sympy()
        2*x*y
        """
        # SymPy takes long to import, and only this method needs it.
        import sympy

        symbols = [sympy.Symbol(name) for name in self.variables]
        terms = {e: sympy.Rational(int(c.p), int(c.q)) for e, c in self.terms}
        return sympy.Poly.from_dict(terms, *symbols).as_expr() if terms else sympy.Integer(0)

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


def macaulay2_name(name: str) -> str:
    """The variable in Macaulay2, an indexed variable if it has indices.

    >>> macaulay2_name("y_0_1"), macaulay2_name("x")
    ('y_(0,1)', 'x')
    """
    return _indexed(name, "{}_({})", ",")


def singular_name(name: str) -> str:
    """The variable in Singular, an indexed variable if it has indices.

    >>> singular_name("y_0_1"), singular_name("x")
    ('y(0)(1)', 'x')
    """
    return _indexed(name, "{}({})", ")(")


def latex_name(name: str) -> str:
    """The variable in LaTeX; several letters are one upright word, not a product.

    >>> latex_name("y_0_1")
    'y_{0,1}'
    """
    head, *indices = name.split("_")
    word = head if len(head) == 1 else f"\\mathrm{{{head}}}"
    return f"{word}_{{{','.join(indices)}}}" if indices else word


def _indexed(name: str, form: str, separator: str) -> str:
    head, *indices = name.split("_")
    return form.format(head, separator.join(indices)) if indices else head


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


def monomial_values(exponents: Sequence[Sequence[int]], points: Array, domain: Domain) -> Array:
    """The matrix of values of monomials (columns) at points (rows, N×n), over any domain.

    >>> monomial_values([(2, 0), (1, 1)], QQ.convert([[2, 3]]), QQ).tolist()
    [[4, 6]]
    """
    # Each monomial is a word of powers x_v^e, padded with the power that is 1; each power is computed once.
    powers: dict[tuple[int, int], int] = {(0, 0): 0}
    words = [[powers.setdefault((v, e), len(powers)) for v, e in enumerate(row) if e] for row in exponents]
    length = max(map(len, words), default=0)
    padded = np.array([word + [0] * (length - len(word)) for word in words], dtype=np.intp)
    padded = padded.reshape(len(words), length)
    ones = domain.zeros((points.shape[0], 1)) + domain.eye(1)
    with domain.working():
        table = [ones[:, 0] if e == 0 else _power(points[:, v], e, domain) for v, e in powers]
        columns = np.stack(table, axis=1)
        values = np.repeat(ones, len(words), axis=1)
        for place in range(length):
            values = domain.reduce(values * columns[:, padded[:, place]])
    return values


def _power(x: Array, exponent: int, domain: Domain) -> Array:
    """x^exponent entry by entry, exponent ≥ 1, by repeated squaring."""
    result = x
    for bit in bin(exponent)[3:]:
        result = domain.reduce(result * result)
        if bit == "1":
            result = domain.reduce(result * x)
    return result


def polynomial_determinant(rows: Sequence[Sequence[FlintPolynomial]]) -> FlintPolynomial:
    """The determinant of a square matrix of FLINT polynomials of one ring, by Laplace expansion.

    ``rows`` is a list of lists: NumPy would take a polynomial for a sequence of terms.

    >>> x, y = polynomial_ring(("x", "y")).gens()
    >>> polynomial_determinant([[x, y], [y, x]])
    x^2 - y^2
    """
    if not rows or any(len(row) != len(rows) for row in rows):
        raise InputError(f"{len(rows)} rows given; a square matrix with at least one row is required")
    return laplace_expansion(rows, lambda f: f)
