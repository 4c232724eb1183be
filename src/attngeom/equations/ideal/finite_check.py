"""The finite check beside Theorem 6: every module that Theorem 5 leaves open, by highest weight vectors.

Most candidates are decided by their multiplicities alone (:func:`~attngeom.equations.ideal.completeness.is_multiple`).
The others are computed one by one, here or in several processes; a run keeps their results.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

from attngeom.equations.ideal.answers import CompletenessCheck, CompletenessResult
from attngeom.equations.ideal.completeness import (
    all_candidates,
    check_reach,
    check_theorem,
    complete,
    generator_bound,
    is_multiple,
)
from attngeom.equations.ideal.degrees import OnWeight, Run
from attngeom.equations.ideal.formulas import effective_rank
from attngeom.equations.ideal.highest_weights import HighestWeightEngine
from attngeom.equations.ideal.limits import Limits, OverBudget, check
from attngeom.equations.ideal.records import WeightResult
from attngeom.equations.variety import Variety
from attngeom.exact.partitions import Weight
from attngeom.processes import run_apart

Module = tuple[int, Weight]


def check_complete(
    d: int,
    a: int,
    targets: int | None = None,
    *,
    seed: int = 0,
    progress: OnWeight | None = None,
    limits: Limits | None = None,
    run: Run | None = None,
    workers: int = 1,
) -> CompletenessResult:
    """Theorem 6 with a finite check beside it, of every module that could hold a generator of degree 5 or more.

    The modules have at most min(a, d, targets) rows in μ and two more in λ, so the cost depends on the attention width,
    however large d is. Results of ``run``, if it is by highest weights, are used, and new ones are kept there;
    ``workers`` are processes. ArithmeticError if a module holds a generator, which would contradict the theorem.

    >>> found = check_complete(100, 2)
    >>> found.is_checked, found.degree, found.check.bound
    (True, 4, 6)
    """
    targets = d if targets is None else targets
    rank, rows = effective_rank(d, a, targets), check_reach(d, a, targets)
    # Weight spaces are not modules: a run over them keeps its own results.
    keeper = run if run is not None and run.method == "highest" else Run(Variety(d, a, targets=targets), 1, seed=seed)
    limits = limits or Limits()
    start = _cpu_seconds()
    listed: dict[int, list[Weight]] = {}
    waiting: dict[int, int] = {}
    results: list[WeightResult] = []
    is_finished = True
    with limits.hold():
        try:
            listed = all_candidates(rows, rank)
            modules = [(degree, w) for degree, weights in listed.items() for w in weights if not is_multiple(*w)]
            total = {degree: sum(n == degree for n, _ in modules) for degree in listed}
            waiting = dict(total)
            for result in _results(modules, keeper, limits, workers):
                results.append(result)
                waiting[result.degree] -= 1
                if progress is not None:
                    progress(result.degree, total[result.degree] - waiting[result.degree], total[result.degree])
            check_theorem()
        except OverBudget:
            is_finished = False
    keeper.save()
    found = CompletenessCheck(
        bound=generator_bound(d, a, targets),
        checked=tuple((degree, len(listed[degree])) for degree, left in waiting.items() if not left),
        computed=len(results),
        new=tuple(sorted((r.degree, r.weight, extra) for r in results if (extra := r.ideal_dimension - r.generated))),
        is_proven=is_finished and all(r.is_rank_proven and r.is_generated_proven for r in results),
        prime=keeper.prime,
        seed=keeper.seed,
        seconds=_cpu_seconds() - start,
    )
    if found.is_proven and found.new:
        raise ArithmeticError(f"new generators {found.new}; Theorem 6 of docs/theorems/completeness.md excludes them")
    return replace(complete(d, a, targets), check=found, seed=keeper.seed)


def _results(modules: list[Module], run: Run, limits: Limits, workers: int) -> Iterator[WeightResult]:
    """The modules at the full attention width, which agree with those of the run where μ has no more than a rows."""
    known = {module: run.stored(*module) for module in modules}
    yield from (result for result in known.values() if result is not None)
    left = [module for module, result in known.items() if result is None]
    d, targets = (max((len(shapes[i]) for _, shapes in left), default=1) for i in (0, 1))
    if workers > 1:
        share = limits if limits.megabytes is None else replace(limits, megabytes=limits.megabytes / workers)
        compute = partial(_compute_apart, share, d, targets, run.prime, run.seed)
        found: Iterable[WeightResult] = run_apart(compute, left, workers)
    else:
        found = map(partial(_compute, HighestWeightEngine(d, targets, run.prime, run.seed)), left)
    for result in found:
        run.keep(result)
        yield result


def _compute(engine: HighestWeightEngine, module: Module) -> WeightResult:
    """One module; what modules of lower degrees needed is dropped."""
    check()
    degree, weight = module
    engine.forget(degree - 2)
    return engine.run(degree, weight, engine.targets)


def _compute_apart(limits: Limits, d: int, targets: int, prime: int, seed: int, module: Module) -> WeightResult:
    """One module, in a process that keeps its engine for the next one."""
    with limits.hold():
        return _compute(_engine(d, targets, prime, seed), module)


_engine = lru_cache(maxsize=1)(HighestWeightEngine)


def _cpu_seconds() -> float:
    """CPU time of this process and of those that it started and saw end."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
