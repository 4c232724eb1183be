"""A real Dask scheduler with two worker processes on loopback: the serial facts, also when a worker is killed."""

import json
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

import pytest

from attngeom.atlas import FactStore, dask_executor, parse_sweep, run_sweep
from attngeom.errors import InputError
from tests.atlas.test_run import contents, serial_facts

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")

SWEEP = "seed = 2\n[[toy]]\nsizes = {from = 1, to = 40}\nsleep = 0.05\n"


@pytest.fixture
def cluster(tmp_path):
    """The address of a scheduler and the two worker processes, each with one thread."""
    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show", "--scheduler-file", str(file)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    processes = [subprocess.Popen([*command, *options], **quiet)]
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-nanny"]
        more = ["--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", str(tmp_path)]
        processes += [subprocess.Popen([*worker, *more], **quiet) for _ in range(2)]
        yield json.loads(file.read_text())["address"], processes[1:]
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, path, monkeypatch):
    address, workers = cluster
    killed = threading.Event()

    def kill_one(seen):
        if seen.done >= 10 and not killed.is_set():
            killed.set()
            workers[0].send_signal(signal.SIGKILL)

    with FactStore(path) as store, dask_executor(address) as (executor, count):
        deadline = time.monotonic() + 60
        while count() < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert count() == 2
        report = run_sweep(parse_sweep(SWEEP), store, executor, count, progress=kill_one)
        assert killed.is_set()
        assert workers[0].wait(timeout=60) == -signal.SIGKILL
        assert workers[1].poll() is None
        facts, failures = list(store.facts()), store.failures()
    assert failures == []
    assert report.is_complete
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert contents(facts) == serial_facts(SWEEP)
    assert len({fact.task.key for fact in facts}) == len(facts) == 41


def test_a_missing_scheduler_is_named(monkeypatch):
    monkeypatch.setattr("attngeom.atlas.executors.CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match="no Dask scheduler"), dask_executor("tcp://127.0.0.1:9"):
        pass
