"""Running a sweep on an executor: cuts what is pending into batches, keeps the executor busy, stores what comes back.

The coordinator is the only writer of the store. Whatever kills it or the workers, the store holds every batch that was
committed, and the next run takes up the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from attngeom.atlas.children import Budget, run_batch
from attngeom.atlas.identity import identify_code
from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Answer, Fact, Task, TaskFailure
from attngeom.atlas.store import FactStore
from attngeom.atlas.sweep import Pending, Sweep, make_plan
from attngeom.errors import AttnGeomError
from attngeom.limits.memory import BATCH_TASKS, BATCHES_IN_FLIGHT
from attngeom.limits.seconds import BATCH_SECONDS, POLL_SECONDS, WORKER_SECONDS
from attngeom.limits.trials import LOST_BATCHES


@dataclass(frozen=True)
class Progress:
    """How far a run is: tasks done and in all, failures, the rate, and the seconds until the expected end."""

    done: int
    total: int
    failures: int
    tasks_per_second: float
    seconds_left: float | None


@dataclass(frozen=True)
class RunReport:
    """What one run did. ``known`` facts were there before; ``skipped`` tasks failed in an earlier run."""

    new: int
    known: int
    skipped: int
    failures: int
    contradictions: int
    seconds: float
    cpu_seconds: float

    @property
    def is_complete(self) -> bool:
        """Whether the store now holds every fact of the sweep, without contradiction."""
        return not (self.skipped or self.failures or self.contradictions)


class WorkersLost(AttnGeomError):
    """The executor gave up: all workers or the scheduler are gone."""


class _Queue:
    """Pending tasks, cut into batches by estimated cost; the estimates are corrected by what tasks really took."""

    def __init__(self, pending: Sequence[Pending]) -> None:
        self._pending = pending
        self._next = 0
        self._expected: dict[str, float] = {}
        self._taken: dict[str, float] = {}

    def take(self, workers: int) -> list[Pending]:
        """The next batch: tasks that take about BATCH_SECONDS together, longer with many workers; no group is split."""
        batch: list[Pending] = []
        seconds = 0.0
        wanted = max(BATCH_SECONDS, WORKER_SECONDS * workers)
        for item in self._pending[self._next : self._next + BATCH_TASKS]:
            is_free = not batch or (item.group is not None and item.group == batch[-1].group)
            if not is_free and seconds >= wanted:
                break
            seconds += item.cost * self.factor(item.question)
            if not is_free and seconds > 2 * wanted:
                break
            batch.append(item)
        self._next += len(batch)
        return batch

    def learn(self, batch: Sequence[Pending], outcomes: Sequence[dict[str, Any]]) -> None:
        for item, outcome in zip(batch, outcomes):
            if outcome.get("reason") == "lost":
                continue
            name = item.question
            # Recent tasks count more: costs late in a sweep are off by another factor than early ones.
            self._expected[name] = 0.98 * self._expected.get(name, 0.0) + item.cost
            self._taken[name] = 0.98 * self._taken.get(name, 0.0) + outcome["seconds"]

    def factor(self, name: str) -> float:
        expected = self._expected.get(name, 0.0)
        return min(1e3, max(1e-3, self._taken[name] / expected)) if expected else 1.0

    def overall_factor(self) -> float:
        expected = sum(self._expected.values())
        return sum(self._taken.values()) / expected if expected else 1.0


def run_sweep(
    sweep: Sweep,
    store: FactStore,
    executor: Executor,
    workers: Callable[[], int],
    retry_failed: bool = False,
    budget: Budget | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> RunReport:
    """Compute every fact of the sweep that the store lacks, on any executor; ``workers`` says how many it has now.

    Facts are written as they come, each batch in one transaction; sums are added at the end. The result is the same
    for every executor and every order: facts depend on their tasks alone.
    """
    start = time.monotonic()
    plan = make_plan(sweep, store, retry_failed)
    queue = _Queue(plan.pending)
    limits = budget or sweep.budget
    flying: dict[Future[list[dict[str, Any]]], list[Pending]] = {}
    report = RunReport(0, plan.known, plan.failed, 0, 0, 0.0, 0.0)
    done, cost_done, lost = 0, 0.0, 0
    total_cost = plan.cost
    try:
        while True:
            available = max(1, workers())
            while len(flying) < BATCHES_IN_FLIGHT * available and (batch := queue.take(available)):
                lines = [item.line for item in batch]
                flying[executor.submit(run_batch, lines, limits.seconds, limits.megabytes)] = batch
            if not flying:
                break
            for future in wait(flying, POLL_SECONDS, return_when=FIRST_COMPLETED).done:
                batch = flying.pop(future)
                outcomes = _outcomes(future, len(batch))
                queue.learn(batch, outcomes)
                report = _store_batch(store, batch, outcomes, report)
                lost = lost + 1 if all(outcome.get("reason") == "lost" for outcome in outcomes) else 0
                if lost >= LOST_BATCHES:
                    raise WorkersLost(
                        f"{lost} batches in a row were lost ({outcomes[0]['detail'][:200]}); what was stored is kept:"
                        " repair the workers and run again with --retry-failed"
                    )
                done, cost_done = done + len(batch), cost_done + sum(item.cost for item in batch)
            if progress is not None:
                elapsed = time.monotonic() - start
                left = (total_cost - cost_done) * queue.overall_factor() / available
                bad = report.failures + report.contradictions
                progress(Progress(done, len(plan.pending), bad, done / elapsed, left))
    finally:
        for future in flying:
            future.cancel()
    summed = add_sums(sweep, store)
    return replace(report, new=report.new + summed, seconds=time.monotonic() - start)


def _outcomes(future: Future[list[dict[str, Any]]], size: int) -> list[dict[str, Any]]:
    """What a batch returned; if its worker died again and again, failures that say so."""
    try:
        return [_believed(outcome) for outcome in future.result()]
    except CancelledError:
        raise WorkersLost(
            "the workers or the scheduler went away; what was stored is kept: start them and run again"
        ) from None
    except AttnGeomError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"[:500]
        return [{"reason": "lost", "detail": detail, "cpu_seconds": 0.0, "seconds": 0.0}] * size


def _believed(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome of the code of this process; what other code answered, if files were changed, is a failure."""
    if "reason" in outcome or outcome.get("code") == identify_code().digest:
        return outcome
    detail = f"answered by version {str(outcome.get('version'))[:40]} with other files than those of this process"
    return {"reason": "lost", "detail": detail, **{key: outcome[key] for key in ("cpu_seconds", "seconds")}}


