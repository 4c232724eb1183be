"""What the atlas costs beside the mathematics: overhead per task, speed-up with workers, throughput of the store.

The peer is the bare ``concurrent.futures.ProcessPoolExecutor``, which has no budgets, no store and no resume, on the
same tasks in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
# Child processes and Dask workers find the question of this file by its name.
os.environ["ATTNGEOM_QUESTIONS"] = "benchmarks.atlas"
PLACES = [str(ROOT), str(ROOT / "benchmarks")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*PLACES, os.environ.get("PYTHONPATH")]))
sys.path[:0] = PLACES

from attngeom.atlas import Answer, Fact, FactStore, Sweep, Task, dask_executor, local_executor, run_sweep  # noqa: E402
from attngeom.atlas.children import answer, run_batch  # noqa: E402
from attngeom.atlas.questions import Question, get_question, register  # noqa: E402
from contract import emit, require  # noqa: E402

DIMENSIONS = {"layers": 2, "widths": [3, 4, 5], "tokens": 3, "kinds": ["lightning", "softmax"]}


class Nothing(Question):
    """Tasks without work: whatever time they take is overhead."""

    name = "nothing"

    def tasks(self, table: Mapping[str, Any], seed: int) -> Iterator[Task]:
        for index in range(table["count"]):
            yield Task(self.name, {"widths": [3, 3], "attention": [2], "tokens": 3}, {"index": index}, seed)

    def size(self, table: Mapping[str, Any]) -> int:
        return int(table["count"])

    def cost(self, task: Task) -> float:
        return 1e-3

    def run(self, task: Task) -> Answer:
        return Answer({"index": task.parameters["index"]}, "proven")


register(Nothing())


def run_here(line: str) -> dict[str, Any]:
    """The outcome of one task in this process, without a budget."""
    return answer(Task.from_line(line))


def check_outcomes(lines: list[str], outcomes: list[dict[str, Any]], known: dict[str, Any] | None = None) -> None:
    """Every task has an answer, and it is the known one."""
    require(len(outcomes) == len(lines), f"{len(lines)} tasks have {len(outcomes)} outcomes")
    for line, outcome in zip(lines, outcomes):
        require("answer" in outcome, f"a task was answered: {outcome.get('detail')}")
        task = Task.from_line(line)
        expected = {"index": task.parameters["index"]} if task.question == "nothing" else (known or {})[line]
        require(outcome["answer"] == expected, f"the answer of {task} is {expected}")


def start(executor: Any, workers: int) -> None:
    """Start all processes of an executor before the clock runs, and see that they answer."""
    line = Task("nothing", {}, {"index": -1}).to_line()
    for future in [executor.submit(run_batch, [line], None, None) for _ in range(4 * workers)]:
        check_outcomes([line], future.result())


def atlas_seconds(sweep: Sweep, workers: int, folder: Path, known: dict[str, Any] | None = None) -> tuple[float, float]:
    """Wall time of a sweep into a new store, with running workers; CPU time of this process, the coordinator."""
    path = folder / f"{time.monotonic_ns()}.db"
    with FactStore(path) as store, local_executor(workers) as (executor, count):
        start(executor, workers)
        begin = time.process_time()
        report, used = run_sweep(sweep, store, executor, count), time.process_time() - begin
        require(report.is_complete and not store.failures(), "no task of the sweep failed")
        stored = {fact.task.to_line(): {"answer": dict(fact.result.answer)} for fact in store.facts()}
    lines = [task.to_line() for task in sweep.tasks()]
    require(report.new == len(stored) == len(lines), "the store has a fact for every task")
    check_outcomes(lines, [stored[line] for line in lines], known)
    return report.seconds, used


def pool_seconds(tasks: list[Task], workers: int, chunk: int, known: dict[str, Any] | None = None) -> float:
    """Wall time of the same tasks on a bare process pool."""
    lines = [task.to_line() for task in tasks]
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(run_here, lines[: 4 * workers]))
        begin = time.monotonic()
        outcomes = list(pool.map(run_here, lines, chunksize=chunk))
        taken = time.monotonic() - begin
    check_outcomes(lines, outcomes, known)
    return taken


def best(measure: Callable[[], float], rounds: int) -> float:
    return min(measure() for _ in range(rounds))


def show(name: str, value: str) -> None:
    print(f"{name:<58}{value:>22}", flush=True)


def measure_overhead(count: int, rounds: int, folder: Path) -> None:
    sweep = Sweep((("nothing", {"count": count}),))
    tasks = list(sweep.tasks())
    runs = [atlas_seconds(sweep, 1, folder) for _ in range(rounds)]
    ours = min(wall for wall, _ in runs) / count
    single = best(lambda: pool_seconds(tasks, 1, 1), rounds) / count
    chunked = best(lambda: pool_seconds(tasks, 1, 100), rounds) / count
    emit("overhead per task", "one worker", 1e6 * ours, unit="µs")
    emit("overhead per task", "one worker", 1e6 * single, "bare process pool", unit="µs")
    emit("overhead per task", "one worker", 1e6 * chunked, "bare pool, chunks of 100", unit="µs")
    show("overhead per task, atlas (budgets, store, digests)", f"{1e6 * ours:,.0f} µs")
    show("overhead per task, bare pool, one by one", f"{1e6 * single:,.0f} µs")
    show("overhead per task, bare pool, chunks of 100", f"{1e6 * chunked:,.0f} µs")
    show("CPU time of the coordinator per task", f"{1e6 * min(cpu for _, cpu in runs) / count:,.0f} µs")
    show("ratio atlas / bare pool, one by one and chunks", f"{ours / single:.2f}, {ours / chunked:.2f}")


def measure_speed_up(count: int, rounds: int, folder: Path) -> None:
    question = get_question("dimension")
    total = sum(1 for _ in question.tasks(DIMENSIONS, 0))
    tasks = list(islice(question.tasks(DIMENSIONS, 0), 0, None, max(1, total // count)))
    begin = time.thread_time()
    outcomes = {task.to_line(): run_here(task.to_line()) for task in tasks}
    work = time.thread_time() - begin
    require(all("answer" in outcome for outcome in outcomes.values()), "every dimension is answered")
    known = {line: outcome["answer"] for line, outcome in outcomes.items()}
    theorems = [x["formula"]["value"] == x["dimension"] for x in known.values() if (x["formula"] or {}).get("applies")]
    require(theorems and all(theorems), "dimensions are those of the formulas that apply")

    class Some(Sweep):
        def tasks(self) -> Iterator[Task]:
            return iter(tasks)

    sweep = Some((("dimension", {}),))
    runs = {n: [atlas_seconds(sweep, n, folder, known) for _ in range(rounds)] for n in (1, 2)}
    times = {n: min(wall for wall, _ in found) for n, found in runs.items()}
    coordinator = min(cpu for _, cpu in runs[2]) / len(tasks)
    pool = {n: best(lambda n=n: pool_seconds(tasks, n, 20, known), rounds) for n in (1, 2)}
    for n in (1, 2):
        emit("dimensions of many networks", f"{n} workers", times[n], size=n, unit="wall s")
        emit("dimensions of many networks", f"{n} workers", pool[n], "bare process pool", size=n, unit="wall s")
        emit("dimensions of many networks", f"{n} workers", work / n, "limit", size=n, unit="wall s")
    show(f"{len(tasks)} dimensions in this process, CPU", f"{work:.2f} s, {1e3 * work / len(tasks):.1f} ms each")
    show("CPU time of the coordinator per dimension", f"{1e6 * coordinator:,.0f} µs")
    show("atlas with 1 and 2 workers", f"{times[1]:.2f} s, {times[2]:.2f} s")
    show("bare pool with 1 and 2 workers", f"{pool[1]:.2f} s, {pool[2]:.2f} s")
    show("speed-up from 1 to 2 workers, atlas and bare pool", f"{times[1] / times[2]:.2f}, {pool[1] / pool[2]:.2f}")
    show("ratio atlas / bare pool with 1 and 2 workers", f"{times[1] / pool[1]:.2f}, {times[2] / pool[2]:.2f}")


def measure_store(count: int, folder: Path) -> None:
    question = get_question("dimension")
    task = next(islice(question.tasks(DIMENSIONS, 0), 200, None))
    result = question.run(task)
    for size in (1, 10, 100, 1000):
        path = folder / f"store{size}.db"
        facts = [Fact(Task("dimension", task.architecture, {}, seed), result, 0.1) for seed in range(count)]
        facts = facts[: max(size, min(count, 40 * size))]
        with FactStore(path) as store:
            begin = time.monotonic()
            for first in range(0, len(facts), size):
                store.add(facts[first : first + size])
            seconds = time.monotonic() - begin
            require(store.count() == len(facts), "every fact is stored")
        emit("facts stored per second", f"{size} per commit", len(facts) / seconds, unit="facts/s")
        show(f"facts with certificate stored per second, {size} per commit", f"{len(facts) / seconds:,.0f}")
    begin = time.monotonic()
    with FactStore(path) as store:
        opened = time.monotonic() - begin
        begin = time.monotonic()
        number = sum(1 for _ in store.facts())
        read = time.monotonic() - begin
    require(number == len(facts), "every fact is read back")
    show("bytes per fact with certificate", f"{path.stat().st_size / number:,.0f}")
    show(f"opening for writing, with check, {number:,} facts", f"{1e3 * opened:,.0f} ms")
    show("facts read and matched with their digests per second", f"{number / read:,.0f}")


def measure_dask(count: int, folder: Path) -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        show("Dask", "not installed")
        return
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    shared = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-show", *shared]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *shared]
    processes = [subprocess.Popen(scheduler, **quiet)]
    try:
        while not file.exists():
            time.sleep(0.05)
        processes += [subprocess.Popen(worker, **quiet) for _ in range(2)]
        address = json.loads(file.read_text())["address"]
        with dask_executor(address) as (executor, workers):
            while workers() < 2:
                time.sleep(0.05)
            start(executor, 2)
            line = Task("nothing", {}, {"index": 0}).to_line()
            begin = time.monotonic()
            for future in [executor.submit(run_batch, [line], None, None) for _ in range(count)]:
                check_outcomes([line], future.result())
            seconds = time.monotonic() - begin
        show("batches per second through a Dask scheduler", f"{count / seconds:,.0f}")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, one round, no Dask")
    quick = parser.parse_args().quick
    rounds = 1 if quick else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_overhead(500 if quick else 5000, rounds, folder)
        measure_speed_up(200 if quick else 1500, rounds, folder)
        measure_store(1000 if quick else 20000, folder)
        if not quick:
            measure_dask(1000, folder)


if __name__ == "__main__":
    main()
