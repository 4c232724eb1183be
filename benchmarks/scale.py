"""Large models: every command on one layer of Llama-3-8B in bfloat16, in units of one pass over the file.

CPU seconds of one thread and peak memory, each command in a process of its own, beside what the machine takes for a
product of matrices and for a gigabyte of fresh memory; the pass converts every tensor to float64 and sums it. Then two
workers against one (``--workers``: these alone), whole commands from start to end by the clock, with the ceiling of the
machine, two commands that share nothing: a quiet machine is wanted. They work on ``--layers`` of width 2,048, a shard
for each.
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
    compare,
    fingerprint,
    lineage,
    open_model,
    teleport,
    write_model,
)
from attngeom.models.inspection import inspect_model  # noqa: E402
from attngeom.models.samples import random_tensor, tensor_shapes  # noqa: E402
from attngeom.models.views import ModelView  # noqa: E402
from attngeom.processes import keep_memory  # noqa: E402
from contract import LIMIT, emit, require  # noqa: E402

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


CREWS = {
    "fingerprint": ("fingerprint", "{a}"),
    "inspect": ("inspect", "{a}"),
    "compare": ("compare", "{a}", "{b}", "--level", "rounding"),
    "exact compare": ("compare", "{a}", "{a}", "--level", "exact"),
    "canonicalize": ("canonicalize", "{a}", "--out", "{out}"),
    "lineage": ("lineage", "{b}", "{a}"),
}
"""The words of commands that take ``--workers``."""
NOT_SHARED = {"entropy": None, "bytes": None}
"""What no two answers share: the points of an exact comparison, and headers of files where each layer has its own."""


def start_command(command: str, pair: list[Path], out: Path, crew: int) -> subprocess.Popen[str]:
    words = [word.format(a=pair[0], b=pair[1], out=out) for word in CREWS[command]]
    program = "from attngeom.cli import main; main()"
    line = [sys.executable, "-c", program, "model", *words, "--workers", str(crew), "--json"]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


def run_commands(command: str, pairs: list[list[Path]], crew: int) -> tuple[float, float, list[Any]]:
    """Seconds by the clock, and of all processes, from the start to the end of the same command on several pairs at
    once; what each answered."""
    with tempfile.TemporaryDirectory(dir=pairs[0][0].parent) as place:
        take_memory()
        start, before = time.perf_counter(), os.times()
        running = [start_command(command, pair, Path(place) / f"out{i}", crew) for i, pair in enumerate(pairs)]
        texts = [process.communicate()[0] for process in running]
        wall, after = time.perf_counter() - start, os.times()
    require(all(process.returncode in (0, 1) for process in running), f"{command} has answers")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, spent, [{**json.loads(text.replace(place, "")), **NOT_SHARED} for text in texts]


def take_memory() -> None:
    """A process that takes four gigabytes and ends: for a moment they are at hand, as they always are without a host.

    The kernel of a guest hands memory back to its host after seconds, and is given it again for up to three seconds a
    gigabyte, by chance to the one or to the other that is measured.
    """
    subprocess.run([sys.executable, "-c", "import numpy; numpy.empty(2**29).fill(1.0)"], check=True)


def workers(pair: list[Path], half: list[Path], rounds: int, seconds: float) -> None:
    """How many times faster two workers are than one, whole commands by the clock; rounds alternate, as many as there
    is time for.

    The ceiling of the machine: two commands with one process each that share nothing, on half the layers.
    """
    print(f"{'':13s} {'one, s':>8s} {'two':>7s} {'ceiling':>8s} {'share':>6s} {'CPU, all':>9s}   load")
    for command in CREWS:
        found: dict[str, list[tuple[float, float]]] = {"one": [], "two": [], "apart": []}
        begin = time.perf_counter()
        for number in range(rounds):
            if number and (time.perf_counter() - begin) * (number + 1) / number > seconds:
                break
            *cost, answer = run_commands(command, [pair], 1)
            *shared, same = run_commands(command, [pair], 2)
            *apart, _ = run_commands(command, [half, half], 1)
            for key, costs in zip(found, (cost, shared, apart), strict=True):
                found[key].append((costs[0], costs[1]))
            require(answer == same, f"{command}: two workers give what one gives")
        (one, alone), (two, total), (apart_wall, _) = (np.median(costs, axis=0) for costs in found.values())
        print(f"{command:13s} {one:8.1f} {one / two:6.2f}x {one / apart_wall:7.2f}x {apart_wall / two:6.0%} ", end="")
        print(f"{total / alone:8.2f}x   {os.getloadavg()[0]:.1f}", flush=True)
        table = "two workers against one, and what the machine allows"
        emit(table, command, one / two, unit="times")
        emit(table, command, one / apart_wall, LIMIT, unit="times")


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
    parser.add_argument("--layers", type=int, default=24, help="of the model that two workers share; 24 by default")
    parser.add_argument("--workers", action="store_true", help="two workers against one alone")
    parser.add_argument("--short", action="store_true", help="less time for rounds")
    parser.add_argument("--only", nargs="*", choices=list(COMMANDS), help="these commands")
    parser.add_argument("--folder", type=Path, help="where the models are written; some 12 GB")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return report_measure(options.measure[0], Path(options.measure[1]), Path(options.measure[2]))
    config = QUICK if options.quick else LLAMA
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
            wide = {**QUICK, "hidden_size": 2048, "intermediate_size": 7168, "num_hidden_layers": options.layers}
            chosen = {**QUICK, "num_hidden_layers": 4} if options.quick else wide
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
            "canonicalize": 1, "inspect": 1,
        }  # fmt: skip
        require(found["result"] == expected.get(command, found["result"]), f"{command} is right")
        require(command != "lineage" or found["result"] > 0.8, "the noisy copy is found")
        emit(TABLE, command, found["cpu"])
        emit(TABLE, command, base, LIMIT)
        emit("peak memory", command, found["gigabytes"], unit="GB")


if __name__ == "__main__":
    main()
