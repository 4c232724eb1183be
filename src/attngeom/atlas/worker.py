"""The process in which tasks run: reads one task per line on stdin, answers with one line of JSON on stdout.

It is started by :mod:`attngeom.atlas.children`, which kills it when a task exceeds its time. Memory and, as a second
line of defence, CPU time are limited by the kernel. It ends when its stdin closes, that is also when its parent was
killed.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from attngeom.atlas.identity import identify_code
from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Task, canonical_json
from attngeom.errors import AttnGeomError
from attngeom.version import __version__

MAX_DETAIL = 500


def limit_resources(seconds: float | None, megabytes: float | None, base: int) -> None:
    """Let the kernel refuse memory beyond ``base`` bytes plus the budget, and end the process well after its time."""
    try:
        import resource
    except ImportError:  # not a POSIX system: the parent's clock alone is the limit
        return
    wanted = {
        resource.RLIMIT_AS: None if megabytes is None else base + int(megabytes * 2**20),
        resource.RLIMIT_CPU: None if seconds is None else int(time.process_time() + 4 * seconds) + 2,
    }
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        if value is None or (hard != resource.RLIM_INFINITY and value > hard):
            value = hard
        resource.setrlimit(kind, (value, hard))


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
        outcome = {"reason": "error", "detail": detail[:MAX_DETAIL]}
    used = {"cpu_seconds": time.thread_time() - start, "seconds": time.monotonic() - wall_start}
    return {**outcome, **used, "version": __version__, "code": identify_code().digest}


def serve(replies: TextIO) -> None:
    """Answer tasks until stdin closes."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        # The parent is gone or wants us to end: there is nobody to answer, even in the middle of a task.
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    base = 0
    while True:
        request = json.loads(lines.get())
        if "load" in request:
            # What a question imports counts neither against its time nor against its memory.
            before = address_space()
            limit_resources(None, None, 0)
            identify_code()
            with suppress(AttnGeomError):
                get_question(request["load"])
            base = base + address_space() - before if base else address_space()
            print("{}", file=replies, flush=True)
            continue
        task = Task.from_line(request["task"])
        limit_resources(request["seconds"], request["megabytes"], base)
        outcome = answer(task)
        print(json.dumps(outcome), file=replies, flush=True)
        if outcome.get("reason") == "memory":
            # What the task left behind would count against the next one: end, and be replaced.
            os._exit(0)


def main() -> None:
    """Keep stdout for the protocol: whatever a library prints goes to stderr."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(replies)


if __name__ == "__main__":
    main()
