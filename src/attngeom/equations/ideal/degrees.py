"""Degree by degree: drives an engine over all weights within limits, and sums the results up.

Results of single weights can be kept in a file, bound to their run by a digest, so that a later run goes on from them.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import ceil, log2
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attngeom.equations.ideal import formulas
from attngeom.equations.ideal.limits import Limits, OverBudget, check
from attngeom.equations.ideal.monomials import is_excluded
from attngeom.equations.ideal.records import DegreeSummary, WeightResult, make_module
from attngeom.equations.ideal.tableaux import multiplicity
from attngeom.equations.ideal.weight_spaces import HighestWeightEngine, WeightEngine, error_bound
from attngeom.equations.variety import Variety
from attngeom.errors import FormatError, InputError, SizeError
from attngeom.exact.numbers import WORD_PRIME
from attngeom.exact.partitions import Weight, is_partition, module_dimension, orbit_size, predicted_dimension
from attngeom.files import check_header, read_json, to_json, write_atomic
from attngeom.limits.memory import MONOMIAL_CODE
from attngeom.limits.seconds import SAVE_SECONDS
from attngeom.limits.work import IDEAL_COORDINATES

Method = Literal["weights", "highest"]
OnWeight: TypeAlias = Callable[[int, int, int], None]
"""Called after each weight: degree, weights done, weights in all."""


def has_theory(variety: Variety) -> bool:
    """Whether the theorems of docs/theorems/completeness.md are about this variety: t ≥ 2, one output row, one head."""
    return variety.tokens is None and variety.d_out == 1 and variety.heads == 1 and not variety.hidden


def make_engine(
    variety: Variety, method: Method, max_degree: int, prime: int, seed: int
) -> WeightEngine | HighestWeightEngine:
    """The engine of a method for a variety and all degrees up to one.

    In degree n modules have at most n rows, so more than n context or target directions change no multiplicity.
    """
    if method == "weights":
        _check_degree(max_degree, variety.num_coordinates)
        return WeightEngine(variety, prime, seed)
    if not has_theory(variety):
        raise InputError(
            "method 'highest' given; it needs cross-column coordinates of one row and one head; use 'weights'"
        )
    small = variety.restrict((max_degree, max_degree))
    _check_degree(max_degree, small.num_coordinates)
    return HighestWeightEngine(small.d, small.num_targets, prime, seed)


def _check_degree(max_degree: int, coordinates: int) -> None:
    if coordinates > IDEAL_COORDINATES:
        raise SizeError(
            f"{coordinates:,} coordinates given; at most {IDEAL_COORDINATES:,} are handled: take smaller sizes"
        )
    reach = ceil(log2(MONOMIAL_CODE) / log2(coordinates)) - 1 if coordinates > 1 else max_degree
    if reach < max_degree:
        raise SizeError(
            f"max_degree = {max_degree} in {coordinates:,} coordinates given; monomials are coded in 63 bits,"
            f" so at most degree {reach} is reached"
        )


class Run:
    """One run over degrees 1..max_degree; results of single weights can be saved and taken up again.

    >>> [degree.minimal_generators for degree in Run(Variety(2, 2), 4).degrees()]
    [0, 0, 0, 1]
    """

    def __init__(
        self,
        variety: Variety,
        max_degree: int,
        method: Method | None = None,
        *,
        prime: int = WORD_PRIME,
        seed: int = 0,
        limits: Limits | None = None,
        progress: OnWeight | None = None,
        state: str | Path | None = None,
    ) -> None:
        if max_degree < 1:
            raise InputError(f"max_degree = {max_degree} given; a positive integer is required")
        self.variety, self.max_degree, self.prime, self.seed = variety, max_degree, prime, seed
        self.method: Method = method or ("highest" if has_theory(variety) else "weights")
        self.limits = limits or Limits()
        self.progress = progress
        self.stopped: str | None = None
        self.engine = make_engine(variety, self.method, max_degree, prime, seed)
        self.state = None if state is None else Path(state)
        self.results: dict[tuple[int, Weight], WeightResult] = {}
        self._saved = time.monotonic()
        if self.state is not None and self.state.exists():
            self._load()

    def degrees(self) -> tuple[DegreeSummary, ...]:
        """Run what is left, within the limits, and sum up the degrees that are complete; see ``stopped``."""
        summaries = []
        with self.limits.hold():
            try:
                for degree in range(1, self.max_degree + 1):
                    summaries.append(self._degree(degree))
            except OverBudget as reason:
                self.stopped = f"degree {len(summaries) + 1}: {reason}"
        self.save()
        return tuple(summaries)

    def _degree(self, degree: int) -> DegreeSummary:
        before = time.process_time()
        check()
        weights = self.engine.weights(degree)
        modules: dict[Weight, int] = {}
        results = []
        for done, weight in enumerate(weights):
            predicted = predicted_dimension(modules, weight) if self.method == "weights" else 0
            result = self.stored(degree, weight)
            if result is None:
                check()
                bound = self.variety.a if self.method == "highest" else predicted
                result = self.engine.run(degree, weight, bound)
                self.keep(result)
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
        # A result counts as often as its module has dimensions, or as there are weights in the orbit.
        factor = partial(module_dimension, groups=self.variety.groups) if self.method == "highest" else orbit_size
        counts = [(r, factor(r.weight)) for r in results]
        generators = tuple(make_module(w, m, self.variety.groups) for w, m in modules.items())
        is_proven = all(r.is_rank_proven for r in results)
        error = 0.0 if is_proven else error_bound(self.variety, results, self.prime)
        known = {"error_bound": error, "seconds": seconds, "formula": predict(self.variety, degree)}
        return DegreeSummary.of(degree, counts, generators, **known)

    def keep(self, result: WeightResult) -> None:
        """Add a result, and write the state file from time to time."""
        self.results[result.degree, result.weight] = result
        if time.monotonic() - self._saved >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the state file, if there is one."""
        if self.state is not None:
            write_state(self.state, self._header(), self.results.values())
            self._saved = time.monotonic()

    def _header(self) -> dict[str, Any]:
        return {
            "model": self.variety.model,
            "parameters": self.variety.describe(),
            "method": self.method,
            "prime": self.prime,
            "seed": self.seed,
        }

    def _load(self) -> None:
        assert self.state is not None
        self.results = {(result.degree, result.weight): result for result in read_state(self.state, self._header())}
        if self.method == "highest":
            for degree, weight in self.results:
                # What lies beyond this run may take long to check, and is checked when it is used.
                if degree <= self.max_degree:
                    self.stored(degree, weight)

    def stored(self, degree: int, weight: Weight) -> WeightResult | None:
        """A result that is known; its numbers must be those of the theorems or, without theory, those of a count.

        With theory nothing needs to stay unproven: such a result is computed again.
        """
        result = self.results.get((degree, weight))
        if result is None:
            return None
        if isinstance(self.engine, WeightEngine):
            size = len(self.engine.table.space(degree, weight))
            flags = {result.is_rank_proven, result.is_generated_proven}
            self._require(
                result.total == size and flags == {result.rank == size}, result, "the monomials of its weight"
            )
        else:
            self._require(agrees_with_theory(self.variety, result), result, "the theorems of completeness.md")
            self._require(len(result.pivots.rows) == result.generated, result, "the size of its minor")
            if not (result.is_rank_proven and result.is_generated_proven):
                return None
        return result

    def _require(self, holds: bool, result: WeightResult, what: str) -> None:
        if not holds:
            place = f"degree {result.degree}, {str(result.weight)[:60]}"
            raise FormatError(f"{self.state}: {place} contradicts {what}; remove the file and start again")


