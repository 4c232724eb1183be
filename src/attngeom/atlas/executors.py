"""Where tasks run: threads of this process that each own a killable child process, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from attngeom.atlas.children import Crew
from attngeom.errors import InputError

MAX_WORKERS = 1024
CONNECT_SECONDS = 30


@contextmanager
def local_executor(workers: int) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """An executor with ``workers`` child processes on this machine, and their number.

    The threads only wait: each keeps one child process and kills it when a task exceeds its budget. On the way out,
    also after an interrupt, all children are killed.
    """
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"{workers} workers given; 1 to {MAX_WORKERS} are possible")
    crew = Crew()
    executor = ThreadPoolExecutor(workers, thread_name_prefix="atlas", initializer=crew.join)
    try:
        yield executor, lambda: workers
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        crew.stop()
        executor.shutdown(wait=True)


@contextmanager
def dask_executor(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """An executor on the Dask cluster of a scheduler, and a count of its threads, which may change at any time.

    The workers need attngeom installed, in the same version. Dask runs the batches of a worker that dies on others.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--scheduler given; Dask is not installed; run pip install 'attngeom[cluster]'") from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler at {address[:80]!r} ({error}); start one with `dask scheduler`") from None

    def threads() -> int:
        found = client.scheduler_info(n_workers=-1)["workers"]
        return sum(worker["nthreads"] for worker in found.values())

    try:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise InputError(
                f"the scheduler at {address[:80]} has no workers; start some with `dask worker {address[:80]}`"
            ) from None
        yield client.get_executor(pure=False), threads
    finally:
        client.close()
