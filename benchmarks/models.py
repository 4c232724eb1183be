"""Real transformers at full size: time and memory of canonical forms, comparisons, fingerprints and streamed folders.

Random weights with the shapes of GPT-2 small and of a layer of Llama-3-8B, and a synthetic folder of more than a
billion parameters in shards. A hundred random symmetries per family are recovered from the reference checkpoints of
the tests. CPU seconds of one thread; memory is the peak of a process of its own.
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
sys.path.insert(0, str(ROOT))

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from attngeom.groups import Gauge  # noqa: E402
from attngeom.models import (  # noqa: E402
    Sampler,
    act,
    canonical,
    canonicalize,
    compare,
    fold,
    open_model,
    random_symmetry,
    recover,
    teleport,
    write_model,
)
from attngeom.models.fingerprints import layer_fingerprint  # noqa: E402
from attngeom.models.layer import distance  # noqa: E402
from attngeom.models.layer_comparison import compare_layers  # noqa: E402
from attngeom.models.model import Model  # noqa: E402
from attngeom.models.samples import random_model, random_tensor, tensor_shapes  # noqa: E402
from attngeom.models.views import ModelView  # noqa: E402
from contract import LIMIT, emit, read_rate, require  # noqa: E402

TABLE = "real sizes"

GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 1,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 1000, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": False,
}  # fmt: skip
BILLION = {**LLAMA, "num_hidden_layers": 6}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def peak_memory() -> float:
    """Largest resident memory of this program so far, in GB, without that of its parent at the fork."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


def gpt2_small() -> dict[str, Any]:
    model = random_model(GPT2, dtype=np.float32)

    def canonical_layers(source: Model, gauge: Gauge = "echelon") -> list[Any]:
        view = ModelView(source)
        return [canonical(source.block(i), view.layer(i), gauge) for i in range(source.layers)]

    form, seconds = timed(lambda: canonical_layers(model))
    moved = teleport(model, 1).moved()
    orbit = max(distance(a, b) for a, b in zip(form, canonical_layers(moved)))
    pairs = zip(canonical_layers(model, "balanced"), canonical_layers(moved, "balanced"))
    balanced = max(distance(a, b) for a, b in pairs)
    found, comparing = timed(lambda: compare(model, moved, level="rounding"))
    state = {name: moved.tensors.raw(name) for name in moved.tensors}
    name = "transformer.h.7.attn.c_attn.weight"
    spoiled = state[name].copy()
    spoiled[5, 70] *= 1.001
    wrong = compare(model, open_model({**state, name: spoiled}, GPT2), level="rounding", unit=2.0**-53)
    places = [f"{n} [{m.index}]" for layer in wrong.layers for n, m in layer.wrong]
    require(found.same_function is True, "the moved model computes the same")
    require(max(orbit, balanced) < 1e-3, "canonical forms of both agree")
    require(wrong.same_function is False and any(name in place for place in places), "one changed entry is found")
    read = sum(values.nbytes for values in state.values())
    emit(TABLE, "GPT-2 small, 12 layers: canonicalise", seconds)
    emit(TABLE, "GPT-2 small, 12 layers: canonicalise", read / read_rate(), LIMIT)
    emit(TABLE, "GPT-2 small, 12 layers: compare", comparing)
    emit(TABLE, "GPT-2 small, 12 layers: compare", 2 * read / read_rate(), LIMIT)
    return {
        "canonicalise_cpu_s": seconds, "orbit": orbit, "orbit_balanced": balanced,
        "compare_cpu_s": comparing, "same": found.same_function,
        "one_entry": places,
    }  # fmt: skip


def llama_layer() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder) / "one", Path(folder) / "two"
        one.mkdir()
        rng = np.random.default_rng(0)
        asked = tensor_shapes(LLAMA).items()
        state = {name: random_tensor(rng, name, shape, ml_dtypes.bfloat16) for name, shape in asked}
        save_file(state, one / "model.safetensors")
        del state
        (one / "config.json").write_text(json.dumps(LLAMA))
        model = open_model(one)
        form, seconds = timed(lambda: canonical(model.block(0), ModelView(model).layer(0)))
        require(form is not None, "there is a canonical form")
        del form
        peak = peak_memory()
        printed, printing = timed(lambda: layer_fingerprint(model, 0))
        require(printed == layer_fingerprint(model, 0), "the fingerprint is the same twice")
        write_model(teleport(model, 1), two, "keep")
        writing = peak_memory()
        command = [sys.executable, __file__, "--pair", str(one), str(two)]
        compared = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        require(compared["same"] is not False, "the moved layer is not called another one")
        least = (one / "model.safetensors").stat().st_size / read_rate()
    comparing = compared["compare_bf16_cpu_s"]
    for name, value, passes in (("canonicalise", seconds, 1), ("fingerprint", printing, 1), ("compare", comparing, 2)):
        emit(TABLE, f"a layer of Llama-3-8B, bf16: {name}", value)
        emit(TABLE, f"a layer of Llama-3-8B, bf16: {name}", passes * least, LIMIT)
    emit("memory", "a layer of Llama-3-8B, bf16: canonicalise", peak, unit="GB")
    emit("memory", "a layer of Llama-3-8B, bf16: compare", compared["compare_peak_gb"], unit="GB")
    return {
        "canonicalise_cpu_s": seconds, "canonicalise_peak_gb": peak, "fingerprint_cpu_s": printing,
        "teleport_and_write_peak_gb": writing, **compared,
    }  # fmt: skip


