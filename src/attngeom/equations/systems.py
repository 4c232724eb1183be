"""Computer algebra systems that read our polynomials: Macaulay2, Singular, OSCAR and Sage, one row of a table each.

A program defines the ring R of the coordinates and an ideal I. With a parametrization it also defines the ring S of the
weights and the ring map phi from R to S, and prints whether phi kills I. Where dimension and degree of the zero set of
I are known, it has a line that computes and compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attngeom.exact.domains.polynomials import Polynomial, format_terms


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
