"""Generators as files: JSON and computer algebra systems, from highest weight vectors or from whole modules.

Computer algebra systems that read our polynomials: Macaulay2, Singular, OSCAR and Sage, one row of a table each.

A program defines the ring R of the coordinates and an ideal I. With a parametrization it also defines the ring S of the
weights and the ring map phi from R to S, and prints whether phi kills I. Where dimension and degree of the zero set of
I are known, it has a line that computes and compares them.

Computer algebra systems that read our polynomials: Macaulay2, Singular, OSCAR and Sage, one row of a table each.

A program defines the ring R of the coordinates and an ideal I. With a parametrization it also defines the ring S of the
weights and the ring map phi from R to S, and prints whether phi kills I. Where dimension and degree of the zero set of
I are known, it has a line that computes and compares them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attngeom.equations.ideal.completeness import complete_variety
from attngeom.equations.ideal.coordinates import coordinates
from attngeom.equations.ideal.formulas import variety_degree
from attngeom.equations.ideal.generators import HighestWeightVector, ModuleSpace, module_spaces, write_terms
from attngeom.equations.ideal.limits import check
from attngeom.equations.ideal.records import CompletenessResult
from attngeom.equations.variety import Variety
from attngeom.errors import InputError
from attngeom.exact.domains.polynomials import Polynomial, format_terms
from attngeom.exact.partitions import module_dimension, strip
from attngeom.files import to_json, write_atomic
from attngeom.limits.memory import GENERATOR_BYTES


@dataclass(frozen=True)
class System:
    """How one system writes rings, ideals and ring maps.

    ``ring`` has places for the name of the ring, the names of the variables, and these in quotes. ``ideal`` is the line
    before the generators, what stands for none of them, and the line after them. ``ring_map`` has a place for the
    images of the variables. ``expected`` are lines with places for dimension and degree, the second one for systems
    whose degree of an ideal is that of its projective scheme. ``indexed`` has places for a letter and its indices,
    which ``comma`` joins.
    """

    name: str
    suffix: str
    comment: str
    ring: str
    ideal: tuple[str, str, str]
    ring_map: tuple[str, ...]
    expected: tuple[str, ...] = ()
    start: str = ""
    indexed: str = "{}_{}"
    comma: str = "_"
    quotient: str = "/"

    def variable(self, name: str) -> str:
        """The name of a variable.

        >>> [system.variable("y_0_1") for system in SYSTEMS.values()]
        ['y_(0,1)', 'y(0)(1)', 'y_0_1', 'y_0_1']
        """
        letter, *indices = name.split("_")
        return self.indexed.format(letter, self.comma.join(indices)) if indices else letter

    def write(self, f: Polynomial) -> str:
        """A polynomial."""
        return format_terms(f, self.variable).replace("/", self.quotient)

    def program(
        self,
        title: str,
        variables: Sequence[str],
        generators: Sequence[tuple[str, str]],
        parametrization: tuple[Sequence[str], Sequence[Polynomial]] | None = None,
        remarks: Sequence[str] = (),
        expected: tuple[int, int | None] | None = None,
    ) -> Iterator[str]:
        """The lines of a program; generators are (polynomial, remark), the parametrization (weights, images).

        ``expected`` are the dimension of the affine cone that I cuts out, and its degree if it is known.
        """
        yield from (f"{self.comment} {line}" for line in (title, *remarks))
        yield self.start + self._ring("R", variables)
        before, zero, after = self.ideal
        yield before
        *most, last = [(f, f" {self.comment} {remark}" if remark else "") for f, remark in generators or [(zero, "")]]
        yield from (f"  {f},{remark}" for f, remark in most)
        yield f"  {last[0]}{last[1]}"
        yield after
        if parametrization is not None:
            weights, images = parametrization
            yield self._ring("S", weights)
            yield from (line.format(", ".join(map(self.write, images))) for line in self.ring_map)
        if expected is not None:
            yield from (
                line.format(*expected) for line in self.expected if "{1}" not in line or expected[1] is not None
            )

    def _ring(self, name: str, variables: Sequence[str]) -> str:
        names = [self.variable(variable) for variable in variables]
        return self.ring.format(name, ", ".join(names), ", ".join(f'"{variable}"' for variable in names))


_TABLE = (
    System(
        "m2",
        ".m2",
        "--",
        ring="{} = QQ[{}];",
        ideal=("I = ideal(", "0_R", ");"),
        ring_map=("phi = map(S, R, {{{}}});", "vanishes = phi(I) == ideal(0_S);", "print vanishes;"),
        expected=("print(dim I == {0});", "print(degree I == {1});"),
        indexed="{}_({})",
        comma=",",
    ),
    System(
        "singular",
        ".sing",
        "//",
        ring="ring {} = 0, ({}), dp;",
        ideal=("ideal I =", "0", "  ;"),
        ring_map=("map phi = R, {};", "ideal J = phi(I);", "print(size(J) == 0);", "setring R;"),
        expected=("ideal G = std(I);", "print(dim(G) == {0});", "print(mult(G) == {1});"),
        indexed="{}({})",
        comma=")(",
    ),
    System(
        "oscar",
        ".jl",
        "#",
        ring="{}, ({},) = polynomial_ring(QQ, [{}])",
        ideal=("I = ideal(R, [", "zero(R)", "])"),
        ring_map=("phi = hom(R, S, [{}])", "println(all(iszero, map(phi, gens(I))))"),
        expected=("println(dim(I) == {0})",),
        start="using Oscar\n",
        # A quotient of integers is a float in Julia; // keeps it rational.
        quotient="//",
    ),
    System(
        "sage",
        ".sage",
        "#",
        ring='{0} = PolynomialRing(QQ, "{1}"); {0}.inject_variables(verbose=False)',
        ideal=("I = R.ideal([", "R(0)", "])"),
        ring_map=("phi = R.hom([{}], S)", "print(all(phi(f) == 0 for f in I.gens()))"),
        expected=("print(I.dimension() == {0})",),
    ),
)
SYSTEMS = {system.name: system for system in _TABLE}


FORMATS: dict[str, System | None] = {".json": None, **{system.suffix: system for system in SYSTEMS.values()}}
"""Endings of names of files, and what is written there."""


def format_polynomials(space: ModuleSpace, names: Sequence[str]) -> Iterator[str]:
    """The polynomials of one weight as text, in the names given."""
    words = np.array([_power_product(factors, names) for factors in space.factors.tolist()], dtype=object)
    for row in space.coefficients:
        places = np.flatnonzero(row)
        yield write_terms(row[places].tolist(), words[places]).replace(" ", "")


def _power_product(factors: Sequence[int], names: Sequence[str]) -> str:
    """A monomial from its factors.

    >>> _power_product([0, 2, 0], ["x", "y", "z"])
    'x^2*z'
    """
    powers = Counter(factors).items()
    return "*".join([names[i] if e == 1 else f"{names[i]}^{e}" for i, e in powers])


def expected_invariants(variety: Variety) -> tuple[int, int | None] | None:
    """The dimension of the affine cone and the degree, where the ideal is known, or for one head at t ≥ 2.

    Pairs (A, V) of bounded ranks up to one scale.

    >>> expected_invariants(Variety(3, 2)), expected_invariants(Variety(3, 2, d_out=2))
    ((10, 108), (13, 2376))
    >>> expected_invariants(Variety(2, 1, d_out=2, heads=2, value_width=1))
    (10, 6)
    """
    known = known_list(variety)
    if known is not None:
        return known.dimension, known.variety_degree
    if not variety.is_plain or not variety.has_cross:
        return None
    rank, d, m, rows = variety.rank_bound, variety.d, variety.num_targets, variety.d_out
    return rank * (d + m - rank) + d * rows - 1, variety_degree(d, variety.a, m, rows)


def known_list(variety: Variety) -> CompletenessResult | None:
    """All minimal generators in all degrees, where a theorem lists them and no linear relation is among them."""
    try:
        known = complete_variety(variety)
    except InputError:
        return None
    return None if known.linear_relations or variety.residual else known


def is_complete(known: CompletenessResult, vectors: Sequence[HighestWeightVector]) -> bool:
    """Whether these are all minimal generators, by the list of the theorem."""
    given = Counter((v.degree, tuple(map(strip, v.shapes))) for v in vectors)
    return given == Counter((n, tuple(map(strip, module.shapes))) for n, module in known.modules)


def describe_ideal(variety: Variety, expected: tuple[int, int | None] | None) -> list[str]:
    """The convention of the coordinates, and what is expected of the variety, in words."""
    lines = [
        "y_(k,l,m): coefficient of x_k1 x_l1 x_m0, s_(k,l,m): of x_k0 x_l0 x_m0, divided by the number of orders",
        "phi: the coefficients of V X X^T A X, A = K^T Q and V = O W where ranks are bounded",
    ]
    if variety.hidden:
        deep = "s_(k,l,...): coefficient of x_k0 x_l0 ..., divided by the number of orders"
        if variety.has_cross:
            deep = "p_(k,l,...,m): coefficient of S_kl ... x_m in P(S) X, S = X X^T, divided by the number of orders"
        lines = [deep, "phi: the coefficients of a network with A1, V1 in layer 1, A2, V2 in layer 2, ..."]
    if expected is not None:
        degree = "" if expected[1] is None else f", degree {expected[1]}"
        lines.append(f"the variety: affine cone of dimension {expected[0]}{degree}")
    return lines


def to_program(variety: Variety, vectors: Sequence[HighestWeightVector], system: System, whole: bool = True) -> str:
    """A program for a computer algebra system: the ideal I of the generators, and phi, the coefficients of a layer.

    It prints whether phi kills I and, for complete lists, whether I has the dimension and the degree of the variety.

    >>> from attngeom.equations.ideal.generators import highest_weight_vectors
    >>> vectors = highest_weight_vectors(Variety(2, 1), 2, ((3, 1), (1, 1)), 1)
    >>> to_program(Variety(2, 1), vectors, SYSTEMS["m2"], whole=False).splitlines()[6]
    '  y_(0,0,0)*y_(0,1,1)-y_(0,0,1)*y_(0,1,0)'
    """
    names = coordinates(variety).names
    written = [system.variable(name) for name in names]
    generators = [
        (text, "") for _, space in module_spaces(variety, vectors, whole) for text in format_polynomials(space, written)
    ]
    sizes = ", ".join(f"{key} = {value}" for key, value in variety.describe().items() if value not in (None, False))
    weights, images = coordinates(variety).parametrization()
    known, expected = known_list(variety), expected_invariants(variety)
    lines = system.program(
        f"minimal generators, {variety.model}: {sizes}",
        names,
        generators,
        (weights, images),
        describe_ideal(variety, expected),
        expected if whole and known is not None and is_complete(known, vectors) else None,
    )
    return "".join(f"{line}\n" for line in lines)


def to_json_text(variety: Variety, vectors: Sequence[HighestWeightVector], whole: bool = True) -> str:
    """The generators as JSON: terms are [coefficient, [coordinate, …]], coordinates numbered from 0 as in "variables".

    The list is written by hand: millions of terms would be slow through a general encoder.
    """
    header = {
        "format": "attngeom/generators",
        "version": 1,
        "model": variety.model,
        "parameters": variety.describe(),
        "variables": list(coordinates(variety).names),
        "modules": [
            {"degree": v.degree, "shapes": [list(s) for s in v.shapes], "verified": v.is_verified} for v in vectors
        ],
    }
    lines = []
    for number, space in module_spaces(variety, vectors, whole):
        words = [",".join(map(str, factors)) for factors in space.factors.tolist()]
        weight = to_json([list(part) for part in space.weight])
        for row in space.coefficients:
            places = np.flatnonzero(row)
            terms = ",".join([f"[{c},[{words[i]}]]" for c, i in zip(row[places].tolist(), places.tolist())])
            lines.append(f'{{"module": {number}, "weight": {weight}, "terms": [{terms}]}}')
    return to_json(header).removesuffix("}") + ', "generators": [\n' + ",\n".join(lines) + "\n]}\n"


def find_system(path: Path) -> System | None:
    """The system whose programs have the ending of this name, None for JSON; InputError for other endings."""
    if path.suffix not in FORMATS:
        raise InputError(f"file name {path.name[:60]!r} given; an ending {', '.join(FORMATS)} is required")
    return FORMATS[path.suffix]


def write_generators(
    path: str | Path, variety: Variety, vectors: Sequence[HighestWeightVector], whole: bool = True
) -> tuple[int, int]:
    """Write generators; the ending of the name chooses JSON or a computer algebra system, see :data:`FORMATS`.

    Returns the numbers of polynomials and of bytes.
    """
    system = find_system(Path(path))
    count = sum(module_dimension(v.shapes, variety.groups) for v in vectors) if whole else len(vectors)
    check(size=GENERATOR_BYTES * count)
    text = to_json_text(variety, vectors, whole) if system is None else to_program(variety, vectors, system, whole)
    data = text.encode()
    write_atomic(path, data)
    return count, len(data)
