"""Invariants as text: readable lines, SymPy, LaTeX, JSON, and programs for computer algebra systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from flint import fmpq

from attngeom.equations.family import Family, Invariant, without_unused
from attngeom.equations.ideal.export import SYSTEMS, System, describe_ideal, expected_invariants
from attngeom.equations.variety import Points, Variety, generic_point
from attngeom.errors import InputError
from attngeom.exact.domains.polynomials import Polynomial
from attngeom.exact.multisets import pairs, triples
from attngeom.files import to_json

WRITERS: dict[str, Callable[[Polynomial], str]] = {
    "text": str,
    "sympy": lambda f: str(f).replace("^", "**"),
    "latex": Polynomial.to_latex,
    **{name: system.write for name, system in SYSTEMS.items()},
}
"""How one polynomial is written in each format but JSON."""
FORMATS = ("text", *SYSTEMS, "sympy", "latex", "json")


def export(families: Iterable[Family], form: str, stop: int | None = None) -> Iterator[str]:
    """The lines of an export of all members (the first ``stop`` of each family) in one of :data:`FORMATS`.

    JSON has one object per line. Programs for computer algebra systems define the ring, the ideal I, and the ring map
    phi of the parametrization, whose image of I is zero; members that repeat others up to a factor are listed once.

    >>> from attngeom.equations.registry import find_family
    >>> list(export([find_family(Variety(2, 1), "sylvester-resultant")], "text"))[0][:56]
    'sylvester-resultant p=(1, 0) r=(0, 1) targets=(0,1)(0,1)'
    """
    listed = list(families)
    if form not in FORMATS:
        raise InputError(f"format {form[:40]!r} given; one of {', '.join(FORMATS)} is required")
    if not listed:
        raise InputError("no family of invariants given; this layer has none")
    members = chain.from_iterable(islice(family, stop) for family in listed)
    if form in SYSTEMS:
        return _as_program(members, listed[0].variety, SYSTEMS[form])
    if form == "json":
        return (to_json(member_record(invariant)) for invariant in members)
    line = {"latex": "% {0}\n\\[ {1} \\]", "sympy": "{1}  # {0}"}.get(form, "{0}: {1}")
    return (line.format(invariant.label, WRITERS[form](invariant.polynomial())) for invariant in members)


def member_record(invariant: Invariant) -> dict[str, object]:
    """One member as a JSON object."""
    return {
        "family": invariant.family.name,
        "index": invariant.index,
        "label": invariant.label,
        "degree": invariant.degree,
        "polynomial": invariant.polynomial().to_json(),
    }


def up_to_factor(f: Polynomial) -> tuple[object, ...]:
    """The same key for polynomials that differ by a factor.

    >>> x = Polynomial.from_terms(("x",), {(1,): 2})
    >>> up_to_factor(x) == up_to_factor(Polynomial.from_terms(("x",), {(1,): -3}))
    True
    """
    lead = f.terms[0][1] if f.terms else fmpq(1)
    return f.variables, tuple((exponents, c / lead) for exponents, c in f.terms)


def _as_program(members: Iterable[Invariant], variety: Variety, system: System) -> Iterator[str]:
    named: dict[tuple[object, ...], tuple[Polynomial, str]] = {}
    for invariant in members:
        polynomial = invariant.polynomial()
        named.setdefault(up_to_factor(polynomial), (polynomial, invariant.label))
    generators = [(system.write(polynomial), label) for polynomial, label in named.values()]
    variables = sorted({name for polynomial, _ in named.values() for name in polynomial.variables}, key=_by_index)
    point, ring = generic_point(variety)
    parametrization = (ring.variables, [coordinate_image(variety, point, name) for name in variables])
    tokens = "t ≥ 2" if variety.tokens is None else f"t = {variety.tokens}"
    rest = f"d_out = {variety.d_out}, targets = {variety.num_targets}"
    if variety.heads > 1:
        rest += f", {variety.heads} heads of value width {variety.value_width}"
    title = f"invariants of one attention layer: d = {variety.d}, a = {variety.a}, {tokens}, {rest}"
    remarks = describe_ideal(variety, expected_invariants(variety))
    return system.program(title, variables, generators, parametrization, remarks)


def _by_index(name: str) -> tuple[str, tuple[int, ...]]:
    kind, *indices = name.split("_")
    return kind, tuple(map(int, indices))


def coordinate_image(variety: Variety, point: Points, name: str) -> Polynomial:
    """The image of a coordinate, given by name, at the generic point: a polynomial in the weights.

    >>> coordinate_image(Variety(2, 2), generic_point(Variety(2, 2))[0], "y_0_1_0")
    Polynomial('1/2*V_0_1*A_0_0 + 1/2*V_0_0*A_1_0')
    """
    kind, *rest = name.split("_")
    indices = [int(i) for i in rest]
    row = indices.pop(0) if variety.d_out > 1 else 0
    k, l, m = indices[-3:]
    if kind in ("y", "yc"):
        return without_unused(point.first_cross[0, row, pairs(variety.d).index((k, l)), m])
    return without_unused(point.first_single[0, row, triples(variety.d).index((k, l, m))])
