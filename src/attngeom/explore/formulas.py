"""Polynomials as formulas on a page, and equations that coefficients violate with the entries that they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from attngeom.certification.refutation import Violation
from attngeom.exact.domains import QQ
from attngeom.exact.polynomials import Polynomial
from attngeom.explore.markup import Html, Node, join, tag
from attngeom.layer.coefficients import Coefficients
from attngeom.verification.definitions import DEFINITIONS
from attngeom.verification.maps import accessor_of

MAX_TERMS = 60
"""Terms of a polynomial that a page shows; the others are counted."""
MAX_DEGREE = 4
"""Equations of higher degree have thousands of terms: they are named, not expanded."""


def show_name(name: str) -> Html:
    """A variable with its indices below.

    >>> show_name("y_0_1_2")
    '<var>y</var><sub>01,2</sub>'
    """
    head, *indices = name.split("_")
    if not indices:
        return tag("var", head)
    *row, k, l, m = ["", "", *indices] if len(indices) < 3 else indices
    below = f"{k}{l},{m}" if len(indices) >= 3 else ",".join(indices)
    above = tag("sup", f"({','.join(row)})") if len(indices) > 3 else None
    return join((tag("var", head), tag("sub", below), above))


def show_polynomial(f: Polynomial, names: Mapping[str, Html] | None = None) -> Html:
    """A polynomial, its first terms if it has many.

    >>> show_polynomial(Polynomial.from_terms(("x", "y"), {(2, 0): -1, (0, 1): "1/2"}))
    '− <var>x</var><sup>2</sup> + 1/2 <var>y</var>'
    """
    known = {name: show_name(name) for name in f.variables} | dict(names or {})
    parts: list[Node] = []
    for exponents, c in f.terms[:MAX_TERMS]:
        factors: list[Node] = [
            join((known[name], tag("sup", e) if e > 1 else None)) for name, e in zip(f.variables, exponents) if e
        ]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = "− " if c < 0 else "+ " if parts else ""
        parts.append(join((sign, join(factors, " "))))
    left = len(f.terms) - MAX_TERMS
    if left > 0:
        parts.append(f"+ {left:,} further terms")
    return join(parts, " ") if parts else Html("0")


@dataclass(frozen=True)
class Reading:
    """A scaled coefficient that an equation reads: its place, its name, its value."""

    key: tuple[Any, ...]
    name: Html
    value: Any


@dataclass(frozen=True)
class Broken:
    """A violated equation in the scaled coefficients that it reads; ``polynomial`` is None where it is too long."""

    entries: tuple[Reading, ...]
    polynomial: Polynomial | None
    names: Mapping[str, Html]

    def show(self) -> Html:
        """The equation as a formula that ought to be 0."""
        if self.polynomial is None:
            return tag("p", "This equation has too many terms to be written out.", class_="reason")
        return tag("p", show_polynomial(self.polynomial, self.names), " = 0", class_="formula")


def _name(key: tuple[Any, ...], d_out: int) -> Html:
    """y with row of the output, columns and rows of the monomial; columns are named where they are not the first."""
    kind, i, *rest = key
    if kind == "outside":
        places = " ".join(f"x_{row}{column}" for row, column in rest[1])
        return tag("span", f"coefficient of {places}")
    row = f"row {i}" if d_out > 1 else ""
    if kind == "cross":
        j, n, k, l, m = rest
        columns = "" if (j, n) == (0, 1) else f"columns {j},{n}"
        below = f"{k}{l},{m}"
    else:
        j, k, l, m = rest
        columns = "" if j == 0 else f"column {j}"
        below = f"{k}{l}{m}"
    above = ", ".join(filter(None, (row, columns)))
    return join((tag("var", "y"), tag("sub", below), tag("sup", f"({above})") if above else None))


def expand(violation: Violation, coefficients: Coefficients) -> Broken:
    """The violated equation, expanded from the definition that ``verify`` uses, in the coefficients that it reads."""
    read: dict[tuple[Any, ...], Any] = {}
    given = accessor_of(coefficients)

    def watch(kind: str) -> Any:
        ask = getattr(given, kind)

        def asked(*place: Any) -> Any:
            read[(kind, *place)] = value = ask(*place)
            return value

        return asked

    kinds = ("cross", "single", "outside")
    definition = DEFINITIONS[violation.family]
    definition.evaluate(violation.data, replace(given, **{kind: watch(kind) for kind in kinds}))
    names = {f"z{place}": key for place, key in enumerate(read)}
    entries = tuple(Reading(key, _name(key, coefficients.d_out), value) for key, value in read.items())
    shown = {name: entry.name for name, entry in zip(names, entries, strict=True)}
    if violation.degree > MAX_DEGREE:
        return Broken(entries, None, shown)
    ring = QQ.polynomials(tuple(names))
    variables = dict(zip(read, ring.gens(), strict=True))
    symbols: dict[str, Any] = {kind: lambda *place, kind=kind: variables[(kind, *place)] for kind in kinds}
    formal = replace(given, zero=ring.constant(0), **symbols)
    return Broken(entries, Polynomial.from_flint(definition.evaluate(violation.data, formal)), shown)
