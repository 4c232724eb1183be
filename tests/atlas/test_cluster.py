"""A real Dask scheduler with two worker processes on loopback: the serial facts, also when a worker is killed."""

import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path

import pytest

import attngeom
from attngeom.atlas import FactStore, dask_executor, parse_sweep, run_sweep
from attngeom.atlas.children import answer
from attngeom.atlas.executors import _CheckedWorkers, _describe_code, _difference
from attngeom.atlas.identity import identify_code
from attngeom.atlas.questions import get_question
from attngeom.atlas.runner import _outcomes
from attngeom.cli.app import run as run_program
from attngeom.errors import InputError
from tests.atlas.test_run import contents, serial_facts
from tests.effort import choose

Client = pytest.importorskip("distributed").Client
CommClosedError = pytest.importorskip("distributed.comm.core").CommClosedError

HOW_TO = (Path(__file__).parents[2] / "docs/how-to/atlas.md").read_text(encoding="utf-8")
CERTIFICATES = "\n".join(re.findall(r"^openssl .*$", HOW_TO, re.MULTILINE))

SECONDS = 300
"""Starting a scheduler and workers takes two seconds each, on a machine that has nothing else to do."""
SWEEP = "seed = 2\n[[toy]]\nsizes = {from = 1, to = 40}\nsleep = 0.05\n"


class Cluster:
    """A scheduler on loopback, and workers of one thread each, as processes that end with the test."""

    def __init__(self, folder, *tls):
        self.folder, self.file, self.tls = folder, folder / "scheduler.json", tls
        self.processes = []
        protocol = "tls" if tls else "tcp"
        self._start("dask_scheduler", "--port", "0", "--no-show", "--protocol", protocol)
        wait_until(lambda: self.found() is not None)
        self.address = self.found()

    def found(self):
        """The address of the scheduler, once its file is written to the end."""
        try:
            return json.loads(self.file.read_text())["address"]
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def _start(self, program, *options, path=None):
        shared = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(self.file), *self.tls]
        places = [str(path)] if path is not None else []
        places += filter(None, [os.environ.get("PYTHONPATH")])
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{program}", *options, *shared],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        )
        self.processes.append(process)
        return process

    def add_worker(self, path=None):
        """Start a worker; its attngeom is the one below ``path``, if that is given."""
        options = ["--nthreads", "1", "--no-nanny", "--local-directory", str(self.folder)]
        return self._start("dask_worker", *options, path=path)

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    try:
        yield found
    finally:
        found.close()


