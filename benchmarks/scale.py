"""Large models: every command on one layer of Llama-3-8B in bfloat16, in units of one pass over the file.

CPU seconds of one thread and peak memory, each command in a process of its own, beside what the machine takes for a
product of matrices and for a gigabyte of fresh memory; the pass converts every tensor to float64 and sums it. Then two
workers against one (``--workers``: these alone). By the clock, with the ceiling of the machine, two processes that
share nothing: a quiet machine is wanted. And by what the two processes did: how many times faster they are where
neither slows the other down, which any load leaves as it is. ``--short`` takes six minutes for all of it. ``--layers``
takes a longer model, of which the folder has a shard for each layer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from attngeom.models import (  # noqa: E402
    canonical,
    canonicalize,
    compare,
    crews,
    fingerprint,
    lineage,
    open_model,
    teleport,
    write_model,
)
from attngeom.models.inspection import inspect_model  # noqa: E402
from attngeom.models.samples import random_tensor, tensor_shapes  # noqa: E402
from attngeom.models.views import ModelView  # noqa: E402
from attngeom.processes import keep_memory, worker_processes  # noqa: E402
from contract import LIMIT, emit, require  # noqa: E402

NOTES = "ATTNGEOM_BENCHMARK_NOTES"
"""The variable that names the file of notes, for workers as well."""
run_plainly = crews._run
SHORT = 30.0
"""Seconds for the rounds of a command, where time is short."""
MACHINE = "product", "fresh GB"
"""What is measured of the machine, not of a command."""
TABLE = "one layer of Llama-3-8B, bfloat16"
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 1,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 1000, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": False,
}  # fmt: skip
QUICK = {**LLAMA, "hidden_size": 512, "intermediate_size": 1792, "num_attention_heads": 8, "num_key_value_heads": 2}


def write_folder(config: dict[str, Any], folder: Path, noise: float = 0.0) -> Path:
    """Random weights, one shard for each layer; with ``noise`` those of the same seed, moved a little."""
    folder.mkdir()
    shards: dict[str, list[tuple[int, str, tuple[int, ...]]]] = {}
    for number, (name, shape) in enumerate(tensor_shapes(config).items()):
        layer = name.split(".")[2] if ".layers." in name else "rest"
        shards.setdefault(f"model-{layer}.safetensors", []).append((number, name, shape))
    for shard, members in shards.items():
        tensors = {}
        for number, name, shape in members:
            rng = np.random.default_rng(number)
            tensor = random_tensor(rng, name, shape, np.float32)
            if noise:
                tensor *= 1 + noise * rng.standard_normal(shape, dtype=np.float32)
            tensors[name] = tensor.astype(ml_dtypes.bfloat16)
        save_file(tensors, folder / shard)
    table = {name: shard for shard, members in shards.items() for _, name, _ in members}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def one_pass(folder: Path) -> float:
    model = open_model(folder)
    return float(sum(model.tensors.raw(name).astype(np.float64).sum() for name in model.tensors))


def canonical_layers(folder: Path) -> int:
    model = open_model(folder)
    return sum(canonical(model.block(i), ModelView(model).layer(i)) is not None for i in range(model.layers))


def product_seconds() -> float:
    """CPU seconds of a product of two matrices of width 2,048 in float64."""
    x = np.random.default_rng(0).standard_normal((2048, 2048))
    start = time.process_time()
    x @ x
    return time.process_time() - start


def fresh_memory() -> float:
    """Seconds that the system takes to give a process a gigabyte that it did not have."""
    start = os.times().system
    np.empty(2**27).fill(1.0)
    return os.times().system - start


def compare_rounding(one: Path, other: Path) -> bool | None:
    return compare(open_model(one), open_model(other), level="rounding").same_function


COMMANDS: dict[str, Callable[[Path, Path], object]] = {
    "pass": lambda a, b: one_pass(a),
    "product": lambda a, b: round(product_seconds(), 3),
    "fresh GB": lambda a, b: round(fresh_memory(), 3),
    "inspect": lambda a, b: inspect_model(open_model(a)).spec.layers,
    "fingerprint": lambda a, b: fingerprint(open_model(a)).digest,
    "compare": compare_rounding,
    "compare, 5 %": compare_rounding,
    "compare, moved": compare_rounding,
    "compare, auto": lambda a, b: compare(open_model(a), open_model(b)).same_function,
    "canonicalize": lambda a, b: canonical_layers(a),
    "lineage": lambda a, b: round(lineage(open_model(b), [open_model(a)]).parents[0].similarity or 0.0, 4),
}


def measure(command: str, one: Path, other: Path) -> dict[str, Any]:
    """What a process of its own needs for a command."""
    words = [sys.executable, __file__, "--measure", command, str(one), str(other)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report_measure(command: str, one: Path, other: Path) -> None:
    keep_memory()  # as the command line does
    start = os.times()
    result = COMMANDS[command](one, other)
    end = os.times()
    user, system = end.user - start.user, end.system - start.system
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    seconds = {"cpu": user + system, "system": system}
    print(json.dumps({"result": result, **seconds, "gigabytes": int(line.split()[1]) / 2**20}))


CREWS: dict[str, Callable[[Path, Path, int], object]] = {
    "fingerprint": lambda a, b, crew: fingerprint(open_model(a), crew=crew).digest,
    "inspect": lambda a, b, crew: len(inspect_model(open_model(a), crew=crew).heads),
    "compare": lambda a, b, crew: compare(open_model(a), open_model(b), level="rounding", crew=crew).same_function,
    "exact compare": lambda a, b, crew: compare(open_model(a), open_model(a), level="exact", crew=crew).same_function,
    "canonicalize": lambda a, b, crew: write_canonical(a, crew),
    "lineage": lambda a, b, crew: round(
        lineage(open_model(b), [open_model(a)], crew=crew).parents[0].similarity or 0, 4
    ),
}


def write_canonical(folder: Path, crew: int) -> int:
    """A whole folder is written, and removed."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        return open_model(write_model(canonicalize(open_model(folder)), Path(place) / "out", crew=crew).path).layers