def agrees_with_theory(variety: Variety, result: WeightResult) -> bool:
    """Whether the multiplicities of one module are those of docs/theorems/completeness.md, by character theory.

    >>> agrees_with_theory(Variety(2, 2), WeightResult(4, ((4, 4), (2, 2)), 1, 0, 0))
    True
    """
    if len(result.weight) != 2:
        return False
    lam, mu = result.weight
    d, a, targets = variety.d, variety.a, variety.num_targets
    if sum(mu) != result.degree or not 0 < len(lam) <= d or not 0 < len(mu) <= targets:
        return False
    if not (is_partition(lam) and is_partition(mu)):
        return False
    total = multiplicity(lam, mu)
    rank = 0 if is_excluded(lam, mu, formulas.effective_rank(d, a, targets)) else 1
    new = int((result.degree, lam, mu) in formulas.generator_shapes(d, a, targets))
    return (result.total, result.rank, result.generated) == (total, rank, total - rank - new)


def predict(variety: Variety, degree: int) -> tuple[int, int] | None:
    """(Hilbert function, minimal generators) of one degree by the closed formulas; None where there are none.

    >>> predict(Variety(3, 2), 4)
    (5400, 90)
    """
    if not has_theory(variety):
        return None
    sizes = (variety.d, variety.a, variety.num_targets)
    modules = formulas.generator_modules(*sizes).get(degree, ())
    return formulas.hilbert_function(*sizes, degree), sum(module.dimension for module in modules)


def digest(record: Mapping[str, Any]) -> str:
    """SHA-256 of a record without its own digest; it tells an edited or damaged file from one that was written here.

    >>> digest({"a": 1, "digest": "x"}) == digest({"a": 1})
    True
    """
    content = {key: record[key] for key in sorted(record) if key != "digest"}
    return hashlib.sha256(to_json(content).encode()).hexdigest()


def write_state(path: Path, header: Mapping[str, Any], results: Iterable[WeightResult]) -> None:
    """Write the results of a run that ``header`` describes."""
    record = {"format": "attngeom/implicitization", "version": 1, **header, "results": [r.to_json() for r in results]}
    write_atomic(path, to_json({**record, "digest": digest(record)}))


def read_state(path: Path, header: Mapping[str, Any]) -> list[WeightResult]:
    """The results in a state file of the same run; FormatError if it was edited, InputError if it is of another run."""
    record = check_header(read_json(path), "implicitization", str(path))
    for key, value in header.items():
        if record.get(key) != value:
            raise InputError(
                f"{path} holds a run with {key} = {str(record.get(key))[:60]}, not {value}; give another file"
            )
    if record.get("digest") != digest(record):
        raise FormatError(f"{path}: damaged or edited, its digest does not fit; remove the file and start again")
    try:
        results = [WeightResult.from_json(data) for data in record["results"]]
        if len({(result.degree, result.weight) for result in results}) < len(results):
            raise ValueError("a weight occurs twice")
        return results
    except (KeyError, TypeError, ValueError):
        raise FormatError(f"{path}: damaged results; remove the file and start again") from None