def copy_package(folder, name, old, new):
    """A copy of the package in which one file says something else; without it if ``old`` is empty."""
    target = folder / "other" / "attngeom"
    shutil.copytree(Path(attngeom.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__"))
    file = target / name
    if not old:
        file.unlink()
        return target.parent
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    return target.parent


def wait_until(holds):
    deadline = time.monotonic() + SECONDS
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert holds()


OTHERS = {
    "another version": ("version.py", f'"{attngeom.__version__}"', '"0.1.0"', "has version 0.1.0, not"),
    "an edited file": ("dimensions/effective.py", "return rank *", "return 1 + rank *", "has other files of version"),
    "a version that cannot say what it is": ("atlas/identity.py", "", "", "has another attngeom, or none"),
}


@pytest.mark.parametrize("name", choose(["an edited file"], list(OTHERS)))
def test_workers_with_other_code_are_refused_before_they_get_work(cluster, path, tmp_path, capsys, name):
    """Beside a good worker: the run ends with one line, and no fact is stored."""
    *change, words = OTHERS[name]
    (tmp_path / "sweep.toml").write_text("[[dimension]]\nwidths = [2, 3]\n")
    cluster.add_worker()
    cluster.add_worker(copy_package(tmp_path, *change))
    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=SECONDS)
    command = ["atlas", "run", str(tmp_path / "sweep.toml"), "--store", str(path), "--scheduler", cluster.address]
    assert run_program(command) == 2
    error = capsys.readouterr().err
    assert words in error and "install the same attngeom" in error and error.count("\n") == 1
    with FactStore(path) as store:
        assert store.count() == 0 and store.failures() == []


def test_a_worker_with_other_code_that_comes_later_gets_no_work(cluster, path, tmp_path, monkeypatch):
    """Its toy question would give another answer to everything."""
    root = Path(__file__).parents[2]
    other = tmp_path / "other" / "tests" / "atlas"
    other.mkdir(parents=True)
    for name in ("__init__.py", "atlas/__init__.py", "atlas/toy.py"):
        text = (root / "tests" / name).read_text(encoding="utf-8")
        (other.parent / name).write_text(text.replace('{"rank": int(', '{"rank": 1 + int('), encoding="utf-8")
    cluster.add_worker()
    told, came = [], []

    def add_another(seen):
        if seen.done >= 2 and not came:
            came.append(cluster.add_worker(tmp_path / "other"))
            with Client(cluster.address, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=SECONDS)

    with FactStore(path) as store, dask_executor(cluster.address, tell=told.append) as (executor, count):
        report = run_sweep(parse_sweep(SWEEP), store, executor, count, progress=add_another)
        assert count() == 1 and came and came[0].poll() is None
        facts = list(store.facts())
    assert report.is_complete
    assert len(told) == 1 and "gets no work: it has another module tests.atlas.toy" in told[0]
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert contents(facts) == serial_facts(SWEEP)


def test_what_a_worker_has_is_said_in_words():
    here = asdict(identify_code())
    assert _difference(here) is None
    assert _difference({**here, "version": "0.1.0"}) == f"version 0.1.0, not {attngeom.__version__}"
    assert "other files" in _difference({**here, "package": "0" * 64})
    assert "another module tests.atlas.toy" in _difference({**here, "questions": {}})
    assert "or none (ModuleNotFoundError" in _difference(ModuleNotFoundError("No module named 'attngeom'"))


def test_workers_that_go_away_while_they_are_asked_are_asked_again():
    """Their silence is not another code."""

    class Client:
        def __init__(self):
            self.silent, self.asked = [CommClosedError("closed"), OSError("timed out"), TimeoutError()] * 2, []

        def scheduler_info(self, n_workers):
            return {"workers": {name: {"nthreads": 2} for name in ("good", "going", "late", "other")}}

        def run(self, function, *arguments, workers, on_error):
            if function is not _describe_code:
                return {}
            self.asked.append(workers)
            replies = {"good": asdict(identify_code()), "other": FileNotFoundError("no file")}
            return {name: replies.get(name) or self.silent.pop() for name in workers}

    client = Client()
    workers = _CheckedWorkers(client)
    assert [name for name, _ in workers.look()] == ["other"] and workers.threads == 2
    assert workers.look() == [] and client.asked == [["good", "going", "late", "other"], ["going", "late"]]


def test_answers_of_other_code_are_not_believed():
    """Files that change under a running worker: its next child has other code than was asked for."""
    (task,) = get_question("toy").tasks({"sizes": 3}, 0)
    good = answer(task)
    for code, believed in ((good["code"], True), ("0" * 32, False), (None, False)):
        future = Future()
        future.set_result([{**good, "code": code}])
        (outcome,) = _outcomes(future, 1)
        assert ("answer" in outcome) == believed
        assert believed or (outcome["reason"] == "lost" and "other files" in outcome["detail"])


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_cluster_with_tls_runs_and_refuses_strangers(tmp_path, path, capsys):
    """The certificates of docs/how-to/atlas.md: without one of them nobody is let in."""
    for line in CERTIFICATES.splitlines():
        subprocess.run(shlex.split(line), cwd=tmp_path, check=True, capture_output=True)
    files = ["--tls-ca-file", str(tmp_path / "ca.pem")]
    files += ["--tls-cert", str(tmp_path / "node.pem"), "--tls-key", str(tmp_path / "node.key")]
    (tmp_path / "sweep.toml").write_text("[[toy]]\nsizes = [1, 2, 3]\n")
    command = ["atlas", "run", str(tmp_path / "sweep.toml"), "--store", str(path), "--json"]
    cluster = Cluster(tmp_path, *files)
    try:
        cluster.add_worker()
        assert cluster.address.startswith("tls://")
        assert run_program([*command, "--scheduler", cluster.address, *files]) == 0
        assert json.loads(capsys.readouterr().out)["new"] == 4
        assert run_program([*command, "--scheduler", cluster.address]) == 2
        assert run_program([*command, "--scheduler", cluster.address, *files[:4]]) == 2
        assert "--tls-key is missing" in capsys.readouterr().err
        assert run_program([*command, "--scheduler", cluster.address.replace("tls", "tcp"), *files]) == 2
    finally:
        cluster.close()


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, path, monkeypatch):
    address, workers = cluster.address, [cluster.add_worker() for _ in range(2)]
    killed = threading.Event()

    def kill_one(seen):
        if seen.done >= 10 and not killed.is_set():
            killed.set()
            workers[0].send_signal(signal.SIGKILL)

    with FactStore(path) as store, dask_executor(address) as (executor, count):
        wait_until(lambda: count() == 2)
        report = run_sweep(parse_sweep(SWEEP), store, executor, count, progress=kill_one)
        assert killed.is_set()
        assert workers[0].wait(timeout=SECONDS) == -signal.SIGKILL
        assert workers[1].poll() is None
        facts, failures = list(store.facts()), store.failures()
    assert failures == []
    assert report.is_complete
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert contents(facts) == serial_facts(SWEEP)
    assert len({fact.task.key for fact in facts}) == len(facts) == 41


def test_a_missing_scheduler_is_named(monkeypatch):
    monkeypatch.setattr("attngeom.atlas.executors.CONNECT_SECONDS", 1)
    for address in ("foo", "tcp://foo", ""):
        with pytest.raises(InputError, match="HOST:PORT is required"), dask_executor(address):
            pass
    with pytest.raises(InputError, match="no Dask scheduler"), dask_executor("tcp://127.0.0.1:9"):
        pass


def test_callbacks_of_a_scheduler_that_went_away_print_nothing(monkeypatch):
    """What Dask still waits for ends in callbacks of its loop, which would print a traceback beside the one line."""
    monkeypatch.setattr("attngeom.atlas.executors.CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match="no Dask scheduler"), dask_executor("tcp://127.0.0.1:9"):
        pass
    assert not any(logging.getLogger(name).isEnabledFor(logging.ERROR) for name in ("tornado.application", "asyncio"))
