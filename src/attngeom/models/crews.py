"""Layers in several processes, or on a cluster: each worker has one layer in memory at a time.

What is sent to a worker is the description of a model and the places of its files, never weights; a model in memory
cannot be sent, and its layers are worked on here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, as_completed, wait
from typing import Any, TypeVar

from attngeom.errors import AttnGeomError, InputError
from attngeom.limits.seconds import LAYERS_END_SECONDS
from attngeom.processes import run_apart

Crew = int | Executor
"""So many processes on this machine, 1 for this one; or any executor, such as that of a Dask cluster."""
Progress = Callable[[int, int], None]
Found = TypeVar("Found")


class CrewLost(InputError):
    """The workers or the scheduler of a cluster are gone; layers that were written are kept."""


def each_layer(
    work: Callable[..., Found], items: Sequence[tuple[Any, ...]], crew: Crew = 1, progress: Progress | None = None
) -> list[Found]:
    """``work(*item)`` for every item, in the order of the items; ``work`` is a function of a module.

    >>> each_layer(divmod, [(7, 2), (9, 4)])
    [(3, 1), (2, 1)]
    """
    results: dict[int, Found] = {}
    for number, result in _finished(work, items, crew):
        results[number] = result
        if progress is not None:
            progress(len(results), len(items))
    return [results[number] for number in range(len(items))]


def _finished(work: Callable[..., Found], items: Sequence[tuple[Any, ...]], crew: Crew) -> Iterator[tuple[int, Found]]:
    if (crew == 1 and not isinstance(crew, Executor)) or len(items) < 2 or not _can_be_sent(items[0]):
        yield from ((number, work(*item)) for number, item in enumerate(items))
        return
    packed = [(work, number, item) for number, item in enumerate(items)]
    if not isinstance(crew, Executor):
        yield from run_apart(_run, packed, min(crew, len(items)))
        return
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
    except (CancelledError, OSError, RuntimeError) as error:
        words = " ".join(str(error).split())[:80]
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
