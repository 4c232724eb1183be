"""One function for many items in several processes, which end with this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from typing import TypeVar

from attngeom.errors import InputError

MAX_WORKERS = 256
AHEAD = 4
"""Items that are taken up for each process: one that it works on, others that wait."""
Item = TypeVar("Item")
Found = TypeVar("Found")


def check_workers(workers: int) -> None:
    """InputError unless so many processes can be started."""
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"{workers} workers given; 1 to {MAX_WORKERS} are possible")


def run_apart(function: Callable[[Item], Found], items: Iterable[Item], workers: int) -> Iterator[Found]:
    """The results for all items, as they are finished, from fresh processes with one thread for linear algebra each.

    The first exception, also an interrupt or the end of the iteration, ends all processes at once.
    """
    check_workers(workers)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _follow_parent) as executor:
        try:
            left, waiting = iter(items), set[Future[Found]]()
            while True:
                waiting |= {executor.submit(function, x) for x in islice(left, AHEAD * workers - len(waiting))}
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BaseException:
            # What runs is not worth waiting for: the run is over.
            executor.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def _follow_parent() -> None:
    """An interrupt from the terminal is for the parent, which then ends its children; they do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_it() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_it, daemon=True).start()
