"""Invariants as text for Macaulay2, Singular, SymPy, LaTeX and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from attngeom.equations.family import Family, Invariant
from attngeom.equations.terms import Variable, variable_name
from attngeom.equations.variety import Variety
from attngeom.errors import InputError
from attngeom.exact.polynomials import Polynomial, format_terms
from attngeom.files import to_json

FORMATS = ("text", "m2", "singular", "sympy", "latex", "json")


def export(families: Iterable[Family], form: str, stop: int | None = None) -> Iterator[str]:
    """The lines of an export of all members (the first ``stop`` of each family) in one of :data:`FORMATS`.

    Macaulay2 and Singular files define the ring, the ideal I, the ring map phi of the parametrization over free
    parameters K, Q, V, and the image of I under it, which is zero.

    >>> from attngeom.equations.registry import family
    >>> list(export([family(Variety(2, 1), "sylvester-resultant")], "text"))[0][:56]
    'sylvester-resultant p=(1, 0) r=(0, 1) targets=(0,1)(0,1)'
    """
    listed = list(families)
    if form not in FORMATS:
        raise InputError(f"format {form[:40]!r} given; one of {', '.join(FORMATS)} is required")
    if not listed:
        raise InputError("no family of invariants given; this layer has none")
    variety = listed[0].variety
    members = chain.from_iterable(_members(family, stop) for family in listed)
    if form == "json":
        return _as_json(members, variety)
    if form in ("m2", "singular"):
        return _as_program(list(members), variety, form)
    writers: dict[str, Callable[[Polynomial], str]] = {
        "text": str,
        "sympy": lambda f: format_terms(f, str).replace("^", "**"),
        "latex": Polynomial.to_latex,
    }
    return _as_lines(members, variety, form, writers[form])


def _members(family: Family, stop: int | None) -> Iterator[Invariant]:
    return (family[k] for k in range(family.count if stop is None else min(stop, family.count)))


def _as_lines(
    members: Iterable[Invariant], variety: Variety, form: str, write: Callable[[Polynomial], str]
) -> Iterator[str]:
    for invariant in members:
        polynomial = write(invariant.polynomial(variety.d_out))
        if form == "latex":
            yield f"% {invariant.label}\n\\[ {polynomial} \\]"
        elif form == "sympy":
            yield f"{polynomial}  # {invariant.label}"
        else:
            yield f"{invariant.label}: {polynomial}"


def _as_json(members: Iterable[Invariant], variety: Variety) -> Iterator[str]:
    """One JSON object per line."""
    for invariant in members:
        yield to_json(
            {
                "family": invariant.family,
                "index": invariant.index,
                "label": invariant.label,
                "degree": invariant.degree,
                "polynomial": invariant.polynomial(variety.d_out).to_json(),
            }
        )


def parametrization(variety: Variety, variables: Iterable[Variable]) -> dict[Variable, str]:
    """The image of each variable as a polynomial in K_(i,k), Q_(i,m) and V_(i,k), with A = Kᵀ Q.

    >>> parametrization(Variety(1, 1), [("y", 0, 0, 0, 0)])
    {('y', 0, 0, 0, 0): 'V_(0,0)*A_(0,0)'}
    """

    def term(row: int, k: int, l: int, m: int) -> str:
        return f"V_({row},{k})*A_({l},{m})"

    images = {}
    for variable in variables:
        kind, row, *rest = variable
        k, l, m = rest[-3:]
        if kind in ("y", "yc"):
            orders = [(k, l, m)] if k == l else [(k, l, m), (l, k, m)]
        else:
            orders = sorted({(k, l, m), (k, m, l), (l, k, m), (l, m, k), (m, k, l), (m, l, k)})
        total = "+".join(term(row, *order) for order in orders)
        images[variable] = total if len(orders) == 1 else f"({total})/{len(orders)}"
    return images


def _as_program(members: list[Invariant], variety: Variety, form: str) -> Iterator[str]:
    used = sorted({v for invariant in members for monomial in invariant.terms for v in monomial})
    names = {v: variable_name(v, variety.d_out) for v in used}
    if form == "m2":
        return _as_macaulay2(members, variety, names)
    return _as_singular(members, variety, names)


def _describe(variety: Variety) -> str:
    sizes = {
        "d": variety.d,
        "a": variety.a,
        "t": variety.tokens,
        "d_out": variety.d_out,
        "targets": variety.num_targets,
    }
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _index(name: str, form: str, separator: str) -> str:
    head, *indices = name.split("_")
    return form.format(head, separator.join(indices))


def _as_macaulay2(members: list[Invariant], variety: Variety, names: dict[Variable, str]) -> Iterator[str]:
    d, a, m = variety.d, variety.rank_bound, variety.num_targets
    indexed = [_index(name, "{}_({})", ",") for name in names.values()]
    yield f"-- invariants of one attention layer: {_describe(variety)}"
    yield f"R = QQ[{', '.join(indexed)}];"
    yield "I = ideal("
    for number, invariant in enumerate(members):
        comma = "," if number + 1 < len(members) else ""
        yield f"  {invariant.polynomial(variety.d_out).to_macaulay2()}{comma} -- {invariant.label}"
    yield ");"
    parameters = f"K_(0,0)..K_({a - 1},{d - 1}), Q_(0,0)..Q_({a - 1},{m - 1}), V_(0,0)..V_({variety.d_out - 1},{d - 1})"
    yield f"S = QQ[{parameters}];"
    yield f"for l from 0 to {d - 1} do for m from 0 to {m - 1} do A_(l,m) = sum({a}, i -> K_(i,l)*Q_(i,m));"
    images = parametrization(variety, names)
    yield f"phi = map(S, R, {{{', '.join(f'({images[v]})*1_S' for v in names)}}});"
    yield "vanishes = phi(I) == ideal(0_S);"
    yield "print vanishes;"


def _as_singular(members: list[Invariant], variety: Variety, names: dict[Variable, str]) -> Iterator[str]:
    d, a, m = variety.d, variety.rank_bound, variety.num_targets
    indexed = [_index(name, "{}({})", ")(") for name in names.values()]
    yield f"// invariants of one attention layer: {_describe(variety)}"
    yield f"ring R = 0,({','.join(indexed)}),dp;"
    yield "ideal I;"
    for number, invariant in enumerate(members):
        yield f"I[{number + 1}] = {invariant.polynomial(variety.d_out).to_singular()}; // {invariant.label}"
    parameters = f"K(0..{a - 1})(0..{d - 1}),Q(0..{a - 1})(0..{m - 1}),V(0..{variety.d_out - 1})(0..{d - 1})"
    yield f"ring S = 0,({parameters}),dp;"
    for l in range(d):
        for k in range(m):
            product = "+".join(f"K({i})({l})*Q({i})({k})" for i in range(a))
            yield f"poly A({l})({k}) = {product};"
    images = parametrization(variety, names)
    written = [images[v].replace("_(", "(").replace(",", ")(") for v in names]
    yield f"map phi = R,{','.join(written)};"
    yield "ideal J = phi(I);"
    yield "print(size(J) == 0);"
