"""The process in which tasks run: reads one task per line on stdin, answers with one line of JSON on stdout.

It is started by :mod:`attngeom.atlas.children`, which kills it when a task exceeds its time. Memory and, as a second
line of defence, CPU time are limited by the kernel. It ends when its stdin closes, that is also when its parent was
killed.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from attngeom.atlas.identity import identify_code
from attngeom.atlas.questions import get_question
from attngeom.atlas.records import Task, canonical_json
from attngeom.errors import AttnGeomError
from attngeom.limits.shown import FAILURE_CHARACTERS
from attngeom.processes import Say, limit_resources, serve_lines
from attngeom.version import __version__


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
