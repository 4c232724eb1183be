"""Degree by degree: drives an engine over all weights within a budget, and sums the results up."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from math import ceil, log2
from pathlib import Path
from typing import Any, Literal, Protocol

from attngeom.equations.ideal import formulas
from attngeom.equations.ideal.borel import is_excluded
from attngeom.equations.ideal.highest_weights import HighestWeightEngine
from attngeom.equations.ideal.models import CrossColumn, Model
from attngeom.equations.ideal.records import DegreeSummary, IdealSummary, WeightResult, make_module
from attngeom.equations.ideal.state import read_state, write_state
from attngeom.equations.ideal.tableaux import plethysm
from attngeom.equations.ideal.weight_spaces import WeightEngine, error_bound
from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.partitions import Weight, predicted_dimension
from attngeom.exact.primes import WORD_PRIME

Method = Literal["weights", "highest"]
SECOND_PRIME = 2147483587
"""The next prime below :data:`WORD_PRIME`: a second, independent run of everything that is not proven."""
SAVE_SECONDS = 5.0


@dataclass(frozen=True)
class Task:
    """The unit of work: one weight of one degree. Picklable, so that it can be sent to another process.

    ``predicted`` is the dimension, in this weight space, of the modules of minimal generators found at larger weights
    (engine W only; it lets the search stop early).
    """

    model: Model
    method: Method
    degree: int
    weight: Weight
    prime: int = WORD_PRIME
    seed: int = 0
    predicted: int = 0


@dataclass(frozen=True)
class Budget:
    """Limits of one run: wall seconds, and megabytes that one weight may need (an estimate made before it starts)."""

    seconds: float | None = None
    megabytes: float | None = None

    def allows(self, start: float, engine: WeightEngine | HighestWeightEngine, degree: int, weight: Weight) -> bool:
        """Whether one more weight may be started in a run that began at ``start`` (monotonic time)."""
        if self.seconds is not None and time.monotonic() - start > self.seconds:
            return False
        return self.megabytes is None or engine.memory(degree, weight) <= self.megabytes * 2**20


class Progress(Protocol):
    """Called after each weight: degree, weights done, weights in all."""

    def __call__(self, degree: int, done: int, total: int) -> None: ...


def choose_method(model: Model) -> Method:
    """Highest weight vectors where they apply (cross-column, one row, one head), else weight spaces.

    >>> choose_method(CrossColumn(3, 2)), choose_method(CrossColumn(3, 2, d_out=2))
    ('highest', 'weights')
    """
    applies = isinstance(model, CrossColumn) and model.d_out == 1 and model.heads == 1
    return "highest" if applies else "weights"


def make_engine(model: Model, method: Method, prime: int, seed: int) -> WeightEngine | HighestWeightEngine:
    """The engine of a method for a model."""
    if method == "weights":
        return WeightEngine(model, prime, seed)
    if choose_method(model) != "highest" or not isinstance(model, CrossColumn):
        raise InputError(
            "method 'highest' given; it needs cross-column coordinates of one row and one head; use 'weights'"
        )
    return HighestWeightEngine(model.d, model.num_targets, prime, seed)


def run_task(task: Task) -> WeightResult:
    """One unit of work in a fresh engine.

    >>> run_task(Task(CrossColumn(2, 2), "highest", 4, ((4, 4), (2, 2)))).ideal_dimension
    1
    """
    return _run(make_engine(task.model, task.method, task.prime, task.seed), task)


def _run(engine: WeightEngine | HighestWeightEngine, task: Task) -> WeightResult:
    if isinstance(engine, WeightEngine):
        return engine.run(task.degree, task.weight, task.predicted)
    assert isinstance(task.model, CrossColumn)
    return engine.run(task.degree, task.weight, task.model.a)


class _OverBudget(Exception):
    pass


class Run:
    """One run over degrees 1..max_degree; results of single weights can be saved and taken up again."""

    def __init__(
        self,
        model: Model,
        max_degree: int,
        method: Method | None = None,
        prime: int = WORD_PRIME,
        seed: int = 0,
        budget: Budget | None = None,
        progress: Progress | None = None,
        state: str | Path | None = None,
    ) -> None:
        if max_degree < 1:
            raise InputError(f"max_degree = {max_degree} given; a positive integer is required")
        coordinates = len(model.coordinates)
        if coordinates > 1 and max_degree >= 63 / log2(coordinates):
            raise SizeError(
                f"max_degree = {max_degree} in {coordinates:,} coordinates given; monomials are coded in 63 bits,"
                f" so at most degree {ceil(63 / log2(coordinates)) - 1} is reached"
            )
        self.model, self.max_degree, self.seed = model, max_degree, seed
        self.method: Method = method or choose_method(model)
        self.prime = prime
        self.budget = budget or Budget()
        self.progress = progress
        self.engine = make_engine(model, self.method, prime, seed)
        self.state = None if state is None else Path(state)
        self.results: dict[tuple[int, Weight], WeightResult] = {}
        self._start = self._saved = time.monotonic()
        if self.state is not None and self.state.exists():
            self._load()

    def summary(self) -> IdealSummary:
        """Run what is left, within the budget, and sum up the degrees that are complete."""
        degrees = []
        is_finished = True
        try:
            for degree in range(1, self.max_degree + 1):
                degrees.append(self._degree(degree))
        except _OverBudget:
            is_finished = False
        self._save(force=True)
        primes = (self.prime,)
        parameters = describe(self.model)
        name = type(self.model).__name__
        return IdealSummary(name, parameters, self.method, primes, self.seed, tuple(degrees), is_finished)

    def _degree(self, degree: int) -> DegreeSummary:
        before = time.process_time()
        weights = self.engine.weights(degree)
        modules: dict[Weight, int] = {}
        results = []
        for done, weight in enumerate(weights):
            is_weights = self.method == "weights"
            predicted = predicted_dimension(modules, weight) if is_weights else 0
            result = self.results.get((degree, weight))
            if result is None:
                if not self.budget.allows(self._start, self.engine, degree, weight):
                    raise _OverBudget
                task = Task(self.model, self.method, degree, weight, self.prime, self.seed, predicted)
                result = _run(self.engine, task)
                self.results[degree, weight] = result
                self._save()
            new = result.ideal_dimension - result.generated - predicted
            if new:
                modules[weight] = new
            results.append(result)
            if self.progress is not None:
                self.progress(degree, done + 1, len(weights))
        self.engine.forget(degree - 1)
        return self._sum_up(degree, results, modules, time.process_time() - before)

    def _sum_up(
        self, degree: int, results: list[WeightResult], modules: dict[Weight, int], seconds: float
    ) -> DegreeSummary:
        counts = [(r, self.engine.factor(r.weight)) for r in results]
        generators = tuple(make_module(w, m, self.model.groups) for w, m in modules.items())
        is_proven = all(r.is_rank_proven for r in results)
        return DegreeSummary(
            degree=degree,
            monomials=sum(r.total * f for r, f in counts),
            hilbert_function=sum(r.rank * f for r, f in counts),
            ideal_dimension=sum(r.ideal_dimension * f for r, f in counts),
            minimal_generators=sum(m.dimension for m in generators),
            modules=generators,
            is_dimension_proven=is_proven,
            is_generation_proven=is_proven and all(r.is_generated_proven for r in results),
            error_bound=0.0 if is_proven else error_bound(self.model, results, self.prime),
            seconds=seconds,
            formula=predict(self.model, degree),
        )

    def _header(self) -> dict[str, Any]:
        return {
            "model": type(self.model).__name__,
            "parameters": describe(self.model),
            "method": self.method,
            "prime": self.prime,
            "seed": self.seed,
        }

    def _save(self, force: bool = False) -> None:
        if self.state is None or (not force and time.monotonic() - self._saved < SAVE_SECONDS):
            return
        write_state(self.state, self._header(), self.results.values())
        self._saved = time.monotonic()

    def _load(self) -> None:
        assert self.state is not None
        for result in read_state(self.state, self._header()):
            if self.method == "highest" and not agrees_with_theory(self.model, result):
                raise FormatError(
                    f"{self.state}: degree {result.degree}, {result.weight} contradicts the theorems of"
                    " docs/completeness.md; remove the file and start again"
                )
            self.results[result.degree, result.weight] = result


def agrees_with_theory(model: Model, result: WeightResult) -> bool:
    """Whether the multiplicities of one module are those of the theorems of docs/completeness.md, by character theory.

    >>> agrees_with_theory(CrossColumn(2, 2), WeightResult(4, ((4, 4), (2, 2)), 1, 0, 0))
    True
    """
    assert isinstance(model, CrossColumn)
    lam, mu = result.weight
    d, a, targets = model.d, model.a, model.num_targets
    if sum(mu) != result.degree or len(lam) > d or len(mu) > targets:
        return False
    total = plethysm(mu, d).get(lam, 0)
    rank = 0 if is_excluded(lam, mu, formulas.effective_rank(d, a, targets)) else 1
    new = int(formulas.is_known_module((lam, mu), d, a, targets))
    return (result.total, result.rank, result.generated) == (total, rank, total - rank - new)


def predict(model: Model, degree: int) -> tuple[int, int] | None:
    """(Hilbert function, minimal generators) of one degree by the closed formulas; None where there are none.

    >>> predict(CrossColumn(3, 2), 4)
    (5400, 90)
    """
    if not isinstance(model, CrossColumn) or choose_method(model) != "highest":
        return None
    sizes = (model.d, model.a, model.num_targets)
    modules = formulas.minimal_generators(*sizes).get(degree, ())
    return formulas.hilbert_function(*sizes, degree), sum(module.dimension for module in modules)


def describe(model: Model) -> dict[str, Any]:
    """The parameters of a model as JSON values; ``targets`` is filled in.

    >>> describe(CrossColumn(3, 2))["targets"]
    3
    """
    parameters = asdict(model)  # type: ignore[call-overload]
    if isinstance(model, CrossColumn):
        parameters["targets"] = model.num_targets
    return dict(parameters)


def implicitize(
    model: Model,
    max_degree: int,
    method: Method | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    progress: Progress | None = None,
    state: str | Path | None = None,
    check: bool = True,
) -> IdealSummary:
    """All equations of degree ≤ max_degree on the variety: dimensions, minimal generators and their modules.

    With ``check`` every degree that is not proven is computed again with a second prime; a difference raises
    ArithmeticError.

    >>> [degree.minimal_generators for degree in implicitize(CrossColumn(2, 2), 4).degrees]
    [0, 0, 0, 1]
    """
    summary = Run(model, max_degree, method, WORD_PRIME, seed, budget, progress, state).summary()
    unproven = [d.degree for d in summary.degrees if not (d.is_dimension_proven and d.is_generation_proven)]
    if not (check and unproven and summary.is_finished):
        return summary
    second = Run(model, max(unproven), method, SECOND_PRIME, seed, budget, progress).summary()
    for ours, theirs in zip(summary.degrees, second.degrees):
        if (ours.hilbert_function, ours.modules) != (theirs.hilbert_function, theirs.modules):
            raise ArithmeticError(
                f"degree {ours.degree}: results mod {WORD_PRIME} and mod {SECOND_PRIME} differ; use other primes"
            )
    return replace(summary, primes=(WORD_PRIME, SECOND_PRIME), is_finished=second.is_finished)
