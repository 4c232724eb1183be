"""Computer algebra systems that read our polynomials: Macaulay2, Singular, OSCAR and Sage, one small writer each.

A program defines the ring R of the coordinates and an ideal I. With a parametrization it also defines the ring S of the
weights and the ring map phi from R to S, and prints whether phi kills I.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from attngeom.exact.polynomials import Polynomial, format_terms, macaulay2_name, singular_name


class System(ABC):
    """How one system writes variables, polynomials, rings, ideals and ring maps."""

    name: ClassVar[str]
    suffix: ClassVar[str]
    comment: ClassVar[str]

    def variable(self, name: str) -> str:
        """The name of a variable: y_0_1 stays what it is where that is a name."""
        return name

    def write(self, f: Polynomial) -> str:
        """A polynomial."""
        return format_terms(f, self.variable)

    @abstractmethod
    def ring(self, name: str, variables: Sequence[str]) -> str:
        """The definition of a polynomial ring over Q."""

    @abstractmethod
    def ideal(self, generators: Sequence[tuple[str, str]]) -> Iterator[str]:
        """The definition of the ideal I by (polynomial, remark); remarks may be empty."""

    @abstractmethod
    def ring_map(self, images: Sequence[str]) -> Iterator[str]:
        """The ring map phi from R to S, and the test that it kills I."""

    def program(
        self,
        title: str,
        variables: Sequence[str],
        generators: Iterable[tuple[str, str]],
        parametrization: tuple[Sequence[str], Sequence[Polynomial]] | None = None,
    ) -> Iterator[str]:
        """The lines of a program; the parametrization is (weights, the image of each variable)."""
        yield f"{self.comment} {title}"
        yield self.ring("R", [self.variable(name) for name in variables])
        yield from self.ideal(list(generators))
        if parametrization is not None:
            weights, images = parametrization
            yield self.ring("S", [self.variable(name) for name in weights])
            yield from self.ring_map([self.write(f) for f in images])

    def _lines(self, generators: Sequence[tuple[str, str]]) -> Iterator[str]:
        """One generator in each line, with commas between them and remarks behind."""
        for number, (polynomial, remark) in enumerate(generators):
            comma = "," if number + 1 < len(generators) else ""
            yield f"  {polynomial}{comma}" + (f" {self.comment} {remark}" if remark else "")


class Macaulay2(System):
    name = "m2"
    suffix = ".m2"
    comment = "--"

    def variable(self, name: str) -> str:
        return macaulay2_name(name)

    def ring(self, name: str, variables: Sequence[str]) -> str:
        return f"{name} = QQ[{', '.join(variables)}];"

    def ideal(self, generators: Sequence[tuple[str, str]]) -> Iterator[str]:
        yield "I = ideal("
        yield from self._lines(generators or [("0_R", "")])
        yield ");"

    def ring_map(self, images: Sequence[str]) -> Iterator[str]:
        yield f"phi = map(S, R, {{{', '.join(images)}}});"
        yield "vanishes = phi(I) == ideal(0_S);"
        yield "print vanishes;"


class Singular(System):
    name = "singular"
    suffix = ".sing"
    comment = "//"

    def variable(self, name: str) -> str:
        return singular_name(name)

    def ring(self, name: str, variables: Sequence[str]) -> str:
        return f"ring {name} = 0, ({', '.join(variables)}), dp;"

    def ideal(self, generators: Sequence[tuple[str, str]]) -> Iterator[str]:
        yield "ideal I ="
        yield from self._lines(generators or [("0", "")])
        yield "  ;"

    def ring_map(self, images: Sequence[str]) -> Iterator[str]:
        yield f"map phi = R, {', '.join(images)};"
        yield "ideal J = phi(I);"
        yield "print(size(J) == 0);"


class Oscar(System):
    name = "oscar"
    suffix = ".jl"
    comment = "#"

    def write(self, f: Polynomial) -> str:
        # A quotient of integers is a float in Julia; // keeps it rational.
        return super().write(f).replace("/", "//")

    def ring(self, name: str, variables: Sequence[str]) -> str:
        quoted = ", ".join(f'"{variable}"' for variable in variables)
        start = "using Oscar\n" if name == "R" else ""
        return f"{start}{name}, ({', '.join(variables)},) = polynomial_ring(QQ, [{quoted}])"

    def ideal(self, generators: Sequence[tuple[str, str]]) -> Iterator[str]:
        yield "I = ideal(R, ["
        yield from self._lines(generators or [("zero(R)", "")])
        yield "])"

    def ring_map(self, images: Sequence[str]) -> Iterator[str]:
        yield f"phi = hom(R, S, [{', '.join(images)}])"
        yield "println(all(iszero, map(phi, gens(I))))"


class Sage(System):
    name = "sage"
    suffix = ".sage"
    comment = "#"

    def ring(self, name: str, variables: Sequence[str]) -> str:
        names = ", ".join(variables)
        return f'{name} = PolynomialRing(QQ, "{names}"); {name}.inject_variables(verbose=False)'

    def ideal(self, generators: Sequence[tuple[str, str]]) -> Iterator[str]:
        yield "I = R.ideal(["
        yield from self._lines(generators or [("R(0)", "")])
        yield "])"

    def ring_map(self, images: Sequence[str]) -> Iterator[str]:
        yield f"phi = R.hom([{', '.join(images)}], S)"
        yield "print(all(phi(f) == 0 for f in I.gens()))"


SYSTEMS: dict[str, System] = {system.name: system for system in (Macaulay2(), Singular(), Oscar(), Sage())}
