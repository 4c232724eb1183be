"""Polynomials and labels as formulas on a page; equations that coefficients violate, with the entries they read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup

from attngeom.certification.refutation import Violation
from attngeom.exact.domains import QQ
from attngeom.exact.domains.polynomials import Polynomial
from attngeom.layer.coefficients import Coefficients
from attngeom.limits.shown import EXPANDED_DEGREE, POLYNOMIAL_TERMS
from attngeom.verification.definitions import DEFINITIONS
from attngeom.verification.maps import accessor_of


def _indexed(head: str, below: str, above: str = "") -> Markup:
    """A letter with what stands below and above it."""
    raised = Markup("<sup>({})</sup>").format(above) if above else ""
    return Markup("<var>{}</var><sub>{}</sub>{}").format(head, below, raised)


def show_name(name: str) -> Markup:
    """A variable with its indices below.

    >>> str(show_name("y_0_1_2"))
    '<var>y</var><sub>01,2</sub>'
    """
    head, *indices = name.split("_")
    if len(indices) < 3:
        return _indexed(head, ",".join(indices)) if indices else Markup("<var>{}</var>").format(head)
    *row, k, l, m = indices
    return _indexed(head, f"{k}{l},{m}", ",".join(row))


def show_label(label: str) -> Markup:
    """The label of an equation, its choices as formulas.

    >>> str(show_label("row=0 p=(1, 0)"))
    'row 0, <var>p</var> = (1, 0)'
    """
    parts = (part.partition("=") for part in re.split(r" (?=\w+=)", label))
    shown = (
        Markup("<var>{}</var> = {}" if len(name) == 1 else "{} {}").format(name, value) if sign else name
        for name, sign, value in parts
    )
    return Markup(", ").join(shown)


def show_polynomial(f: Polynomial, names: Mapping[str, Markup] | None = None) -> Markup:
    """A polynomial, its first terms if it has many.

    >>> str(show_polynomial(Polynomial.from_terms(("x", "y"), {(2, 0): -1, (0, 1): "1/2"})))
    '− <var>x</var><sup>2</sup> + 1/2 <var>y</var>'
    """
    known = {name: show_name(name) for name in f.variables} | dict(names or {})
    parts: list[str] = []
    for exponents, c in f.terms[:POLYNOMIAL_TERMS]:
        powers = {name: e for name, e in zip(f.variables, exponents) if e}
        factors = [known[name] + (Markup("<sup>{}</sup>").format(e) if e > 1 else "") for name, e in powers.items()]
        if abs(c) != 1 or not factors:
            factors.insert(0, Markup(abs(c)))
        parts.append(("− " if c < 0 else "+ " if parts else "") + Markup(" ").join(factors))
    if len(f.terms) > POLYNOMIAL_TERMS:
        parts.append(f"+ {len(f.terms) - POLYNOMIAL_TERMS:,} further terms")
    return Markup(" ").join(parts) if parts else Markup("0")


class Reading(NamedTuple):
    """A scaled coefficient that an equation reads: its place, its name, its value."""

    key: tuple[Any, ...]
    name: Markup
    value: Any


class Broken(NamedTuple):
    """A violated equation in the scaled coefficients that it reads; ``polynomial`` is None where it is too long."""

    entries: tuple[Reading, ...]
    polynomial: Polynomial | None
    names: Mapping[str, Markup]

    @property
    def formula(self) -> Markup | None:
        """The polynomial that ought to be 0."""
        return None if self.polynomial is None else show_polynomial(self.polynomial, self.names)


def _name(key: tuple[Any, ...], d_out: int) -> Markup:
    """y with row of the output, columns and rows of the monomial; columns are named where they are not the first."""
    kind, i, *rest = key
    if kind == "outside":
        return Markup("coefficient of ") + Markup(" ").join(_indexed("x", f"{a}{b}") for a, b in rest[1])
    *columns, k, l, m = rest
    usual = [0, 1] if kind == "cross" else [0]
    shown = "" if columns == usual else f"column{'s' * (kind == 'cross')} {','.join(map(str, columns))}"
    row = f"row {i}" if d_out > 1 else ""
    return _indexed("y", f"{k}{l},{m}" if kind == "cross" else f"{k}{l}{m}", ", ".join(filter(None, (row, shown))))


def expand(violation: Violation, coefficients: Coefficients) -> Broken:
    """The violated equation, expanded from the definition that ``verify`` uses, in the coefficients that it reads."""
    read: dict[tuple[Any, ...], Any] = {}
    given = accessor_of(coefficients)

    def ask(kind: str, *place: Any) -> Any:
        read[(kind, *place)] = value = getattr(given, kind)(*place)
        return value

    kinds = ("cross", "single", "outside")
    definition = DEFINITIONS[violation.family]
    watched: dict[str, Any] = {kind: partial(ask, kind) for kind in kinds}
    definition.evaluate(violation.data, replace(given, **watched))
    entries = tuple(Reading(key, _name(key, coefficients.d_out), value) for key, value in read.items())
    shown = {f"z{place}": entry.name for place, entry in enumerate(entries)}
    if violation.degree > EXPANDED_DEGREE:
        return Broken(entries, None, shown)
    ring = QQ.polynomials(tuple(shown))
    variables = dict(zip(read, ring.gens(), strict=True))
    symbols: dict[str, Any] = {kind: lambda *place, kind=kind: variables[(kind, *place)] for kind in kinds}
    formal = replace(given, zero=ring.constant(0), **symbols)
    return Broken(entries, Polynomial.from_flint(definition.evaluate(violation.data, formal)), shown)
