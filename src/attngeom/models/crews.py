"""Layers in several processes, or on a cluster: each worker has one layer in memory at a time.

What is sent to a worker is the description of a model and the places of its files, never weights; a model in memory
cannot be sent, and its layers are worked on here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor, as_completed, wait
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from attngeom.errors import AttnGeomError, InputError
from attngeom.limits.seconds import LAYERS_END_SECONDS
from attngeom.processes import run_apart, worker_processes

Crew = int | Executor
"""So many processes on this machine, 1 for this one; or any executor, such as that of a Dask cluster."""
CLUSTER_ERRORS = CancelledError, OSError, RuntimeError
Progress = Callable[[int, int], None]
Found = TypeVar("Found")


class CrewLost(InputError):
    """The workers or the scheduler of a cluster are gone; layers that were written are kept."""


@contextmanager
def hired(crew: Crew) -> Iterator[Crew]:
    """The same crew for several calls of `each_layer`: processes are started once, and end with the work."""
    if isinstance(crew, Executor) or crew == 1:
        yield crew
        return
    with worker_processes(crew) as executor:
        yield executor


def each_layer(
    work: Callable[..., Found], items: Sequence[tuple[Any, ...]], crew: Crew = 1, progress: Progress | None = None,
    stop: Callable[[Found], bool] | None = None,
) -> list[Found]:  # fmt: skip
    """``work(*item)`` for every item, in the order of the items; ``work`` is a function of a module.

    At the first result for which ``stop`` holds the rest is left out: what is done by then is returned.

    >>> each_layer(divmod, [(7, 2), (9, 4)])
    [(3, 1), (2, 1)]
    """
    results: dict[int, Found] = {}
    with closing(_finished(work, items, crew)) as finished:
        for number, result in finished:
            results[number] = result
            if progress is not None:
                progress(len(results), len(items))
            if stop is not None and stop(result):
                break
    return [results[number] for number in sorted(results)]


def _finished(
    work: Callable[..., Found], items: Sequence[tuple[Any, ...]], crew: Crew
) -> Generator[tuple[int, Found], None, None]:
    if (crew == 1 and not isinstance(crew, Executor)) or len(items) < 2 or not _can_be_sent(items[0]):
        yield from ((number, work(*item)) for number, item in enumerate(items))
        return
    packed = [(work, number, item) for number, item in enumerate(items)]
    if not isinstance(crew, Executor):
        yield from run_apart(_run, packed, min(crew, len(items)))
        return
    # A disk that is full is no lost worker: only those of a cluster are lost with errors of the system.
    lost = (CancelledError, BrokenExecutor) if isinstance(crew, ProcessPoolExecutor) else CLUSTER_ERRORS
    futures = [crew.submit(_run, item) for item in packed]
    try:
        for future in as_completed(futures):
            yield future.result()
    except AttnGeomError:
        # What still runs would write into a folder that is being removed.
        for future in futures:
            future.cancel()
        wait(futures, timeout=LAYERS_END_SECONDS)
        raise
    except lost as error:
        words = " ".join(str(error).split())[:80] or type(error).__name__
        raise CrewLost(f"the workers or the scheduler went away ({words}); start them and run again") from None
    finally:
        for future in futures:
            future.cancel()


def _run(item: tuple[Callable[..., Found], int, tuple[Any, ...]]) -> tuple[int, Found]:
    work, number, arguments = item
    return number, work(*arguments)


def _can_be_sent(item: tuple[Any, ...]) -> bool:
    """Whether the arguments can go to another process: those with weights in memory cannot."""
    try:
        pickle.dumps(item)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True
