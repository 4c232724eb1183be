"""Several workers: the same answers, files layer by layer, killed runs are gone on with, lost clusters are told."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attngeom.cli.app import run
from attngeom.errors import FormatError, InputError
from attngeom.models import canonicalize, compare, crews, fingerprint, lineage, open_model, teleport, write_model
from attngeom.models.crews import CrewLost, each_layer, hired
from attngeom.models.inspection import inspect_model
from attngeom.models.rewriting import Teleported
from attngeom.models.samples import LLAMA, random_model

CONFIG = {**LLAMA, "num_hidden_layers": 4}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = random_model(CONFIG, 1)
    for name, source in (("a", model), ("b", teleport(model, 2).moved())):
        (tmp_path / name).mkdir()
        state = {n: np.ascontiguousarray(source.tensors.raw(n), dtype=np.float32) for n in source.tensors}
        save_file(state, tmp_path / name / "model.safetensors")
        (tmp_path / name / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.fixture
def crew():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def test_answers_do_not_depend_on_the_crew(folder, crew):
    a, b = open_model(folder / "a"), open_model(folder / "b")
    assert fingerprint(a, crew=crew).digest == fingerprint(a).digest
    assert inspect_model(a, crew=crew).to_json() == inspect_model(a).to_json()
    assert compare(a, b, crew=crew).to_json() == compare(a, b).to_json()
    assert lineage(b, [a], crew=crew).to_json() == lineage(b, [a]).to_json()
    # What is exact is drawn anew in each run.
    one, other = (compare(a, a, crew=c).to_json() for c in (1, crew))
    assert one["same_function"] and {**one, "entropy": 0} == {**other, "entropy": 0}


def test_processes_of_their_own(folder):
    a = open_model(folder / "a")
    steps: list[tuple[int, int]] = []
    found = fingerprint(a, crew=2, progress=lambda done, total: steps.append((done, total)))
    assert found.digest == fingerprint(a).digest and steps == [(k, 4) for k in (1, 2, 3, 4)]


def test_models_in_memory_stay_here(folder):
    model = random_model(CONFIG, 1)
    assert fingerprint(model, crew=2).digest == fingerprint(model).digest


def test_a_crew_writes_a_file_for_each_layer(folder, crew):
    model = open_model(folder / "a")
    write_model(teleport(model, 5), folder / "one")
    write_model(teleport(model, 5), folder / "many", crew=crew)
    files = sorted(path.name for path in (folder / "many").iterdir())
    assert files == ["config.json", *(f"model-{k:05d}-of-00005.safetensors" for k in (1, 2, 3, 4, 5)),
                     "model.safetensors.index.json"]  # fmt: skip
    whole = load_file(folder / "one" / "model.safetensors")
    parts = {n: t for path in (folder / "many").glob("*.safetensors") for n, t in load_file(path).items()}
    assert whole.keys() == parts.keys() and all(np.array_equal(whole[n], parts[n]) for n in whole)
    assert compare(model, open_model(folder / "many")).same_function


def stop_at(layer: int, error: BaseException, monkeypatch) -> None:
    def work(self, place):
        if place == layer:
            raise error
        return original(self, place)

    original = Teleported.layer
    monkeypatch.setattr(Teleported, "layer", work)


def test_a_run_that_was_stopped_goes_on(folder, crew, monkeypatch):
    model = open_model(folder / "a")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_at(3, KeyboardInterrupt(), patch)
        write_model(teleport(model, 5), folder / "out", crew=crew)
    partial = folder / "out.partial"
    dates = {path.name: path.stat().st_mtime_ns for path in partial.glob("*.safetensors")}
    assert len(dates) >= 2 and not (folder / "out").exists()
    with pytest.raises(InputError, match="not of this work"):
        write_model(teleport(model, 6), folder / "out", crew=crew)
    with pytest.raises(InputError, match="not of this work"):
        write_model(canonicalize(model), folder / "out", crew=crew)
    write_model(teleport(model, 5), folder / "out", crew=crew)
    assert not partial.exists()
    assert dates.items() <= {p.name: p.stat().st_mtime_ns for p in (folder / "out").glob("*.safetensors")}.items()
    assert compare(model, open_model(folder / "out")).same_function


def test_bad_input_leaves_nothing_and_lost_workers_leave_what_is_done(folder, crew, monkeypatch):
    model = open_model(folder / "a")
    with monkeypatch.context() as patch, pytest.raises(InputError, match="no good"):
        stop_at(2, InputError("no good"), patch)
        write_model(teleport(model, 5), folder / "out", crew=crew)
    assert not list(folder.glob("out*"))
    with monkeypatch.context() as patch, pytest.raises(CrewLost, match="start them and run again"):
        stop_at(3, CancelledError(), patch)
        write_model(teleport(model, 5), folder / "other", crew=crew)
    assert (folder / "other.partial").is_dir()


class Dead(Executor):
    """A cluster whose workers are gone."""

    def submit(self, function, /, *arguments, **options):
        future: Future = Future()
        future.set_exception(CancelledError("scheduler closed"))
        return future


def test_a_cluster_that_dies_is_told_in_one_line(folder):
    with pytest.raises(CrewLost, match="went away"):
        fingerprint(open_model(folder / "a"), crew=Dead())
    with pytest.raises(ZeroDivisionError):
        each_layer(divmod, [(1, 0), (1, 0)], ThreadPoolExecutor(1))


def test_commands_refuse_two_crews_and_no_scheduler(folder, capsys):
    for words, text in (
        (["--workers", "2", "--scheduler", "x"], "give one of the two"), (["--workers", "0"], "1 to 256"),
        (["--workers", "-3"], "1 to 256"),
    ):  # fmt: skip
        assert run(["model", "fingerprint", str(folder / "a"), *words]) == 2
        assert text in capsys.readouterr().err


def test_a_killed_command_goes_on(folder):
    """The process is killed while it writes layers; the same command ends the work."""
    target = folder / "out"
    words = ["model", "teleport", str(folder / "a"), "--out", str(target), "--seed", "3", "--workers", "2"]
    slow = "import time, attngeom.models.rewriting as r; f = r.Teleported.layer\n"
    slow += "def g(self, i):\n    time.sleep(0 if i < 2 else 3600)\n    return f(self, i)\nr.Teleported.layer = g\n"
    slow += "import attngeom.models.crews as c; from concurrent.futures import ThreadPoolExecutor as T; h = c.hired\n"
    slow += "c.hired = lambda crew, module=None: h(T(crew) if isinstance(crew, int) else crew)\n"
    script = f"{slow}from attngeom.cli.app import run; run({words!r})"
    child = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    partial = folder / "out.partial"
    end = time.monotonic() + 600
    while len(list(partial.glob("model-*.safetensors"))) < 3:
        assert child.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    child.wait()
    # Two of four layers, and what lies outside them.
    written = [path.name for path in sorted(partial.glob("model-*.safetensors"))]
    assert written == [f"model-0000{i}-of-00005.safetensors" for i in (1, 2, 5)] and not target.exists()
    assert run([*words[:-2], "--workers", "2"]) == 0
    assert target.is_dir() and not partial.exists()
    assert compare(open_model(folder / "a"), open_model(target)).same_function


def end_worker(caller: int) -> None:
    """A worker dies; the caller, who works as well, does not."""
    if os.getpid() != caller:
        os._exit(1)


def process(number: int, folder: Path) -> int:
    """Item 0 ends when all others have ended."""
    end = time.monotonic() + 60
    while number == 0 and len(list(folder.iterdir())) < 7 and time.monotonic() < end:
        time.sleep(0.01)
    (folder / str(number)).touch()
    return os.getpid()


def test_the_caller_works_too_and_nobody_waits(tmp_path):
    """Processes take the next item when theirs is done: a long one holds nobody up."""
    with hired(2) as crew:
        own = each_layer(process, [(k, tmp_path) for k in range(8)], crew)
    assert own[1:] == [own[1]] * 7 and own[0] != own[1] and os.getpid() in own
    with pytest.raises(IndexError), hired(2) as crew:
        each_layer([0].pop, [(0,)] * 3, crew)


def test_processes_are_started_once_and_end_with_the_work(folder, monkeypatch):
    """A comparison of models that differ asks its crew several times; a killed worker is one line."""
    a, b = open_model(folder / "a"), open_model(folder / "b")
    noisy = {n: b.tensors.raw(n) * np.float32(1.5) for n in b.tensors}
    save_file(noisy, folder / "b" / "model.safetensors")
    b = open_model(folder / "b")
    started: list[int] = []
    start = crews.worker_processes
    monkeypatch.setattr(crews, "worker_processes", lambda n: started.append(n) or start(n))
    assert compare(a, b, crew=2).to_json() == compare(a, b).to_json()
    # This process is one of the two.
    assert started == [1] and not multiprocessing.active_children()
    with pytest.raises(CrewLost, match="went away"), hired(2) as crew:
        each_layer(end_worker, [(os.getpid(),)] * 3, crew)
    assert not multiprocessing.active_children()


def test_ended_processes_are_collected_whoever_comes_first(monkeypatch):
    """The thread of the executor collects a dead worker, and takes its time to say so; nothing is left afterwards."""
    collect = os.waitpid

    def collect_and_dawdle(pid: int, options: int) -> tuple[int, int]:
        ours = threading.current_thread() is threading.main_thread()
        if ours:
            time.sleep(0.1)
        found = collect(pid, options)
        if not ours:
            time.sleep(2.0)
        return found

    monkeypatch.setattr(os, "waitpid", collect_and_dawdle)
    with pytest.raises(CrewLost, match="went away"), hired(2) as crew:
        each_layer(end_worker, [(os.getpid(),)] * 3, crew)
    assert not multiprocessing.active_children()


def test_the_rest_is_left_out(crew):
    done: list[int] = []

    def work(number):
        done.append(number)
        return number

    assert each_layer(work, [(k,) for k in range(9)], stop=lambda k: k == 3) == [0, 1, 2, 3] == done
    assert 3 in each_layer(abs, [(k,) for k in range(9)], crew, stop=lambda k: k == 3)


def test_files_that_change_are_refused_by_workers(folder):
    """The worker opens a folder itself: it knows which file it was told of."""
    model = open_model(folder / "a")
    state = load_file(folder / "a" / "model.safetensors")
    save_file({n: t + 1 for n, t in state.items()}, folder / "a" / "model.safetensors")
    # The clock of files has steps, in which the first version may have been written as well.
    os.utime(folder / "a" / "model.safetensors", (0, 0))
    with pytest.raises(FormatError, match="has changed"):
        fingerprint(pickle.loads(pickle.dumps(model)))
