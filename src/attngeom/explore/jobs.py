"""Long work in processes of their own: each has a budget of time and memory, tells its progress, can be ended.

A job belongs to the window that asks for it: nobody asking for a while ends it, so a closed window leaves nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from attngeom.errors import InputError
from attngeom.explore.markup import Html, refusal
from attngeom.explore.shelf import Shelf

BUDGET_SECONDS = 60.0
MOST_AT_ONCE = 3
"""Jobs that run at the same time; more are refused, so that one page cannot take the machine."""
FORGOTTEN_SECONDS = 20.0
"""A job that no window asks about for this long is ended."""
WATCH_SECONDS = 0.2

Stage = Literal["running", "done", "failed", "cancelled", "out of time"]


@dataclass(eq=False)
class Job:
    """One process, what it last said of its progress, and what it left."""

    process: subprocess.Popen[bytes]
    budget: float
    started: float = field(default_factory=time.monotonic)
    asked: float = field(default_factory=time.monotonic)
    stage: Stage = "running"
    done: int = 0
    total: int = 0
    answer: str = ""
    seconds: float = 0.0

    def end(self, stage: Stage, answer: Html) -> None:
        """Leave the stage "running", once."""
        if self.stage == "running":
            self.stage, self.answer, self.seconds = stage, answer, time.monotonic() - self.started
            if self.process.poll() is None:
                self.process.kill()

    def to_json(self) -> dict[str, Any]:
        running = self.stage == "running"
        seconds = time.monotonic() - self.started if running else self.seconds
        return {
            "stage": self.stage,
            "done": self.done,
            "total": self.total,
            "seconds": round(seconds, 2),
            "budget": self.budget,
            "html": self.answer,
        }


class Jobs:
    """The jobs of a server; a thread reads each one, another ends those that are over time or forgotten."""

    def __init__(self, budget: float = BUDGET_SECONDS) -> None:
        self._budget = budget
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def start(self, view: str, name: str, query: Mapping[str, str], shelf: Shelf) -> str:
        """Start the job ``name`` of a view for a state, and return the key to ask for it."""
        with self._lock:
            if sum(job.stage == "running" for job in self._jobs.values()) >= MOST_AT_ONCE:
                raise InputError(f"{MOST_AT_ONCE} long computations are running; wait for one, or cancel one")
            request = {"view": view, "job": name, "query": dict(query), "files": shelf.to_json(query.values())}
            process = subprocess.Popen(
                [sys.executable, "-m", "attngeom.explore.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            key = secrets.token_hex(12)
            job = self._jobs[key] = Job(process, self._budget)
            for old in [k for k, j in self._jobs.items() if j.stage != "running"][:-32]:
                del self._jobs[old]
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        threading.Thread(target=self._read, args=(job,), daemon=True).start()
        return key

    def _read(self, job: Job) -> None:
        """Take the lines of a worker: progress, and at last its answer."""
        assert job.process.stdout is not None
        with job.process.stdout as lines:
            for line in lines:
                message = json.loads(line)
                if "html" in message:
                    job.end("done" if message["done"] else "failed", Html(message["html"]))
                else:
                    job.done, job.total = message["progress"]
        code = job.process.wait()
        job.end("failed", refusal(f"the computation ended without an answer (exit code {code}); give a smaller one"))

    def _watch(self) -> None:
        while not self._closed.wait(WATCH_SECONDS):
            now = time.monotonic()
            for job in list(self._jobs.values()):
                if now - job.started > job.budget:
                    message = f"not finished within {job.budget:g} s; give a smaller one, or run the command below"
                    job.end("out of time", refusal(message))
                elif now - job.asked > FORGOTTEN_SECONDS:
                    job.end("cancelled", refusal("cancelled: its window was closed"))

    def find(self, key: str) -> Job:
        """The job of a key, which is thereby not forgotten."""
        if key not in self._jobs:
            raise InputError("this computation is no longer known; start it again")
        self._jobs[key].asked = time.monotonic()
        return self._jobs[key]

    def cancel(self, key: str) -> Job:
        """End a job."""
        job = self.find(key)
        job.end("cancelled", refusal("cancelled"))
        return job

    def close(self) -> None:
        """End all jobs."""
        self._closed.set()
        for job in list(self._jobs.values()):
            job.end("cancelled", refusal("cancelled: the server was stopped"))
