"""What implicitization returns: results for single weights, summaries for degrees, and their JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from attngeom.exact.partitions import Partition, Weight, module_dimension, strip

GROUP_NAMES = {1: ("lambda",), 2: ("lambda", "mu"), 3: ("rho", "lambda", "mu")}


@dataclass(frozen=True)
class WeightResult:
    """One dominant weight space (engine W), or one space of highest weight vectors (engine H), of R_n.

    ``total`` is its dimension in R_n, ``rank`` in the coordinate ring, ``generated`` in R_1 · I_{n-1}. The flags say
    whether rank and generated are proven over Q; otherwise they hold mod p and, for W, at random points.
    """

    degree: int
    weight: Weight
    total: int
    rank: int
    generated: int
    is_rank_proven: bool = False
    is_generated_proven: bool = False

    @property
    def ideal_dimension(self) -> int:
        return self.total - self.rank

    def to_json(self) -> list[Any]:
        """A compact list for run files."""
        weight = [list(part) for part in self.weight]
        flags = [self.is_rank_proven, self.is_generated_proven]
        return [self.degree, weight, self.total, self.rank, self.generated, *flags]

    @classmethod
    def from_json(cls, data: list[Any]) -> WeightResult:
        """The result of :meth:`to_json`; ValueError or TypeError if the numbers cannot be those of a result."""
        degree, weight, total, rank, generated, *flags = data
        parts = tuple(tuple(part) for part in weight)
        numbers = [degree, total, rank, generated, *(x for part in parts for x in part)]
        if any(type(x) is not int or x < 0 for x in numbers) or [type(x) for x in flags] != [bool, bool]:
            raise ValueError("a result holds nonnegative integers and two flags")
        if rank > total or generated > total - rank:
            raise ValueError("ranks exceed the dimension of the space")
        return cls(degree, parts, total, rank, generated, *flags)


@dataclass(frozen=True)
class GeneratorModule:
    """S_λ ⊗ S_μ ⊗ … with its multiplicity among the minimal generators of one degree."""

    shapes: tuple[Partition, ...]
    multiplicity: int
    dimension: int

    def __str__(self) -> str:
        names = "⊗".join("S_" + "".join(map(str, s)) if max(s, default=0) < 10 else f"S_{s}" for s in self.shapes)
        return names if self.multiplicity == 1 else f"{self.multiplicity}·{names}"


@dataclass(frozen=True)
class DegreeSummary:
    """The ideal in one degree. ``error_bound`` is 0 where the dimension is proven."""

    degree: int
    monomials: int
    hilbert_function: int
    ideal_dimension: int
    minimal_generators: int
    modules: tuple[GeneratorModule, ...]
    is_dimension_proven: bool
    is_generation_proven: bool
    error_bound: float
    seconds: float
    formula: tuple[int, int] | None = None
    """(Hilbert function, minimal generators) by the closed formulas, where they apply."""
    from_families: int | None = None
    """Minimal generators in modules that the families of invariants reach; None if they were not compared."""
    unexplained: tuple[tuple[Weight, str], ...] = ()
    """Modules that no family reaches, each with its highest weight vector."""

    def with_families(self, count: int, unexplained: tuple[tuple[Weight, str], ...]) -> DegreeSummary:
        return replace(self, from_families=count, unexplained=unexplained)

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the command line contract, with the evidence beside it."""
        representations = [
            {
                **{name: list(s) for name, s in zip(GROUP_NAMES[len(m.shapes)], m.shapes)},
                "dimension": m.dimension,
            }
            for m in self.modules
            for _ in range(m.multiplicity)
        ]
        missing = None if self.from_families is None else self.minimal_generators - self.from_families
        return {
            "degree": self.degree,
            "monomials": self.monomials,
            "hilbert_function": self.hilbert_function,
            "ideal_dimension": self.ideal_dimension,
            "minimal_generators": self.minimal_generators,
            "representations": representations,
            "from_families": self.from_families,
            "missing": missing,
            "formula": None
            if self.formula is None
            else {
                "hilbert_function": self.formula[0],
                "minimal_generators": self.formula[1],
                "status": "ours; proven: the Hilbert function, and the generators in degrees up to 6",
            },
            "unexplained": [
                {"shapes": [list(s) for s in shapes], "highest_weight_vector": text}
                for shapes, text in self.unexplained
            ],
            "evidence": {
                "ideal_dimension_at_most": "proven",
                "ideal_dimension_at_least": "proven" if self.is_dimension_proven else "Monte Carlo",
                "minimal_generators": "proven" if self.is_generation_proven else "Monte Carlo",
                "error_bound": self.error_bound,
            },
            "seconds": round(self.seconds, 4),
        }


@dataclass(frozen=True)
class Completeness:
    """Whether one ideal is generated by its equations of degree ≤ ``degree``: a statement about all degrees.

    No generator has a degree above ``bound`` (a theorem). ``checked`` lists the degrees in between, each with the
    number of modules that could hold a generator; ``new`` are those that do. ``is_proven`` is False if one was not
    decided over Q, or if a budget ended the check.
    """

    d: int
    a: int
    targets: int
    degree: int
    bound: int
    checked: tuple[tuple[int, int], ...]
    new: tuple[tuple[int, Weight, int], ...]
    is_proven: bool
    prime: int
    seed: int
    seconds: float

    @property
    def is_complete(self) -> bool:
        return self.is_proven and not self.new

    def to_json(self) -> dict[str, Any]:
        return {
            "complete": self.is_complete,
            "generated_in_degree": self.degree,
            "generator_degree_bound": self.bound,
            "checked": [{"degree": degree, "modules": count} for degree, count in self.checked],
            "new": [
                {"degree": degree, "lambda": list(lam), "mu": list(mu), "multiplicity": count}
                for degree, (lam, mu), count in self.new
            ],
            "prime": self.prime,
            "seed": self.seed,
            "seconds": round(self.seconds, 4),
        }


@dataclass(frozen=True)
class IdealSummary:
    """All degrees of one run. ``is_finished`` is False if a budget ended it; ``degrees`` holds the complete ones."""

    model: str
    parameters: dict[str, Any]
    method: str
    primes: tuple[int, ...]
    seed: int
    degrees: tuple[DegreeSummary, ...]
    is_finished: bool
    completeness: Completeness | None = None
    """What is known about degrees beyond the run; None if it was not asked."""

    def to_json(self) -> dict[str, Any]:
        return {
            **self.parameters,
            "model": self.model,
            "method": self.method,
            "primes": list(self.primes),
            "seed": self.seed,
            "finished": self.is_finished,
            "degrees": [degree.to_json() for degree in self.degrees],
            "completeness": None if self.completeness is None else self.completeness.to_json(),
        }


def make_module(shapes: Weight, multiplicity: int, groups: tuple[int, ...]) -> GeneratorModule:
    """The record of a module from its highest weight.

    >>> make_module(((2, 2, 2), (3, 0, 0)), 1, (3, 3))
    GeneratorModule(shapes=((2, 2, 2), (3,)), multiplicity=1, dimension=10)
    """
    stripped = tuple(strip(shape) for shape in shapes)
    return GeneratorModule(stripped, multiplicity, multiplicity * module_dimension(shapes, groups))
