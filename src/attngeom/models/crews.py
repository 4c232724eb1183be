"""Layers in several processes, or on a cluster: each worker has one layer in memory at a time.

What is sent to a worker is the description of a model and the places of its files, never weights; a model in memory
cannot be sent, and its layers are worked on here.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
    wait,
)
from contextlib import closing, contextmanager, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from attngeom.errors import AttnGeomError, InputError
from attngeom.limits.seconds import LAYERS_END_SECONDS
from attngeom.processes import Workers, check_workers, worker_processes

Crew = int | Executor
"""So many processes on this machine, this one among them; or any executor, such as that of a Dask cluster."""
CLUSTER_ERRORS = CancelledError, OSError, RuntimeError
Progress = Callable[[int, int], None]
Found = TypeVar("Found")
Packed = tuple[Callable[..., Found], int, tuple[Any, ...]]
"""What is to be done, the number of its item, and the arguments."""


class CrewLost(InputError):
    """The workers or the scheduler of a cluster are gone; layers that were written are kept."""


@contextmanager
def hired(crew: Crew, module: str | None = None) -> Iterator[Crew]:
    """The same crew for several calls of `each_layer`: processes are started once, and end with the work.

    This process is one of the workers. The others load ``module``, if one is named, while it still prepares the work.
    """
    if isinstance(crew, Executor) or crew == 1:
        yield crew
        return
    check_workers(crew)
    with worker_processes(crew - 1) as executor:
        if module is not None:
            executor.load(module)
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
    if crew == 1 or len(items) < 2 or not _can_be_sent(items[0]):
        yield from ((number, work(*item)) for number, item in enumerate(items))
        return
    packed = [(work, number, item) for number, item in enumerate(items)]
    with hired(crew) as executor:
        assert isinstance(executor, Executor)
        # A disk that is full is no lost worker: only those of a cluster are lost with errors of the system.
        lost = (CancelledError, BrokenExecutor) if isinstance(executor, ProcessPoolExecutor) else CLUSTER_ERRORS
        futures: list[Future[tuple[int, Found]]] = []
        try:
            if isinstance(executor, Workers):
                yield from _shared(packed, executor, futures)
            else:
                yield from _sent(packed, executor, futures)
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


def _sent(
    packed: Sequence[Packed[Found]], executor: Executor, futures: list[Future[tuple[int, Found]]]
) -> Iterator[tuple[int, Found]]:
    """All items are sent at once."""
    futures += [executor.submit(_run, item) for item in packed]
    yield from (future.result() for future in as_completed(futures))


def _shared(
    packed: Sequence[Packed[Found]], executor: Workers, futures: list[Future[tuple[int, Found]]]
) -> Iterator[tuple[int, Found]]:
    """A worker, this process among them, takes the next item when its own is done: none waits for another."""
    left, finished = deque(packed), SimpleQueue[Future[tuple[int, Found]]]()

    def take() -> Packed[Found] | None:
        with suppress(IndexError):
            return left.popleft()
        return None

    def hand_out(done: Future[tuple[int, Found]] | None = None) -> None:
        if done is not None:
            finished.put(done)
        item = take() if done is None or not (done.cancelled() or done.exception()) else None
        if item is None:
            return
        try:
            future = executor.submit(_run, item)
        except RuntimeError as error:
            # This runs in a thread of the executor, where errors are lost.
            future = Future()
            future.set_exception(error)
        futures.append(future)
        future.add_done_callback(hand_out)

    try:
        for _ in range(min(executor.count, len(packed) - 1)):
            hand_out()
        for _ in packed:
            own = take() if finished.empty() else None
            yield finished.get().result() if own is None else _run(own)
    finally:
        left.clear()


def _run(item: Packed[Found]) -> tuple[int, Found]:
    work, number, arguments = item
    return number, work(*arguments)


def _can_be_sent(item: tuple[Any, ...]) -> bool:
    """Whether the arguments can go to another process: those with weights in memory cannot."""
    try:
        pickle.dumps(item)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True
