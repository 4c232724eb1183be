"""Tasks run in child processes that can be killed: one child per thread, reused, replaced when it dies.

:func:`run_batch` is what executors run, here or on another machine. It is the same for threads of this process, for a
pool of processes and for Dask workers, so a budget is enforced in the same way everywhere.

A child reads one task per line on stdin and answers with one line of JSON on stdout. Memory and, as a second line of
defence, CPU time are limited by the kernel. It ends when its stdin closes, that is also when its parent was killed.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attngeom import processes
from attngeom.atlas.identity import identify_code
from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Task, canonical_json
from attngeom.errors import AttnGeomError, InputError
from attngeom.limits.seconds import CHILD_START_SECONDS
from attngeom.limits.shown import FAILURE_CHARACTERS
from attngeom.processes import Say, limit_resources, serve_lines
from attngeom.version import __version__

WORKER = "attngeom.atlas.children"


@dataclass(frozen=True)
class Budget:
    """What one task may use: wall seconds and megabytes of address space beyond an idle process; None is unlimited."""

    seconds: float | None = None
    megabytes: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and not (isinstance(value, (int, float)) and 0 < value < 1e12):
                raise InputError(f"{name} = {str(value)[:40]} given; a positive number is required")


class TaskChild(processes.Child):
    """One process that answers tasks."""

    def __init__(self) -> None:
        super().__init__(WORKER)
        self._loaded: set[str] = set()
        self.is_used = False

    def ask(self, line: str, budget: Budget) -> dict[str, Any]:
        """The outcome of one task: an answer, or a reason why there is none. Kills the process if time runs out."""
        question = Task.from_line(line).question
        if question not in self._loaded:
            # Starting and importing are not the task's fault: they have their own, generous limit.
            if not self.send({"load": question}) or not self.read_line(CHILD_START_SECONDS):
                self.kill()
                return {**self._death(0.0), "reason": "lost"}
            self._loaded.add(question)
        start = time.monotonic()
        if not self.send({"task": line, "seconds": budget.seconds, "megabytes": budget.megabytes}):
            return self._death(time.monotonic() - start)
        reply = self.read_line(budget.seconds)
        elapsed = time.monotonic() - start
        if reply is None:
            self.kill()
            return _failed("time", f"killed after {budget.seconds} s", elapsed)
        if not reply:
            return self._death(elapsed)
        self.is_used = True
        outcome: dict[str, Any] = json.loads(reply)
        if outcome.get("reason") == "memory":
            self.process.wait()
            outcome["detail"] += f" beyond {budget.megabytes} MB"
        return outcome

    def _death(self, elapsed: float) -> dict[str, Any]:
        code = self.process.wait()
        if code == -signal.SIGXCPU:
            return _failed("time", "ended by the kernel's limit of CPU time", elapsed)
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        said = self.last_words(FAILURE_CHARACTERS)
        detail = f"process ended with {name}" + (f": {said}" if said else "")
        return _failed("crash", detail, elapsed)


def _failed(reason: str, detail: str, elapsed: float) -> dict[str, Any]:
    """The outcome of a task whose process cannot report: all we know of its CPU time is the wall time."""
    return {"reason": reason, "detail": detail[:FAILURE_CHARACTERS], "cpu_seconds": elapsed, "seconds": elapsed}


class Stopped(Exception):
    """The crew was stopped: what one of its threads still had to ask is not asked."""


class Crew:
    """The child processes of some threads, which end together."""

    def __init__(self) -> None:
        self._children: set[TaskChild] = set()
        self._lock = threading.Lock()
        self._is_stopped = False

    def join(self) -> None:
        """Let the present thread use children of this crew."""
        _local.crew = self

    def get_child(self) -> TaskChild:
        """The child of the present thread: the one that it had, if that is alive."""
        child: TaskChild | None = getattr(_local, "child", None)
        with self._lock:
            if self._is_stopped:
                raise Stopped
            if child is not None and child.is_alive:
                return child
            if child is not None:
                self._children.discard(child)
                child.close()
            _local.child = new = TaskChild()
            self._children.add(new)
        return new

    def kill(self) -> None:
        """Kill all children; threads that wait for them see a crash at once."""
        with self._lock:
            for child in self._children:
                child.kill()

    def stop(self) -> None:
        """Kill all children for good: no thread starts another one, however much is left of its batch."""
        with self._lock:
            self._is_stopped = True
        self.kill()


_local = threading.local()
_anyone = Crew()
"""Of threads that joined no other crew."""
atexit.register(_anyone.kill)


def get_child() -> TaskChild:
    """The child of the present thread."""
    crew: Crew = getattr(_local, "crew", _anyone)
    return crew.get_child()


def run_batch(lines: list[str], seconds: float | None, megabytes: float | None) -> list[dict[str, Any]]:
    """The outcomes of tasks, given as lines of JSON, each within the budget; takes and returns plain JSON values."""
    budget = Budget(seconds, megabytes)
    return [_run(line, budget) for line in lines]


def _run(line: str, budget: Budget) -> dict[str, Any]:
    child = get_child()
    is_used = child.is_used
    outcome = child.ask(line, budget)
    if is_used and outcome.get("reason") in ("memory", "crash"):
        # What earlier tasks left in that process may be to blame: a fresh one decides.
        outcome = get_child().ask(line, budget)
    return outcome


def address_space() -> int:
    """The bytes of address space that this process uses now; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def answer(task: Task) -> dict[str, Any]:
    """Run one task; what it raises becomes a failure."""
    # The clock of this thread: Linux advances that of the process in ticks as soon as its CPU time is limited.
    start, wall_start = time.thread_time(), time.monotonic()
    try:
        result = get_question(task.question).run(task)
        outcome: dict[str, Any] = {
            "answer": dict(result.answer),
            "evidence": result.evidence,
            "prime": result.prime,
            "certificate": result.certificate,
        }
        canonical_json(outcome)
    except MemoryError:
        outcome = {"reason": "memory", "detail": "an allocation was refused"}
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        outcome = {"reason": "error", "detail": detail[:FAILURE_CHARACTERS]}
    used = {"cpu_seconds": time.thread_time() - start, "seconds": time.monotonic() - wall_start}
    return {**outcome, **used, "version": __version__, "code": identify_code().digest}


def main() -> None:
    """Answer tasks until stdin closes."""
    base = 0

    def handle(line: str, say: Say) -> None:
        nonlocal base
        request = json.loads(line)
        if "load" in request:
            # What a question imports counts neither against its time nor against its memory.
            before = address_space()
            limit_resources(None, None, 0)
            identify_code()
            with suppress(AttnGeomError):
                get_question(request["load"])
            base = base + address_space() - before if base else address_space()
            say({})
            return
        task = Task.from_line(request["task"])
        limit_resources(request["seconds"], request["megabytes"], base)
        outcome = answer(task)
        say(outcome)
        if outcome.get("reason") == "memory":
            # What the task left behind would count against the next one: end, and be replaced.
            os._exit(0)

    serve_lines(handle)
