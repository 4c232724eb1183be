"""Records about an ideal: weights, generators, degrees, and the answers degree by degree and in all degrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import log10
from typing import TYPE_CHECKING, Any

from attngeom.equations.variety import Variety
from attngeom.exact.modular import Pivots
from attngeom.exact.partitions import Partition, Weight, module_dimension, strip
from attngeom.limits.shown import INTEGER_BITS, SHAPE_ROWS
from attngeom.results import Result, Standing

if TYPE_CHECKING:
    from attngeom.drawing import Picture
    from attngeom.equations.ideal.generators import HighestWeightVector

GROUP_NAMES = {1: ("lambda",), 2: ("lambda", "mu"), 3: ("rho", "lambda", "mu")}


@dataclass(frozen=True)
class WeightResult:
    """One dominant weight space (engine W), or one space of highest weight vectors (engine H), of R_n.

    ``total`` is its dimension in R_n, ``rank`` in the coordinate ring, ``generated`` in R_1 · I_{n-1}. The flags say
    whether rank and generated are proven over Q; otherwise they hold mod p and, for W, at random points. ``pivots``
    (engine H) names a nonzero minor mod p of size ``generated`` in the matrix of products.
    """

    degree: int
    weight: Weight
    total: int
    rank: int
    generated: int
    is_rank_proven: bool = False
    is_generated_proven: bool = False
    pivots: Pivots = field(default=Pivots((), ()), compare=False)

    @property
    def ideal_dimension(self) -> int:
        return self.total - self.rank

    def to_json(self) -> list[Any]:
        """A compact list for run files."""
        weight = [list(part) for part in self.weight]
        flags = [self.is_rank_proven, self.is_generated_proven]
        pivots = [list(self.pivots.rows), list(self.pivots.columns)]
        return [self.degree, weight, self.total, self.rank, self.generated, *flags, *pivots]

    @classmethod
    def from_json(cls, data: list[Any]) -> WeightResult:
        """The result of :meth:`to_json`; ValueError or TypeError if the numbers cannot be those of a result."""
        degree, weight, total, rank, generated, is_rank_proven, is_generated_proven, rows, columns = data
        parts = tuple(tuple(part) for part in weight)
        numbers = [degree, total, rank, generated, *rows, *columns, *(x for part in parts for x in part)]
        if any(type(x) is not int or x < 0 for x in numbers):
            raise ValueError("a result holds nonnegative integers")
        if type(is_rank_proven) is not bool or type(is_generated_proven) is not bool:
            raise ValueError("a result holds two flags")
        if rank > total or generated > total - rank or len(rows) != len(columns):
            raise ValueError("ranks exceed the dimension of the space")
        if len({*rows}) != len(rows) or len({*columns}) != len(columns) or max(columns, default=-1) >= total - rank:
            raise ValueError("rows and columns are not those of a minor")
        pivots = Pivots(tuple(rows), tuple(columns))
        return cls(degree, parts, total, rank, generated, is_rank_proven, is_generated_proven, pivots)


@dataclass(frozen=True)
class GeneratorModule:
    """S_λ ⊗ S_μ ⊗ … with its multiplicity among the minimal generators of one degree."""

    shapes: tuple[Partition, ...]
    multiplicity: int
    dimension: int

    def __str__(self) -> str:
        names = "⊗".join(f"S_{format_shape(s)}" for s in self.shapes)
        return names if self.multiplicity == 1 else f"{self.multiplicity}·{names}"

    def _repr_latex_(self) -> str:
        names = r" \otimes ".join(f"S_{{({','.join(map(str, shape))})}}" for shape in self.shapes)
        return f"${names}$" if self.multiplicity == 1 else f"${self.multiplicity} \\cdot {names}$"

    def _repr_html_(self) -> str:
        """The Young diagrams of the shapes."""
        rows = ["<br>".join("□" * part for part in shape) or "·" for shape in self.shapes]
        cell = "display:inline-block;vertical-align:middle;line-height:.85;letter-spacing:-.1em;margin:0 .4em"
        diagrams = " ⊗ ".join(f"<span style='{cell}'>{row}</span>" for row in rows)
        times = "" if self.multiplicity == 1 else f"{self.multiplicity} · "
        return f"<span>{times}{diagrams} <span style='opacity:.7'>dimension {self.dimension:,}</span></span>"


@dataclass(frozen=True)
class DegreeSummary:
    """The ideal in one degree. ``error_bound`` is 0 where the dimension is proven."""

    degree: int
    monomials: int
    hilbert_function: int
    ideal_dimension: int
    modules: tuple[GeneratorModule, ...]
    is_dimension_proven: bool
    is_generation_proven: bool
    error_bound: float = 0.0
    seconds: float = 0.0
    formula: tuple[int, int] | None = None
    """(Hilbert function, minimal generators) by the closed formulas, where they apply."""
    from_families: int | None = None
    """Minimal generators in modules that the families of invariants reach; None if they were not compared."""
    unexplained: tuple[tuple[Weight, str], ...] = ()
    """Modules that no family reaches, each with its highest weight vector."""

    @classmethod
    def of(
        cls, degree: int, counts: Sequence[tuple[WeightResult, int]], modules: tuple[GeneratorModule, ...], **known: Any
    ) -> DegreeSummary:
        """The sum over all weights: their results, each with how often it counts, and the modules of new generators."""
        is_proven = all(result.is_rank_proven for result, _ in counts)
        return cls(
            degree,
            sum(result.total * count for result, count in counts),
            sum(result.rank * count for result, count in counts),
            sum(result.ideal_dimension * count for result, count in counts),
            modules,
            is_proven,
            is_proven and all(result.is_generated_proven for result, _ in counts),
            **known,
        )

    @property
    def minimal_generators(self) -> int:
        """The new generators of this degree: the dimensions of their modules."""
        return sum(module.dimension for module in self.modules)

    @property
    def standing(self) -> Standing:
        """proven if dimension and generators hold over Q, else probabilistic."""
        return "proven" if self.is_dimension_proven and self.is_generation_proven else "probabilistic"

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the command line contract, with the evidence beside it."""
        representations = [
            {**name_shapes(m.shapes), "dimension": json_integer(m.dimension // m.multiplicity)}
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
                "status": "theorem: docs/theorems/completeness.md, Theorems 1 and 6",
            },
            "unexplained": [
                {"shapes": [list(s) for s in shapes], "highest_weight_vector": text}
                for shapes, text in self.unexplained
            ],
            "evidence": {
                "ideal_dimension_at_most": "proven",
                "ideal_dimension_at_least": "proven" if self.is_dimension_proven else "probabilistic",
                "minimal_generators": "proven" if self.is_generation_proven else "probabilistic",
                "error_bound": self.error_bound,
            },
            "seconds": round(self.seconds, 4),
        }


def format_shape(shape: Partition) -> str:
    """A partition in short form.

    >>> format_shape((2, 2, 2)), format_shape((10, 9, 5)), format_shape((12, *(1,) * 10))
    ('222', '(10, 9, 5)', '(12, 1^10)')
    """
    if len(shape) <= SHAPE_ROWS:
        return "".join(map(str, shape)) if max(shape, default=0) < 10 else str(shape)
    runs = ((value, sum(1 for _ in run)) for value, run in groupby(shape))
    return f"({', '.join(str(value) if count == 1 else f'{value}^{count}' for value, count in runs)})"


def json_integer(n: int) -> int | str:
    """The integer, or its size in words if it has more digits than readers of JSON take.

    >>> json_integer(45), json_integer(2**20000)
    (45, 'about 10^6020')
    """
    return n if n.bit_length() <= INTEGER_BITS else f"about 10^{int((n.bit_length() - 1) * log10(2))}"


def name_shapes(shapes: tuple[Partition, ...]) -> dict[str, list[int]]:
    """The shapes under the names of their groups: rho (rows), lambda (context), mu (targets).

    >>> name_shapes(((3, 1), (1, 1)))
    {'lambda': [3, 1], 'mu': [1, 1]}
    """
    return {name: list(shape) for name, shape in zip(GROUP_NAMES[len(shapes)], shapes)}


def make_module(shapes: Weight, multiplicity: int, groups: tuple[int, ...]) -> GeneratorModule:
    """The record of a module from its highest weight.

    >>> make_module(((2, 2, 2), (3, 0, 0)), 1, (3, 3))
    GeneratorModule(shapes=((2, 2, 2), (3,)), multiplicity=1, dimension=10)
    """
    stripped = tuple(strip(shape) for shape in shapes)
    return GeneratorModule(stripped, multiplicity, multiplicity * module_dimension(shapes, groups))


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
    where it is too long a product. ``linear_relations`` counts those between the coefficients of all columns, where
    these are the coordinates (Theorem 7); the modules are those of the coordinates that are left.
    """

    modules: tuple[tuple[int, GeneratorModule], ...]
    dimension: int
    variety_degree: int | None
    theorem: str
    linear_relations: int = 0
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
            "theorem": self.theorem,
            "linear_relations": self.linear_relations,
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
        linear = f"{self.linear_relations:,} linear relation{'s' * (self.linear_relations != 1)}"
        if not self.modules:
            none = f"The ideal is generated by {linear}: {self.standing}."
            return {"generators": none if self.linear_relations else "The ideal is zero: there are no equations."}
        listed = " + ".join(f"{module} (degree {degree})" for degree, module in self.modules)
        beside = f", beside {linear}" if self.linear_relations else ""
        shown = {"generators": f"in degrees ≤ {self.degree}{beside}: {self.standing}", "modules": listed}
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
            **self.select("standing", "reason"),
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
