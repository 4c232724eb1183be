"""The question "ideal": Hilbert functions and minimal generators of attention varieties, one fact per degree.

For one output row with t ≥ 2 the work is cut further: one fact "ideal-weight" for each highest weight (λ, μ), and the
fact of the degree is their sum. The other models take one task for each degree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from math import comb
from typing import Any, ClassVar

from attngeom.atlas.questions import Question, integers, register, table_values
from attngeom.atlas.records import Answer, Fact, Task, canonical_json
from attngeom.equations import Variety
from attngeom.equations.ideal import DegreeSummary, WeightResult, implicitize
from attngeom.equations.ideal.formulas import hilbert_function
from attngeom.equations.ideal.records import make_module
from attngeom.equations.ideal.tableaux import plethysm
from attngeom.equations.ideal.weight_spaces import HighestWeightEngine
from attngeom.errors import InputError, SizeError
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.partitions import Weight, kostka, module_dimension, pad
from attngeom.limits.sizes import IDEAL_TARGETS
from attngeom.limits.work import COUNTED_TASKS, DEGREE_MONOMIALS, LISTED_WEIGHTS
from attngeom.network import Architecture

# Embedding widths, attention widths ("all": 1..d), target directions ("d": as many as d), output rows, degrees, and
# "cross" (t ≥ 2) or "single" (t = 1) coordinates.
KEYS: Mapping[str, Any] = {"d": 2, "a": "all", "targets": "d", "rows": 1, "degrees": 2, "coordinates": "cross"}


def model_task(question: str, model: Mapping[str, int], degree: int, coordinates: str, seed: int) -> Task:
    """The task about one degree of one model, named by the smallest network whose coefficients these are."""
    tokens = 1 if coordinates == "single" else 2
    network = Architecture((model["d"], model["rows"]), model["a"], tokens=tokens)
    parameters = {"degree": degree, "targets": model["targets"], "coordinates": coordinates}
    return Task(question, network.to_json(), parameters, seed)


def task_variety(task: Task) -> Variety:
    """The parametrization that a task is about."""
    (d, rows), (a,) = task.architecture["widths"], task.architecture["attention"]
    if task.parameters["coordinates"] == "single":
        return Variety(d, a, tokens=1)
    return Variety(d, a, d_out=rows, targets=task.parameters["targets"])


def ideal_models(d: Any, a: Any, targets: Any, rows: Any) -> Iterator[dict[str, int]]:
    """The sizes that ranges of a table describe. A rank bound that every matrix meets is left out: the same variety.

    >>> [model["a"] for model in ideal_models(3, "all", 2, 1)]
    [1, 2]
    """
    for width in integers(d, "d"):
        for count in [width] if targets == "d" else integers(targets, "targets"):
            for outputs in integers(rows, "rows"):
                for rank in range(1, width + 1) if a == "all" else integers(a, "a"):
                    if rank <= min(width, count):
                        yield {"d": width, "a": rank, "targets": count, "rows": outputs}


def _models(table: Mapping[str, Any]) -> Iterator[tuple[dict[str, int], str]]:
    values = table_values(table, KEYS, "ideal")
    coordinates = values["coordinates"]
    if coordinates not in ("cross", "single"):
        raise InputError(f"coordinates = {str(coordinates)[:40]!r} given; 'cross' or 'single' is required")
    for model in ideal_models(values["d"], values["a"], values["targets"], values["rows"]):
        if coordinates == "single" and (model["rows"] > 1 or model["targets"] != model["d"]):
            raise InputError("coordinates = 'single' given; it needs rows = 1 and targets = 'd'")
        yield model, coordinates


def _count_models(table: Mapping[str, Any]) -> int:
    """A bound on the number of models of a table, from the lengths of its ranges."""
    values = table_values(table, KEYS, "ideal")
    widths = integers(values["d"], "d")
    ranks = max(widths) if values["a"] == "all" else len(integers(values["a"], "a"))
    targets = 1 if values["targets"] == "d" else len(integers(values["targets"], "targets"))
    return len(widths) * ranks * targets * len(integers(values["rows"], "rows"))


def _degrees(table: Mapping[str, Any]) -> list[int]:
    return integers(table_values(table, KEYS, "ideal")["degrees"], "degrees")


def _is_cut(rows: int, coordinates: str) -> bool:
    """Whether a degree of this model is cut into highest weights."""
    return coordinates == "cross" and rows == 1


def _tasks(table: Mapping[str, Any], seed: int, cut: bool) -> Iterator[Task]:
    """The "ideal" tasks of a table: those that are cut into highest weights, or the others."""
    for degree in _degrees(table):
        for model, coordinates in _models(table):
            if _is_cut(model["rows"], coordinates) == cut:
                yield model_task("ideal", model, degree, coordinates, seed)


@lru_cache(maxsize=1)
def _engine(d: int, targets: int, seed: int) -> HighestWeightEngine:
    """The engine of the last model: its spaces serve all weights and all attention widths."""
    return HighestWeightEngine(d, targets, WORD_PRIME, seed)


@lru_cache(maxsize=4096)
def _tableaux(d: int, weight: Weight) -> int:
    """The number of tableaux of shape μ and weight λ: the size of the linear algebra for one highest weight."""
    lam, mu = weight
    return sum(multiplicity * kostka(shape, lam) for shape, multiplicity in plethysm(mu, d).items())


def _shape(task: Task) -> tuple[int, int, int]:
    """d, targets and degree, which the highest weights depend on."""
    return task.architecture["widths"][0], task.parameters["targets"], task.parameters["degree"]


def _weights(d: int, targets: int, degree: int) -> tuple[Weight, ...]:
    return HighestWeightEngine(d, targets).weights(degree)


def check_listable(model: Mapping[str, int], degree: int, coordinates: str) -> None:
    """Refuse a degree whose weights or monomials could not even be listed."""
    d, rows = model["d"], model["rows"]
    if model["targets"] > IDEAL_TARGETS:
        raise SizeError(f"{str(model['targets'])[:20]} targets of an ideal given; at most {IDEAL_TARGETS:,} are listed")
    if _is_cut(rows, coordinates):
        # The highest weights of R_n occur among the monomials of degree 2n in d variables.
        if degree > LISTED_WEIGHTS or comb(d + 2 * degree - 1, min(2 * degree, d - 1)) > LISTED_WEIGHTS:
            raise SizeError(f"degree {degree} of an ideal with d = {d} given; its weights are too many to list")
    elif degree > LISTED_WEIGHTS or _monomials(d, rows, degree, coordinates) > DEGREE_MONOMIALS:
        raise SizeError(f"degree {degree} of an ideal with d = {d}, rows = {rows} given; it has too many monomials")


def _monomials(d: int, rows: int, degree: int, coordinates: str, targets: int | None = None) -> int:
    variables = comb(d + 2, 3) if coordinates == "single" else rows * (targets or d) * comb(d + 1, 2)
    return comb(variables + degree - 1, min(degree, variables - 1))


class IdealWeight(Question):
    """One highest weight (λ, μ) of one degree: multiplicities in R_n, in the coordinate ring and in R_1 · I_{n-1}."""

    name = "ideal-weight"

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for _, same in groupby(_tasks(table, seed, cut=True), key=_shape):
            wholes = list(same)
            for weight in _weights(*_shape(wholes[0])):
                yield from (weight_task(whole, weight) for whole in wholes)

    def size(self, table: Mapping[str, Any]) -> int:
        tasks = 0
        for degree in _degrees(table):
            for model, coordinates in _models(table):
                check_listable(model, degree, coordinates)
                if _is_cut(model["rows"], coordinates):
                    tasks += comb(model["d"] + 2 * degree - 1, min(2 * degree, model["d"] - 1))
                if tasks > COUNTED_TASKS:
                    return tasks
        return tasks

    def cost(self, task: Task) -> float:
        lam, mu = task.parameters["weight"]
        d = task.architecture["widths"][0]
        return 1e-3 + 1e-6 * _tableaux(d, (tuple(lam), tuple(mu))) ** 2 / float(d)

    def group(self, task: Task) -> str:
        """All attention widths use the same highest weight vectors."""
        return canonical_json([task.architecture["widths"], task.parameters])

    def run(self, task: Task) -> Answer:
        (d, targets, degree), (a,) = _shape(task), task.architecture["attention"]
        lam, mu = task.parameters["weight"]
        engine = _engine(d, targets, task.seed)
        engine.forget(degree - 2)
        result = engine.run(degree, (tuple(lam), tuple(mu)), a)
        answer = {
            "total": result.total,
            "rank": result.rank,
            "generated": result.generated,
            "is_rank_proven": bool(result.is_rank_proven),
            "is_generated_proven": bool(result.is_generated_proven),
        }
        evidence = "proven" if result.is_rank_proven and result.is_generated_proven else "probabilistic"
        return Answer(answer, evidence, WORD_PRIME)


def weight_task(task: Task, weight: Weight) -> Task:
    """The part of an "ideal" task at one highest weight."""
    parameters = {**task.parameters, "weight": [list(shape) for shape in weight]}
    return Task("ideal-weight", task.architecture, parameters, task.seed)


class Ideal(Question):
    """One degree of one ideal: Hilbert function, dimension, minimal generators and their modules."""

    name = "ideal"
    rests_on: ClassVar[Mapping[str, str]] = {"ideal_dimension": "hilbert_function"}

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        yield from IdealWeight().tasks(table, seed)
        yield from _tasks(table, seed, cut=False)

    def size(self, table: Mapping[str, Any]) -> int:
        models = _count_models(table)
        return len(_degrees(table)) * models + (IdealWeight().size(table) if models < COUNTED_TASKS else 0)

    def cost(self, task: Task) -> float:
        (d, rows), degree = task.architecture["widths"], task.parameters["degree"]
        monomials = float(_monomials(d, rows, degree, task.parameters["coordinates"]))
        return 1e-2 + 4e-5 * monomials * (1 + monomials / 2e5)

    def run(self, task: Task) -> Answer:
        summary = implicitize(task_variety(task), task.parameters["degree"], seed=task.seed, check=True)
        return summarize(task, summary.degrees[-1], summary.primes[0])

    def sums(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        return _tasks(table, seed, cut=True)

    def parts(self, task: Task) -> tuple[Task, ...]:
        d, rows = task.architecture["widths"]
        if not _is_cut(rows, task.parameters["coordinates"]):
            return ()
        check_listable({"d": d, "rows": rows, **task.parameters}, task.parameters["degree"], "cross")
        return tuple(weight_task(task, weight) for weight in _weights(*_shape(task)))

    def derive(self, fact: Fact) -> Mapping[str, Any]:
        """The number of monomials, the formula, and the dimension of the ideal from the Hilbert function."""
        (d, rows), parameters = fact.task.architecture["widths"], fact.task.parameters
        degree, coordinates = parameters["degree"], parameters["coordinates"]
        check_listable({"d": d, "rows": rows, **parameters}, degree, coordinates)
        monomials = _monomials(d, rows, degree, coordinates, parameters["targets"])
        dimension = monomials - fact.result.answer["hilbert_function"]
        return {"monomials": monomials, "ideal_dimension": dimension, "formula": _formula(fact.task)}

    def check(self, fact: Fact) -> str | None:
        answer, formula = fact.result.answer, fact.result.answer["formula"]
        if formula is not None and formula != answer["hilbert_function"]:
            return f"its Hilbert function is {answer['hilbert_function']}, not {formula} as its formula says"
        if sum(answer["modules"].values()) != answer["minimal_generators"]:
            return f"the dimensions of its modules do not add up to {answer['minimal_generators']} generators"
        return None

    def combine(self, task: Task, parts: Sequence[Fact]) -> Answer:
        groups = _shape(task)[:2]
        results = [weight_result(fact) for fact in parts]
        counts = [(r, module_dimension(r.weight, groups)) for r in results]
        new = {r.weight: r.ideal_dimension - r.generated for r in results}
        modules = tuple(make_module(weight, count, groups) for weight, count in new.items() if count)
        return summarize(task, DegreeSummary.of(task.parameters["degree"], counts, modules), WORD_PRIME)


def weight_result(fact: Fact) -> WeightResult:
    """What a fact "ideal-weight" says, as the engine says it."""
    (lam, mu), (d, targets, degree) = fact.task.parameters["weight"], _shape(fact.task)
    weight = (pad(tuple(lam), d), pad(tuple(mu), targets))
    return WeightResult(degree=degree, weight=weight, **fact.result.answer)


def _formula(task: Task) -> int | None:
    """The Hilbert function by the formula, where there is one."""
    (d, rows), (a,) = task.architecture["widths"], task.architecture["attention"]
    has_formula = _is_cut(rows, task.parameters["coordinates"])
    return hilbert_function(d, a, task.parameters["targets"], task.parameters["degree"]) if has_formula else None


def summarize(task: Task, summary: DegreeSummary, prime: int) -> Answer:
    """The fact of one degree; ``formula`` is the Hilbert function by the formula where there is one."""
    answer = {
        "monomials": summary.monomials,
        "hilbert_function": summary.hilbert_function,
        "ideal_dimension": summary.ideal_dimension,
        "minimal_generators": summary.minimal_generators,
        "modules": {str(module): module.dimension for module in summary.modules},
        "formula": _formula(task),
    }
    proven = "proven" if summary.is_generation_proven else "dimension proven"
    return Answer(answer, proven if summary.is_dimension_proven else "probabilistic", prime)


register(IdealWeight())
register(Ideal())