def _store_batch(
    store: FactStore, batch: Sequence[Pending], outcomes: Sequence[dict[str, Any]], report: RunReport
) -> RunReport:
    facts, failures = [], []
    for item, outcome in zip(batch, outcomes):
        task, seconds = Task.from_line(item.line), round(outcome["cpu_seconds"], 6)
        if "reason" in outcome:
            failures.append(TaskFailure(task, outcome["reason"], outcome["detail"], seconds))
        else:
            result = Answer(outcome["answer"], outcome["evidence"], outcome["prime"], outcome["certificate"])
            facts.append(Fact(task, result, seconds, outcome["version"]))
    added = store.add(facts, failures)
    return replace(
        report,
        new=report.new + added.new,
        failures=report.failures + len(failures),
        contradictions=report.contradictions + len(added.contradictions),
        cpu_seconds=report.cpu_seconds + sum(outcome["cpu_seconds"] for outcome in outcomes),
    )


def add_sums(sweep: Sweep, store: FactStore) -> int:
    """Store the facts that follow from stored ones; returns how many are new."""
    new = 0
    for task in sweep.sums():
        if store.known_keys([task.key]):
            continue
        question = get_question(task.question)
        parts = question.parts(task)
        facts = store.get(parts)
        if len(facts) == len(parts):
            start = time.process_time()
            result = question.combine(task, facts)
            new += store.add([Fact(task, result, round(time.process_time() - start, 6))]).new
    return new
