"""Long work in processes of their own: each has a budget of time and memory, tells its progress, can be ended.

A job belongs to the window that asks for it: nobody asking for a while ends it, so a closed window leaves nothing.
Its process reads the request on stdin, and writes lines of progress and then the answer on stdout.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from attngeom.errors import AttnGeomError, InputError
from attngeom.explore.controls import read_state
from attngeom.explore.pages import refusal
from attngeom.explore.shelf import Shelf, ShelfItem
from attngeom.explore.views import find_view
from attngeom.limits.memory import JOB_MEGABYTES, JOBS_AT_ONCE
from attngeom.limits.seconds import JOB_FORGOTTEN_SECONDS, JOB_SECONDS, JOB_WATCH_SECONDS, PROGRESS_SECONDS
from attngeom.processes import Child, Say, limit_resources, serve_lines

Stage = Literal["running", "done", "failed", "cancelled", "out of time"]


@dataclass(eq=False)
class Job:
    """One process, what it last said of its progress, and what it left."""

    child: Child
    budget: float
    started: float = field(default_factory=time.monotonic)
    asked: float = field(default_factory=time.monotonic)
    stage: Stage = "running"
    done: int = 0
    total: int = 0
    html: str = ""
    seconds: float = 0.0

    def end(self, stage: Stage, html: str) -> None:
        """Leave the stage "running", once."""
        if self.stage == "running":
            self.stage, self.html, self.seconds = stage, html, time.monotonic() - self.started
        self.child.kill()

    def follow(self) -> None:
        """Take the lines of the process, progress and at last its answer, until it ends or its time is over."""
        while self.stage == "running":
            line, now = self.child.read_line(JOB_WATCH_SECONDS), time.monotonic()
            if line:
                message = json.loads(line)
                self.done, self.total = message.get("progress", (self.done, self.total))
                if "html" in message:
                    self.end("done" if message["done"] else "failed", message["html"])
            elif line is not None:
                words = f"ended without an answer (exit code {self.child.process.wait()}); give a smaller one"
                self.end("failed", refusal(words))
            if now - self.started > self.budget:
                words = f"not finished within {self.budget:g} s; give a smaller one, or run the command below"
                self.end("out of time", refusal(words))
            if now - self.asked > JOB_FORGOTTEN_SECONDS:
                self.end("cancelled", refusal("cancelled: its window was closed"))
        self.child.close()

    def to_json(self) -> dict[str, Any]:
        if self.stage == "running":
            self.seconds = time.monotonic() - self.started
        return {name: getattr(self, name) for name in ("stage", "done", "total", "budget", "html", "seconds")}


class Jobs:
    """The jobs of a server; a thread follows each one."""

    def __init__(self, budget: float = JOB_SECONDS) -> None:
        self._budget = budget
        self._jobs: dict[str, Job] = {}

    def start(self, view: str, name: str, texts: Mapping[str, str], shelf: Shelf) -> str:
        """Start the job ``name`` of a view for a state, and return the key to ask for it."""
        if sum(job.stage == "running" for job in self._jobs.values()) >= JOBS_AT_ONCE:
            raise InputError(f"{JOBS_AT_ONCE} long computations are running; wait for one, or cancel one")
        for old in [key for key, job in self._jobs.items() if job.stage != "running"][:-32]:
            del self._jobs[old]
        child = Child("attngeom.explore.jobs")
        files = [asdict(shelf.entries[key]) for key in texts.values() if key in shelf.entries]
        child.send({"view": view, "job": name, "texts": dict(texts), "files": files})
        key = secrets.token_hex(12)
        self._jobs[key] = job = Job(child, self._budget)
        threading.Thread(target=job.follow, daemon=True).start()
        return key

    def find(self, key: str) -> Job:
        """The job of a key, which is thereby not forgotten."""
        if key not in self._jobs:
            raise InputError("this computation is no longer known; start it again")
        self._jobs[key].asked = time.monotonic()
        return self._jobs[key]

    def close(self) -> None:
        """End all jobs."""
        for job in list(self._jobs.values()):
            job.end("cancelled", refusal("cancelled: the server was stopped"))


def answer(line: str, say: Say) -> None:
    """Answer one request; errors of the user become one line of the page, others end the process."""
    # The server ends a job by its clock; the limit of CPU time ends one that has outlived its server.
    limit_resources(JOB_SECONDS, JOB_MEGABYTES, 0)
    last = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            say({"progress": [done, total]})

    request = json.loads(line)
    view = find_view(request["view"])
    shelf = Shelf({item["key"]: ShelfItem(**item) for item in request["files"]})
    try:
        state = read_state(view.controls, request["texts"], shelf)
        say({"html": view.work(request["job"], state, progress), "done": True})
    except (AttnGeomError, OSError) as error:
        say({"html": refusal(error), "done": False})
    except MemoryError:
        say({"html": refusal(f"more than {JOB_MEGABYTES >> 10} GB are needed; give a smaller one"), "done": False})


def main() -> None:
    """Answer requests until the server ends this process."""
    serve_lines(answer)