def compare_pair(one: Path, two: Path) -> dict[str, Any]:
    """The first layers of two folders compared, in a process of its own for the sake of its memory."""
    left, right = ModelView(open_model(one)), ModelView(open_model(two))
    (found, _), seconds = timed(lambda: compare_layers(left, right, 0, 2.0**-8))
    peak = peak_memory()
    ratio = found.worst.ratio if found.worst else None
    return {"compare_bf16_cpu_s": seconds, "same": found.same, "worst_ratio": ratio, "compare_peak_gb": peak}


def billion() -> dict[str, Any]:
    """A folder of 1.3 billion parameters in shards: canonicalised, written, checked."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "source", Path(folder) / "out"
        source.mkdir()
        table = {}
        asked = tensor_shapes(BILLION)
        rng = np.random.default_rng(0)
        for layer in range(BILLION["num_hidden_layers"] + 1):
            file = f"model-{layer:05d}.safetensors"
            own = [n for n in asked if f".layers.{layer}." in n] if layer < BILLION["num_hidden_layers"] else None
            own = [n for n in asked if ".layers." not in n] if own is None else own
            part = {name: random_tensor(rng, name, asked[name], ml_dtypes.bfloat16) for name in own}
            save_file(part, source / file)
            del part
            table |= dict.fromkeys(own, file)
        (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
        (source / "config.json").write_text(json.dumps(BILLION))
        model = open_model(source)
        start = time.process_time()
        written = write_model(canonicalize(model), out, "keep")
        seconds = time.process_time() - start
        require(written.check.same_function is not False, "what was written computes the same")
    peak = peak_memory()
    case = "1.3 billion parameters, bf16, in shards: canonicalise, write, check"
    emit(TABLE, case, seconds)
    emit(TABLE, case, 2 * model.spec.parameters / read_rate(), LIMIT)
    emit("memory", case, peak, unit="GB")
    return {
        "parameters": model.spec.parameters, "cpu_s": seconds, "peak_gb": peak, "same": written.check.same_function
    }  # fmt: skip


def symmetries(count: int) -> dict[str, Any]:
    """Random symmetries of the reference checkpoints, condition 25, recovered."""
    found = {}
    for folder in sorted((ROOT / "tests/models/data").iterdir()):
        if not (folder / "config.json").is_file():
            continue
        model, good, worst = open_model(folder), 0, 0.0
        for seed in range(count):
            layer = seed % model.layers
            block, weights = model.block(layer), model.layer(layer)
            ordered = bool(model.place(layer)[0].relative_buckets)
            symmetry = random_symmetry(block, weights, Sampler(seed, 25.0), ordered=ordered)
            goal = fold(block, weights)
            mismatch = distance(
                recover(block, goal, fold(block, act(block, weights, symmetry)), ordered=ordered).moved, goal
            )
            good, worst = good + (mismatch < 1e-12), max(worst, mismatch)
        require(good == count, f"all symmetries of {folder.name} are recovered")
        emit("random symmetries recovered", f"{folder.name}, of {count}", good, unit="recovered")
        found[folder.name] = {"recovered": good, "of": count, "worst": worst}
    require(found, "there are reference checkpoints")
    return found


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "gpt2_small": gpt2_small,
    "llama_8b_layer": llama_layer,
    "billion": billion,
    "symmetries": lambda: symmetries(100),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="symmetries only, ten per family")
    parser.add_argument("--part", choices=PARTS, help="run one part in this process")
    parser.add_argument("--pair", nargs=2, type=Path, metavar="DIR", help="compare the first layers of two folders")
    options = parser.parse_args()
    if options.pair:
        print(json.dumps(compare_pair(*options.pair)))
        return
    if options.part:
        print(json.dumps(PARTS[options.part]()))
    elif options.quick:
        print(json.dumps(symmetries(10), indent=1))
    else:
        for part in PARTS:
            command = [sys.executable, __file__, "--part", part]
            result = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            print(part, json.dumps(json.loads(result), indent=1), flush=True)


if __name__ == "__main__":
    main()
