"""A model of two billion parameters, end to end: every command is killed in the middle, and run again to its end.

The folder is written shard by shard (random weights, bfloat16, 4 GB). Each command is started with ``--workers 2``, its
process alone is killed by SIGKILL; then its workers must be gone, the model must be untouched, and nothing may lie
beside it but NAME.partial with whole files. The same command then has to end well, without writing a layer twice. CPU
seconds and peak memory are those of the second run, with its workers. Last, the scheduler and the workers of a Dask
cluster are killed while a command runs on them: one line, exit code 2 or 3.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from safetensors import safe_open  # noqa: E402

from attngeom.models import open_model  # noqa: E402
from contract import LIMIT, emit, require  # noqa: E402
from scale import LLAMA, one_pass, write_folder  # noqa: E402

TABLE = "two billion parameters, two workers"
LARGE = {
    **LLAMA, "hidden_size": 2560, "intermediate_size": 6912, "num_hidden_layers": 27, "num_attention_heads": 20,
    "num_key_value_heads": 5, "vocab_size": 32000,
}  # fmt: skip
QUICK = {
    **LARGE, "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 6, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 512,
}  # fmt: skip
ATTNGEOM = [sys.executable, "-c", "import sys; from attngeom.cli import main; sys.exit(main())"]
NAMES = ("fingerprint", "inspect", "teleport", "compare", "lineage", "canonicalize")
LONGEST = 20.0
"""Seconds that the workers of a killed process may live on."""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it took, its workers included."""

    code: int
    answer: dict[str, Any]
    cpu: float
    wall: float
    gigabytes: float