def ask_alone(command: str, one: Path, other: Path) -> str:
    return str(CREWS[command](one, other, 1))


def timed_run(packed: crews.Packed[Any]) -> tuple[int, Any]:
    """`crews._run`, which notes the CPU seconds of its process before and after an item."""
    start = time.process_time()
    result = run_plainly(packed)
    line = json.dumps([os.getpid(), packed[1], start, time.process_time()])
    with Path(os.environ[NOTES]).open("a") as notes:
        notes.write(line + "\n")
    return result


def work_apart(command: str, pair: list[Path], crew: int) -> tuple[float, float, float, str]:
    """`work_seconds` in a process of its own, which has to be given its memory as a worker has, and its wall clock."""
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        return apart.submit(work_seconds, command, pair, crew).result()


def work_seconds(command: str, pair: list[Path], crew: int) -> tuple[float, float, float, str]:
    """CPU seconds until the end of a command of which neither process slows the other down; those of all; seconds by
    the clock; the answer.

    Items go to whoever is free first, as they do; what the called process does between them is its own, and a worker
    begins when it has loaded what it needs. Where one process does all, the first two are the same.
    """
    with tempfile.NamedTemporaryFile() as notes:
        os.environ[NOTES] = notes.name
        crews._run = timed_run
        keep_memory()  # as the command line does
        start, begin = time.process_time(), time.perf_counter()
        answer = str(CREWS[command](pair[0], pair[1], crew))
        end, wall = time.process_time(), time.perf_counter() - begin
        crews._run = run_plainly
        lines = [json.loads(line) for line in Path(notes.name).read_text().splitlines()]
    own = sorted((line for line in lines if line[0] == os.getpid()), key=lambda line: line[2])
    others = sorted((line for line in lines if line[0] != os.getpid()), key=lambda line: line[2])
    if not others:
        return end - start, end - start, wall, answer
    loaded, rounds = others[0][2], list[dict[int, float]]()
    for line in sorted(lines, key=lambda line: line[2] - (start - loaded if line[0] == os.getpid() else 0)):
        # The same number once more is that of the next round of items.
        number = next((i for i, costs in enumerate(rounds) if line[1] not in costs), len(rounds))
        rounds[number:] = rounds[number:] or [{}]
        rounds[number][line[1]] = line[3] - line[2]
    free = [own[0][2] - start, own[0][2] - start + loaded]
    for costs in rounds:
        for item in sorted(costs):
            free[int(free[1] < free[0])] += costs[item]
        free = [max(free)] * 2
    between = end - own[0][2] - sum(line[3] - line[2] for line in own)
    return max(free) + between, end - start + others[-1][3], wall, answer


