"""Processes that end with this one: one function for many items in several, and children that can be killed."""

from __future__ import annotations

import ctypes
import importlib
import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from itertools import islice
from queue import SimpleQueue
from typing import Any, TypeVar

from attngeom.errors import InputError
from attngeom.limits.memory import ITEMS_AHEAD
from attngeom.limits.seconds import CHILD_END_SECONDS, CHILD_WATCH_SECONDS
from attngeom.limits.sizes import LOCAL_WORKERS

Item = TypeVar("Item")
Found = TypeVar("Found")
MALLOPT = {-1: 2**31 - 1, -4: 0}
"""Options of glibc: M_TRIM_THRESHOLD, what may lie free at the end of the heap, M_MMAP_MAX, blocks outside of it."""
Say = Callable[[Mapping[str, Any]], None]
"""Sends a line of JSON to the parent."""


def check_workers(workers: int) -> None:
    """InputError unless so many processes can be started."""
    if not 1 <= workers <= LOCAL_WORKERS:
        raise InputError(f"{workers} workers given; 1 to {LOCAL_WORKERS} are possible")


def run_apart(function: Callable[[Item], Found], items: Iterable[Item], workers: int) -> Iterator[Found]:
    """The results for all items, as they are finished, from fresh processes with one thread for linear algebra each.

    The first exception, also an interrupt or the end of the iteration, ends all processes at once.
    """
    with worker_processes(workers) as executor:
        left, waiting = iter(items), set[Future[Found]]()
        while True:
            waiting |= {executor.submit(function, x) for x in islice(left, ITEMS_AHEAD * workers - len(waiting))}
            if not waiting:
                return
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)


class Workers(ProcessPoolExecutor):
    """So many fresh processes with one thread for linear algebra each, which end with this one."""

    def __init__(self, count: int) -> None:
        check_workers(count)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        self.count = count
        super().__init__(count, multiprocessing.get_context("spawn"), _follow_parent)

    def load(self, module: str) -> None:
        """Start the processes now; each loads the module that holds their work."""
        for _ in range(self.count):
            self.submit(_load, module)


@contextmanager
def worker_processes(workers: int) -> Iterator[Workers]:
    """Workers of which an exception ends all at once, and nobody else's processes."""
    others = set(multiprocessing.active_children())
    with Workers(workers) as executor:
        try:
            yield executor
        except BaseException:
            # What runs is not worth waiting for: the run is over.
            executor.shutdown(wait=False, cancel_futures=True)
            ours = set(multiprocessing.active_children()) - others
            for child in ours:
                child.terminate()
            # A thread of the executor collects them as well: the one who comes second is told nothing about their end.
            end = time.monotonic() + CHILD_END_SECONDS
            while ours & set(multiprocessing.active_children()) and time.monotonic() < end:
                time.sleep(CHILD_WATCH_SECONDS)
            raise


def keep_memory() -> None:
    """Let this process keep what its arrays give back, for the next ones: fresh pages are dear, on guests above all.

    The C library returns every large block to the system at once by default. Without glibc nothing changes.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for option, value in MALLOPT.items():
        set_option(option, value)


def _load(module: str) -> None:
    importlib.import_module(module)


def _follow_parent() -> None:
    """An interrupt from the terminal is for the parent, which then ends its children; they do not outlive it."""
    keep_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_it() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_it, daemon=True).start()


class Child:
    """A process that runs ``main`` of a module: it is sent lines of JSON and answers in lines; see :func:`serve_lines`.

    It can be killed with all that it started, and ends when this process does.
    """

    def __init__(self, module: str) -> None:
        paths = os.pathsep.join(filter(None, sys.path))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self._received = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from {module} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
            bufsize=0,
            # An interrupt from the terminal is for the parent, which then ends its children.
            start_new_session=True,
        )

    def send(self, request: Mapping[str, Any]) -> bool:
        """Whether the child could be told."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
        except OSError:
            return False
        return True

    def read_line(self, seconds: float | None) -> bytes | None:
        """One line; b"" if the child ended, None if none came in this time."""
        assert self.process.stdout is not None
        ready = select.poll()  # a file that was opened late may have a number beyond what select() takes
        ready.register(descriptor := self.process.stdout.fileno(), select.POLLIN)
        end = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._received:
            left = None if end is None else 1000 * max(0.0, end - time.monotonic())
            if not ready.poll(left):
                return None
            data = os.read(descriptor, 1 << 16)
            if not data:
                return b""
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    def last_words(self, longest: int) -> str:
        """The end of what it wrote to stderr, in one line."""
        self._errors.seek(0)
        return " ".join(self._errors.read()[-longest:].decode(errors="replace").split())

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """End the process at once, with all that it started."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Kill the process and give back its pipes."""
        self.kill()
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream is not None:
                stream.close()


def serve_lines(answer: Callable[[str, Say], None]) -> None:
    """Be a :class:`Child`: ``answer`` each line of stdin by what it says; end with the parent, even in the middle.

    stdout is kept for the protocol: whatever a library prints goes to stderr.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lines: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        # The parent is gone or wants us to end: there is nobody to answer.
        os._exit(0)

    def say(message: Mapping[str, Any]) -> None:
        print(json.dumps(message), file=replies, flush=True)

    threading.Thread(target=read, daemon=True).start()
    while True:
        answer(lines.get(), say)


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