def start(words: list[str], log: Path, place: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out, log.with_suffix(".err").open("wb") as errors:
        return subprocess.Popen([*ATTNGEOM, *words], stdout=out, stderr=errors, cwd=place, start_new_session=True)


def run_whole(words: list[str], log: Path, place: Path) -> Ended:
    begin = time.perf_counter()
    process = start(words, log, place)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text()
    answer = json.loads(text) if text.strip() else {}
    seconds = usage.ru_utime + usage.ru_stime
    return Ended(process.returncode, answer, seconds, time.perf_counter() - begin, usage.ru_maxrss / 2**20)


def alive(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def kill_in_the_middle(words: list[str], log: Path, place: Path, out: Path | None, layers: int) -> float:
    """Start a command and kill its process alone, where it writes after a third of the layers; the seconds it had."""
    begin = time.perf_counter()
    process = start(words, log, place)
    partial = None if out is None else out.with_name(f"{out.name}.partial")
    while process.poll() is None:
        time.sleep(0.02)
        written = 0 if partial is None else len(list(partial.glob("model-*.safetensors")))
        if written >= layers // 3 if out is not None else time.perf_counter() - begin > 2.5:
            break
    seconds = time.perf_counter() - begin
    require(process.poll() is None, f"{words[1]} was still at work")
    process.kill()
    process.wait()
    end = time.perf_counter() + LONGEST
    while alive(process.pid) and time.perf_counter() < end:
        time.sleep(0.05)
    require(not alive(process.pid), f"the workers of {words[1]} ended with it")
    return seconds


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()}


def check_partial(partial: Path) -> dict[str, tuple[int, int]]:
    """Every file of a layer in an unfinished folder is whole."""
    for path in partial.glob("model-*.safetensors"):
        with safe_open(str(path), framework="numpy") as stream:
            require(len(list(stream.keys())) > 0, f"{path.name} is whole")
    return {name: stamp for name, stamp in stamps(partial).items() if name.endswith(".safetensors")}


def try_command(name: str, words: list[str], place: Path, out: Path | None, expected: int, base: float) -> Ended:
    """Kill it, look at what is left, run it again."""
    log, source = place / "logs" / f"{name}.json", place / "model"
    layers, before, beside = open_model(source).layers, stamps(source), {path.name for path in place.iterdir()}
    seconds = kill_in_the_middle(words, log, place, out, layers)
    require(stamps(source) == before, f"{name} left the model alone")
    left = {path.name for path in place.iterdir()} - beside
    require(left == (set() if out is None else {f"{out.name}.partial"}), f"{name} left nothing else behind: {left}")
    kept = {} if out is None else check_partial(out.with_name(f"{out.name}.partial"))
    ended = run_whole(words, log, place)
    require(ended.code == expected, f"{name} ends with {expected}, not {ended.code}: {_errors(log)[:200]}")
    if out is not None:
        require(kept and kept.items() <= stamps(out).items(), f"{name} wrote no layer twice")
    require({path.name for path in place.iterdir()} - beside == (set() if out is None else {out.name}), "all is whole")
    print(f"{name:13s} {ended.cpu:8.1f} CPU s {ended.cpu / base:6.1f} passes {ended.wall:8.1f} s by the clock ", end="")
    print(f"{ended.gigabytes:5.2f} GB  killed after {seconds:.1f} s, {len(kept)} layers kept, ", end="")
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    emit(TABLE, name, ended.cpu)
    emit(TABLE, name, base, LIMIT)
    emit("peak memory of the largest process", name, ended.gigabytes, unit="GB")
    return ended


def _errors(log: Path) -> str:
    return log.with_suffix(".err").read_text()


def try_cluster(place: Path) -> None:
    """Kill the scheduler and the workers of a cluster while a fingerprint runs on them."""
    log, address = place / "logs" / "cluster.json", place / "scheduler.json"
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    options: dict[str, Any] = {
        "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True,
        "env": {**os.environ, "PYTHONPATH": path}, "cwd": place,
    }  # fmt: skip
    dask = [sys.executable, "-m", "distributed.cli"]
    quiet = ["--no-dashboard", "--scheduler-file", str(address)]
    scheduler = subprocess.Popen(
        [f"{dask[0]}", "-m", "distributed.cli.dask_scheduler", "--port", "0", *quiet], **options
    )
    while not address.exists() or not address.read_text().strip().endswith("}"):
        time.sleep(0.1)
    words = ["--nthreads", "1", "--nworkers", "2", "--local-directory", str(place / "logs"), *quiet]
    workers = subprocess.Popen([f"{dask[0]}", "-m", "distributed.cli.dask_worker", *words], **options)
    told = json.loads(address.read_text())["address"]
    process = start(["model", "fingerprint", str(place / "model"), "--scheduler", told, "--json"], log, place)
    begin = time.perf_counter()
    try:
        while process.poll() is None and time.perf_counter() - begin < 6:
            time.sleep(0.1)
        is_early = process.poll() is None
        for cluster in (workers, scheduler):
            os.killpg(cluster.pid, signal.SIGKILL)
            cluster.wait()
        killed = time.perf_counter()
        code = process.wait(timeout=300)
    finally:
        for cluster in (process, workers, scheduler):
            if cluster.poll() is None:
                cluster.kill()
        address.unlink(missing_ok=True)
    lines = [line for line in _errors(log).splitlines() if line.strip()]
    waited = time.perf_counter() - killed
    print(
        f"cluster killed{'' if is_early else ' (too late)'}: exit {code} after {waited:.1f} s, {len(lines)} lines: ",
        end="",
    )
    print("\n".join(lines)[:300], flush=True)
    require(not is_early or (code in (2, 3) and len(lines) == 1), "a cluster that dies is one line, exit 2 or 3")
    require(not log.read_text().strip(), "nothing is told as an answer")


def timed_pass(folder: Path) -> float:
    """CPU seconds of one pass over the files."""
    begin = time.process_time()
    one_pass(folder)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="six layers of width 256")
    parser.add_argument("--folder", type=Path, help="where the models are written; some 30 GB")
    parser.add_argument("--no-cluster", action="store_true", help="without Dask")
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES, help="these commands")
    options = parser.parse_args()
    config = QUICK if options.quick else LARGE
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        place = Path(name)
        (place / "logs").mkdir()
        # Processes of their own: a child begins with the peak memory of the process that started it.
        with ProcessPoolExecutor(1, get_context("spawn")) as apart:
            source = apart.submit(write_folder, config, place / "model").result()
            base = apart.submit(timed_pass, source).result()
        model = open_model(source)
        size = sum(path.stat().st_size for path in source.iterdir())
        print(f"{model.spec.parameters:,} parameters in {model.layers} layers, {size:,} bytes", flush=True)
        print(f"pass          {base:8.1f} CPU s", flush=True)
        two = ["--workers", "2", "--json"]
        moved, canonical = place / "moved", place / "canonical"
        tasks: dict[str, tuple[list[str], Path | None]] = {
            "fingerprint": ([str(source)], None),
            "inspect": ([str(source)], None),
            "teleport": ([str(source), "--out", str(moved), "--seed", "1"], moved),
            "compare": ([str(source), str(moved)], None),
            "lineage": ([str(moved), str(source)], None),
            "canonicalize": ([str(source), "--out", str(canonical)], canonical),
        }
        checks: dict[str, Callable[[dict[str, Any]], bool]] = {
            "fingerprint": lambda answer: bool(answer["fingerprint"]),
            "compare": lambda answer: answer["same_function"] is True,
            "lineage": lambda answer: answer["parents"][0]["similarity"] > 0.999,
        }
        for task, (words, out) in tasks.items():
            words = ["model", task, *words, *two]
            if task in options.only:
                found = try_command(task, words, place, out, 0, base)
                require(task not in checks or checks[task](found.answer), f"{task} is right")
            elif task == "teleport" and {"compare", "lineage"} & set(options.only):
                run_whole(words, place / "logs" / "teleport.json", place)
            if task == "lineage":
                shutil.rmtree(moved, ignore_errors=True)
        if not options.no_cluster:
            try_cluster(place)


if __name__ == "__main__":
    main()
