"""The answers about an ideal: degree by degree, and in all degrees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attngeom.equations.ideal.generators import HighestWeightVector
from attngeom.equations.ideal.records import DegreeSummary, GeneratorModule, json_integer, name_shapes
from attngeom.equations.variety import Variety
from attngeom.exact.partitions import Weight
from attngeom.results import Result

if TYPE_CHECKING:
    from attngeom.drawing import Picture


@dataclass(frozen=True)
class CompletenessCheck:
    """A finite run beside Theorem 6: every module that could hold a generator of degree ≥ 5 by Theorems 4 and 5.

    No generator has a degree above ``bound``. ``checked`` lists the degrees in between, each with the number of
    modules that could hold a generator; ``computed`` of them are not decided by their multiplicities alone; ``new``
    hold one. ``is_proven`` is False if one was not decided over Q, or if a budget ended the check.
    """

    bound: int
    checked: tuple[tuple[int, int], ...]
    computed: int
    new: tuple[tuple[int, Weight, int], ...]
    is_proven: bool
    prime: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "generator_degree_bound": self.bound,
            "checked": [{"degree": n, "modules": count} for n, count in self.checked],
            "computed": self.computed,
            "check_proven": self.is_proven,
            "new": [
                {"degree": degree, "lambda": list(lam), "mu": list(mu), "multiplicity": count}
                for degree, (lam, mu), count in self.new
            ],
            "prime": self.prime,
            "seconds": round(self.seconds, 4),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class CompletenessResult(Result):
    """All minimal generators of one ideal, for every d, a and targets: docs/theorems/completeness.md, Theorem 6.

    ``dimension`` and ``variety_degree`` are those of the affine cone and of the projective variety; the degree is None
    where it is too long a product.
    """

    modules: tuple[tuple[int, GeneratorModule], ...]
    dimension: int
    variety_degree: int | None
    check: CompletenessCheck | None = None

    @property
    def degree(self) -> int:
        """The largest degree of a minimal generator, 0 for the zero ideal."""
        return max((degree for degree, _ in self.modules), default=0)

    @property
    def is_checked(self) -> bool:
        """False if a check was asked for and did not come to its end."""
        return self.check is None or self.check.is_proven

    def to_json(self) -> dict[str, Any]:
        return {
            "complete": True,
            "standing": self.standing,
            "reason": self.reason,
            "generated_in_degree": self.degree,
            "generator_degree_bound": self.degree,
            "modules": [
                {**name_shapes(module.shapes), "degree": degree, "dimension": json_integer(module.dimension)}
                for degree, module in self.modules
            ],
            "dimension": self.dimension,
            "degree": None if self.variety_degree is None else json_integer(self.variety_degree),
            "checked": [],
            "computed": 0,
            "check_proven": None,
            "new": [],
            "prime": None,
            "seed": self.seed,
            "seconds": 0.0,
            **({} if self.check is None else self.check.to_json()),
        }

    def rows(self) -> dict[str, str]:
        if not self.modules:
            return {"generators": "The ideal is zero: there are no equations."}
        listed = " + ".join(f"{module} (degree {degree})" for degree, module in self.modules)
        shown = {"generators": f"in degrees ≤ {self.degree}: {self.standing}", "modules": listed}
        shown["variety"] = f"affine dimension {self.dimension}"
        if self.variety_degree is not None:
            shown["variety"] += f", degree {json_integer(self.variety_degree)}"
        if self.check is not None:
            count, last = sum(modules for _, modules in self.check.checked), self.check.bound
            end = "nothing new, proven" if self.check.is_proven else "not finished: give more time or memory"
            shown["check"] = f"{count} modules in degrees 5 to {last}, {self.check.computed} computed: {end}"
        return shown


@dataclass(frozen=True, kw_only=True, eq=False)
class IdealSummary(Result):
    """All degrees of one run. ``degrees`` holds the complete ones; ``stopped`` says which limit ended the run, if any.

    ``vectors`` are the highest weight vectors of the minimal generators, where they were asked for.
    """

    variety: Variety
    method: str
    primes: tuple[int, ...]
    degrees: tuple[DegreeSummary, ...]
    stopped: str | None = None
    vectors: tuple[HighestWeightVector, ...] | None = field(default=None, repr=False)
    completeness: CompletenessResult | None = None
    """What is known about degrees beyond the run; None if it was not asked."""

    @property
    def is_finished(self) -> bool:
        return self.stopped is None

    def plot(self) -> Picture:
        """Equations by degree: the dimension of the ideal, and how many of them are new."""
        from attngeom.drawing import draw_stacks

        stacks = {
            "dim I": {str(row.degree): row.ideal_dimension for row in self.degrees},
            "minimal generators": {str(row.degree): row.minimal_generators for row in self.degrees},
        }
        return draw_stacks(
            f"equations of attention layers, d = {self.variety.d}, a = {self.variety.a}", "degree", stacks, scale="log"
        )

    def to_json(self) -> dict[str, Any]:
        record = {
            **self.variety.describe(),
            "model": self.variety.model,
            "method": self.method,
            "primes": list(self.primes),
            "seed": self.seed,
            "finished": self.is_finished,
            "degrees": [degree.to_json() for degree in self.degrees],
            "completeness": None if self.completeness is None else self.completeness.to_json(),
        }
        return record if self.is_finished else {**record, "stopped": self.stopped}

    def rows(self) -> dict[str, str]:
        sizes = ", ".join(f"{k}={v}" for k, v in self.variety.describe().items() if v not in (None, False))
        shown = {"ideal": f"{self.variety.model}: {sizes}; method {self.method}"}
        for degree in self.degrees:
            counts = f"HF {degree.hilbert_function}, dim I {degree.ideal_dimension}, new {degree.minimal_generators}"
            modules = f" = {' + '.join(map(str, degree.modules))}" if degree.modules else ""
            shown[f"degree {degree.degree}"] = f"{counts}{modules}; {degree.standing}"
        shown |= {} if self.completeness is None else self.completeness.rows()
        return shown if self.is_finished else {**shown, "stopped": str(self.stopped)}
