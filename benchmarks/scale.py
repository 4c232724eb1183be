"""Large models: every command on one layer of Llama-3-8B in bfloat16, in units of one pass over the file.

CPU seconds of one thread and peak memory, each command in a process of its own; the pass converts every tensor to
float64 and sums it. Then two workers against one, by the clock (``--workers``: these alone), with the ceiling of the
machine, two processes that share nothing, and its load beside it: a quiet machine is wanted. ``--layers`` takes a
longer model, of which the folder has a shard for each layer.
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
from concurrent.futures import wait
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from attngeom.models import canonical, compare, fingerprint, lineage, open_model  # noqa: E402
from attngeom.models.inspection import inspect_model  # noqa: E402
from attngeom.models.samples import random_tensor, tensor_shapes  # noqa: E402
from attngeom.models.views import ModelView  # noqa: E402
from attngeom.processes import keep_memory, worker_processes  # noqa: E402
from contract import LIMIT, emit, require  # noqa: E402

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


COMMANDS: dict[str, Callable[[Path, Path], object]] = {
    "pass": lambda a, b: one_pass(a),
    "inspect": lambda a, b: inspect_model(open_model(a)).spec.layers,
    "fingerprint": lambda a, b: fingerprint(open_model(a)).digest,
    "compare": lambda a, b: compare(open_model(a), open_model(b), level="rounding").same_function,
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
    "lineage": lambda a, b, crew: round(
        lineage(open_model(b), [open_model(a)], crew=crew).parents[0].similarity or 0, 4
    ),
}


def ask_alone(command: str, one: Path, other: Path) -> str:
    return str(CREWS[command](one, other, 1))


def workers(pair: list[Path], halves: list[list[Path]], rounds: int) -> None:
    """How many times faster two workers are than one, by the clock: medians of rounds that alternate.

    The ceiling of the machine: two processes that run already and share nothing, each with half the layers.
    """
    print(f"{'':13s} {'one, s':>8s} {'two':>7s} {'ceiling':>8s} {'share':>6s}   load")
    with worker_processes(2) as running:
        for command, ask in CREWS.items():
            times: dict[int, list[float]] = {1: [], 2: [], 0: []}
            answers = set()
            for number in range(rounds + 1):
                for crew, measured in times.items():
                    start = time.perf_counter()
                    if crew:
                        answers.add(str(ask(pair[0], pair[1], crew)))
                    else:
                        wait([running.submit(ask_alone, command, *half) for half in halves])
                    # The first round warms the files and the processes.
                    measured += [time.perf_counter() - start] if number else []
            require(len(answers) == 1, f"{command}: two workers give what one gives")
            one, two, apart = (float(np.median(times[crew])) for crew in (1, 2, 0))
            print(f"{command:13s} {one:8.1f} {one / two:6.2f}x {one / apart:7.2f}x {apart / two:6.0%}   ", end="")
            print(f"{os.getloadavg()[0]:.1f}", flush=True)
            emit("two workers against one, and what the machine allows", command, one / two, unit="times")
            emit("two workers against one, and what the machine allows", command, one / apart, LIMIT, unit="times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a layer of width 512")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--workers", action="store_true", help="two workers against one alone")
    parser.add_argument("--only", nargs="*", choices=list(COMMANDS), help="these commands")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return report_measure(options.measure[0], Path(options.measure[1]), Path(options.measure[2]))
    config = {**(QUICK if options.quick else LLAMA), "num_hidden_layers": options.layers}
    with tempfile.TemporaryDirectory() as place:
        one = write_folder(config, Path(place) / "one")
        other = write_folder(config, Path(place) / "other", noise=0.2)
        base: float | None = None
        for command in () if options.workers else COMMANDS:
            if options.only and command not in (*options.only, "pass"):
                continue
            found = measure(command, one, other)
            base = base or found["cpu"]
            print(f"{command:13s} {found['cpu']:7.2f} CPU s ({found['system']:.2f} of the system)  ", end="")
            print(f"{found['cpu'] / base:6.1f} passes  ", end="")
            print(f"{found['gigabytes']:.2f} GB  {found['result']}", flush=True)
            expected = {"compare": False, "canonicalize": options.layers, "inspect": options.layers}
            require(found["result"] == expected.get(command, found["result"]), f"{command} is right")
            require(command != "lineage" or found["result"] > 0.8, "the noisy copy is found")
            emit(TABLE, command, found["cpu"])
            emit(TABLE, command, base, LIMIT)
            emit("peak memory", command, found["gigabytes"], unit="GB")
        if not options.only:
            wide = {**QUICK, "hidden_size": 2048, "intermediate_size": 7168, "num_hidden_layers": 8}
            chosen = QUICK if options.quick else wide
            chosen = {**chosen, "num_hidden_layers": max(2, chosen["num_hidden_layers"])}
            half = {**chosen, "num_hidden_layers": chosen["num_hidden_layers"] // 2}
            noises = (0.0, 0.2)
            pair = [write_folder(chosen, Path(place) / f"crew{i}", noise) for i, noise in enumerate(noises)]
            halves = [
                [write_folder(half, Path(place) / f"half{j}{i}", noise) for i, noise in enumerate(noises)]
                for j in range(2)
            ]
            workers(pair, halves, rounds=1 if options.quick else 3)
    return None


if __name__ == "__main__":
    main()