def workers(pair: list[Path], half: list[Path], rounds: int, seconds: float) -> None:
    """How many times faster two workers are than one; rounds alternate, as many as there is time for.

    The ceiling of the machine: two processes that run already and share nothing, each with half the layers.
    """
    print(f"{'':13s} {'one, s':>8s} {'two':>7s} {'ceiling':>8s} {'share':>6s} {'CPU, all':>9s} {'by work':>8s}   load")
    with worker_processes(2) as running:
        for command in CREWS:
            wait([running.submit(ask_alone, command, half[0], half[1]) for _ in range(2)])
            times: dict[int, list[float]] = {1: [], 2: [], 0: []}
            spent: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
            answers, begin = set(), time.perf_counter()
            for number in range(rounds):
                if number and (time.perf_counter() - begin) * (number + 1) / number > seconds:
                    break
                for crew, measured in times.items():
                    start = time.perf_counter()
                    if crew:
                        path, total, wall, answer = work_apart(command, pair, crew)
                        spent[crew].append((path, total))
                        answers.add(answer)
                    else:
                        wait([running.submit(ask_alone, command, half[0], half[1]) for _ in range(2)])
                        wall = time.perf_counter() - start
                    measured.append(wall)
            require(len(answers) == 1, f"{command}: two workers give what one gives")
            one, two, apart = (float(np.median(times[crew])) for crew in (1, 2, 0))
            alone = float(np.median(spent[1], axis=0)[0])
            path, total = (float(x) for x in np.median(spent[2], axis=0))
            print(f"{command:13s} {one:8.1f} {one / two:6.2f}x {one / apart:7.2f}x {apart / two:6.0%} ", end="")
            print(f"{total / alone:8.2f}x {alone / path:7.2f}x   {os.getloadavg()[0]:.1f}", flush=True)
            emit("two workers against one, and what the machine allows", command, one / two, unit="times")
            emit("two workers against one, and what the machine allows", command, one / apart, LIMIT, unit="times")
            emit("two workers against one, where neither slows the other down", command, alone / path, unit="times")


def part_of(folder: Path, layers: int) -> Path:
    """The folder with its first layers alone, their files linked."""
    part = folder.with_name(f"{folder.name}-{layers}")
    part.mkdir()
    config = {**json.loads((folder / "config.json").read_text()), "num_hidden_layers": layers}
    (part / "config.json").write_text(json.dumps(config))
    table = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    kept = {name: table[name] for name in tensor_shapes(config)}
    for shard in set(kept.values()):
        os.link(folder / shard, part / shard)
    (part / "model.safetensors.index.json").write_text(json.dumps({"weight_map": kept}))
    return part


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a layer of width 512")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--workers", action="store_true", help="two workers against one alone")
    parser.add_argument("--short", action="store_true", help="all of it in six minutes")
    parser.add_argument("--only", nargs="*", choices=list(COMMANDS), help="these commands")
    parser.add_argument("--folder", type=Path, help="where the models are written; some 4 GB")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return report_measure(options.measure[0], Path(options.measure[1]), Path(options.measure[2]))
    config = {**(QUICK if options.quick else LLAMA), "num_hidden_layers": options.layers}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        place = Path(name)
        if not options.workers:
            one = write_folder(config, place / "one")
            others = {"compare, 5 %": write_folder(config, place / "near", noise=0.05)}
            other = write_folder(config, place / "other", noise=0.2)
            for moved in ("compare, moved", "compare, auto"):
                others[moved] = place / "moved"
            write_model(teleport(open_model(one), 1), others["compare, moved"], precision="keep")
            measure_all(one, other, others, options)
        if not options.only:
            wide = {**QUICK, "hidden_size": 2048, "intermediate_size": 7168, "num_hidden_layers": 8}
            chosen = QUICK if options.quick else wide
            chosen = {**chosen, "num_hidden_layers": max(2, chosen["num_hidden_layers"])}
            pair = [write_folder(chosen, place / f"crew{i}", noise) for i, noise in enumerate((0.0, 0.2))]
            half = [part_of(folder, chosen["num_hidden_layers"] // 2) for folder in pair]
            seconds = SHORT if options.short else float("inf")
            workers(pair, half, rounds=1 if options.quick else 3, seconds=seconds)
    return None


def measure_all(one: Path, other: Path, others: dict[str, Path], options: argparse.Namespace) -> None:
    """Every command in a process of its own; the first pass tells where the files are not yet in memory."""
    measure("pass", one, other)
    base: float | None = None
    for command in COMMANDS:
        if options.only and command not in (*options.only, "pass"):
            continue
        found = measure(command, one, others.get(command, other))
        base = base or found["cpu"]
        print(f"{command:14s} {found['cpu']:7.2f} CPU s ({found['system']:.2f} of the system)  ", end="")
        print(f"{found['cpu'] / base:6.1f} passes  {found['gigabytes']:.2f} GB  ", end="")
        print(f"{found['result']}  load {os.getloadavg()[0]:.1f}", flush=True)
        if command in MACHINE:
            continue
        expected = {
            "compare": False, "compare, 5 %": False, "compare, moved": True, "compare, auto": True,
            "canonicalize": options.layers, "inspect": options.layers,
        }  # fmt: skip
        require(found["result"] == expected.get(command, found["result"]), f"{command} is right")
        require(command != "lineage" or found["result"] > 0.8, "the noisy copy is found")
        emit(TABLE, command, found["cpu"])
        emit(TABLE, command, base, LIMIT)
        emit("peak memory", command, found["gigabytes"], unit="GB")


if __name__ == "__main__":
    main()
