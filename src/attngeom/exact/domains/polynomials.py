"""Polynomials in named variables: a domain, whose numbers FLINT multiplies, and records that travel to files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import numpy as np
from flint import fmpq, fmpq_mpoly, nmod

from attngeom.errors import DomainError, InputError
from attngeom.exact.arrays import Array, check_product, check_square
from attngeom.exact.domains.domain import Domain
from attngeom.exact.domains.rationals import QQ
from attngeom.exact.numbers import as_fmpq


@dataclass(frozen=True)
class PolynomialDomain(Domain):
    """The ring of polynomials in ``variables`` over Q or GF(p); equality of arrays is an identity of polynomials.

    Matrices with constant entries have inverses; ranks and solutions are refused, for this is no field.

    >>> R = PolynomialDomain(("x", "y"))
    >>> R.det(R.convert([[R.variable("x"), 1], [2, R.variable("y")]]))
    x*y - 2
    """

    variables: tuple[str, ...]
    base: Domain = QQ
    first: int = 1
    ring: Any = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "polynomials"
    is_exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(set(self.variables)) != len(self.variables):
            raise InputError("repeated variable given; distinct names are required")
        object.__setattr__(self, "ring", self.base.polynomials(self.variables))

    @classmethod
    def of(cls, first: int = 1, base: Domain = QQ, /, **shapes: tuple[int, int]) -> PolynomialDomain:
        """The ring whose variables are the entries of generic matrices of these shapes, counted from ``first``.

        >>> PolynomialDomain.of(0, K=(1, 2)).variables
        ('K_0_0', 'K_0_1')
        """
        return cls(
            tuple(name for letter, shape in shapes.items() for name in _names(letter, *shape, first)), base, first
        )

    @property
    def label(self) -> str:
        return f"{self.base.label}[{', '.join(self.variables)}]"

    @property
    def characteristic(self) -> int:
        return self.base.characteristic

    def variable(self, name: str) -> Any:
        """The polynomial that is this variable."""
        if name not in self.variables:
            raise InputError(f"variable {name[:40]!r} given; one of the {len(self.variables)} of the ring is required")
        return self.ring.gen(self.ring.variable_to_index(name))

    def matrix(self, letter: str, rows: int, columns: int) -> Array:
        """The generic matrix with entries letter_i_j.

        >>> PolynomialDomain.of(K=(1, 2)).matrix("K", 1, 2).tolist()
        [[K_1_1, K_1_2]]
        """
        return self._fill([self.variable(name) for name in _names(letter, rows, columns, self.first)], rows, columns)

    def _fill(self, entries: list[Any], *shape: int) -> Array:
        # From an iterator: NumPy would take a polynomial in a list for a sequence of terms.
        return np.fromiter(entries, dtype=object, count=len(entries)).reshape(shape)

    def _entry(self, x: Any) -> Any:
        if hasattr(x, "context"):
            if x.context() is not self.ring and x.context() != self.ring:
                raise InputError("polynomial of another ring given; polynomials of one ring are required")
            return x
        return self.ring.constant(self.base.convert([x])[0])

    def convert(self, data: Any) -> Array:
        if isinstance(data, np.ndarray):
            entries, shape = data.ravel().tolist(), data.shape
        else:
            entries, shape = _flatten(data)
        plain = iter(self.base.convert([x for x in entries if not hasattr(x, "context")]).tolist())
        polynomials = [self._entry(x) if hasattr(x, "context") else self.ring.constant(next(plain)) for x in entries]
        return self._fill(polynomials, *shape)

    def constants(self, a: Array) -> Array:
        """The array over the base of an array of constants; DomainError if an entry is not constant."""
        if not all(x.is_constant() for x in a.ravel().tolist()):
            raise DomainError("polynomials of positive degree given; a field is required, give them values first")
        values = [x.leading_coefficient() if x else 0 for x in a.ravel().tolist()]
        return self.base.convert([int(c) if isinstance(c, nmod) else c for c in values]).reshape(a.shape)

    def times(self, a: Any, b: Any) -> Any:
        a, b = (x if isinstance(x, np.ndarray) else self._fill([self._entry(x)]) for x in (a, b))
        return a * b

    def invert(self, a: Any) -> Any:
        array = a if isinstance(a, np.ndarray) else self._fill([self._entry(a)])
        return self.convert(self.base.invert(self.constants(array)))[()]

    def matmul(self, a: Array, b: Array) -> Array:
        check_product(a, b)
        product = np.matmul(a, b)
        return product if a.shape[-1] else self.zeros(product.shape)

    def inverse(self, a: Array) -> Array:
        check_square(a)
        return self.convert(self.base.inverse(self.constants(a)))

    def random(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Random constants."""
        return self.convert(self.base.random(shape, rng))


def _names(letter: str, rows: int, columns: int, first: int) -> list[str]:
    return [f"{letter}_{i + first}_{j + first}" for i in range(rows) for j in range(columns)]


def _flatten(data: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The entries of nested lists and their shape."""
    if not isinstance(data, (list, tuple)):
        return [data], ()
    parts = [_flatten(part) for part in data]
    if len({shape for _, shape in parts}) > 1:
        raise InputError("ragged array given; rows of equal length are required")
    return [entry for entries, _ in parts for entry in entries], (len(parts), *(parts[0][1] if parts else ()))


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
