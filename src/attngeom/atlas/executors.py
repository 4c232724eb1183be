"""Where tasks run: threads of this process that each own a killable child process, or the workers of a Dask cluster."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attngeom.atlas.children import Crew
from attngeom.atlas.identity import CodeIdentity, identify_code, read_identity
from attngeom.errors import InputError
from attngeom.limits.seconds import CONNECT_SECONDS
from attngeom.limits.sizes import CLUSTER_WORKERS


@contextmanager
def local_executor(workers: int) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """An executor with ``workers`` child processes on this machine, and their number.

    The threads only wait: each keeps one child process and kills it when a task exceeds its budget. On the way out,
    also after an interrupt, all children are killed.
    """
    if not 1 <= workers <= CLUSTER_WORKERS:
        raise InputError(f"{workers} workers given; 1 to {CLUSTER_WORKERS} are possible")
    crew = Crew()
    executor = ThreadPoolExecutor(workers, thread_name_prefix="atlas", initializer=crew.join)
    try:
        yield executor, lambda: workers
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        crew.stop()
        executor.shutdown(wait=True)


@dataclass(frozen=True)
class Transport:
    """Files for TLS between this process, the scheduler and the workers, by the names that Dask gives them."""

    ca_file: Path
    cert: Path
    key: Path

    @classmethod
    def of(cls, ca_file: Path | None, cert: Path | None, key: Path | None) -> Transport | None:
        """All three files, or none."""
        given = {"--tls-ca-file": ca_file, "--tls-cert": cert, "--tls-key": key}
        missing = [name for name, path in given.items() if path is None]
        if ca_file is None or cert is None or key is None:
            if len(missing) < len(given):
                raise InputError(f"{missing[0]} is missing; TLS needs {', '.join(given)} together")
            return None
        for name, path in given.items():
            if path is None or not path.is_file():
                raise InputError(f"{name} {path} given; there is no such file, give one in PEM format")
        return cls(ca_file, cert, key)


@contextmanager
def dask_executor(
    address: str, transport: Transport | None = None, tell: Callable[[str], None] | None = None
) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """An executor on the Dask cluster of a scheduler, and a count of its threads, which may change at any time.

    Every worker is asked which code it has before it is given work, see :mod:`attngeom.atlas.identity`. InputError if a
    worker that is there has another one; a worker that comes later and has another one gets no work, and ``tell`` is
    told. Dask runs the batches of a worker that dies on others.
    """
    try:
        from distributed import Client, Security
    except ImportError:
        raise InputError("--scheduler given; Dask is not installed; run pip install 'attngeom[cluster]'") from None
    if not address.startswith("inproc://") and not re.fullmatch(r"(\w+://)?\S+:\d+", address):
        # Dask would go on asking, and end in a traceback.
        raise InputError(f"scheduler {address[:60]!r} given; HOST:PORT is required, as in tcp://127.0.0.1:8786")
    # A cluster that goes away is told in one line, by whoever waits for it; Dask would add lines of its own.
    for part in ("distributed.client", "distributed.core", "distributed.comm", "tornado.application", "asyncio"):
        logging.getLogger(part).setLevel(logging.CRITICAL)
    security = None
    if transport is not None:
        names = {"tls_ca_file": transport.ca_file, "tls_client_cert": transport.cert, "tls_client_key": transport.key}
        security = Security(require_encryption=True, **{name: str(path) for name, path in names.items()})
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        words = " ".join(str(error).split())[:80]
        raise InputError(f"no Dask scheduler at {address[:60]!r} ({words}); start one with `dask scheduler`") from None
    try:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise InputError(
                f"the scheduler at {address[:80]} has no workers; start some with `dask worker {address[:80]}`"
            ) from None
        except (OSError, RuntimeError) as error:
            raise _gone(address, error) from None
        workers = _CheckedWorkers(client)
        try:
            refused = workers.look()
        except (OSError, RuntimeError) as error:
            raise _gone(address, error) from None
        if refused:
            name, why = refused[0]
            raise InputError(f"worker {name[:40]} has {why}; install the same attngeom on every machine and restart it")

        def threads() -> int:
            try:
                refused = workers.look()
            except (OSError, RuntimeError) as error:
                raise _gone(address, error) from None
            for name, why in refused:
                if tell is not None:
                    tell(f"worker {name[:40]} gets no work: it has {why}")
            return workers.threads

        yield client.get_executor(pure=False, resources={workers.permit: 1}), threads
    finally:
        client.close()


def _gone(address: str, error: Exception) -> InputError:
    words = " ".join(str(error).split())[-60:] or type(error).__name__
    return InputError(f"the scheduler at {address[:60]} went away ({words}); start it and run again")


class _CheckedWorkers:
    """The workers of a cluster that have the code of this process: each holds a permit, a resource that tasks need."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._is_good: dict[str, bool] = {}
        self.permit = f"attngeom {identify_code().digest}"
        self.threads = 0

    def look(self) -> list[tuple[str, str]]:
        """Ask workers that are new, and give those with the same code a permit; the others, and what they have."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        new = [name for name in workers if name not in self._is_good]
        refused = []
        for name, reply in self._ask(new).items():
            why = _difference(reply)
            if why is not None:
                refused.append((name, why))
            self._is_good[name] = why is None
        if good := [name for name in new if self._is_good.get(name)]:
            self._client.run(_accept_permit, self.permit, workers=good, on_error="ignore")
        self.threads = sum(worker["nthreads"] for name, worker in workers.items() if self._is_good.get(name))
        return refused

    def _ask(self, names: list[str]) -> dict[str, Any]:
        """What each worker says of its code, or the exception that it raised; one that went away is left out."""
        if not names:
            return {}
        from distributed.comm.core import CommClosedError

        replies = self._client.run(_describe_code, workers=names, on_error="return")
        return {
            name: reply
            for name, reply in replies.items()
            if not isinstance(reply, CommClosedError | TimeoutError) and type(reply) is not OSError
        }


def _describe_code() -> dict[str, Any]:
    """Runs on a worker, whose children have the files that are there now."""
    return asdict(read_identity())


def _difference(reply: Any) -> str | None:
    """What a worker has that this process has not, from its own words."""
    if isinstance(reply, BaseException):
        return f"another attngeom, or none ({type(reply).__name__}: {str(reply)[:60]})"
    return identify_code().difference(CodeIdentity(**reply))


async def _accept_permit(permit: str, dask_worker: Any) -> None:
    """Runs on a worker; there are more permits than tasks can need."""
    await dask_worker.set_resources(**{permit: 1e9})
