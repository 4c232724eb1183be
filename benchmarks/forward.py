"""Time and peak memory of one lightning layer against the number of tokens.

Compares, in one process tree, the O(t) form (plain and causal) with the definition (token by token) and with the
t×t order. Each measurement runs in a child process, so that its peak memory is its own. The growth column is the
slope of log time, or of log memory, against log t: 1 is linear, 2 quadratic. Memory is what arrays hold at most.
Where torch is installed, the same products by torch are a peer.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from attngeom.exact import RR
from attngeom.network import Architecture, Weights, random_weights
from attngeom.network.attention import Attention, Lightning
from attngeom.network.layer import project
from contract import LIMIT, OURS, emit, multiply_rate, require


def mix_with(mix: Callable[..., np.ndarray]) -> Callable[[Weights, np.ndarray], np.ndarray]:
    """One layer of one head with a given way to mix its values."""

    def run(weights: Weights, X: np.ndarray) -> np.ndarray:
        ((head,),) = weights.layers
        q, k, v = (project(X.T, matrix, RR) for matrix in (head.Q, head.K, head.V))
        return mix(weights.architecture.rule, q, k, v, RR).T

    return run


def run_torch(weights: Weights, X: np.ndarray) -> np.ndarray:
    """The same products by torch, in the same order."""
    import torch

    torch.set_num_threads(1)
    ((head,),) = weights.layers
    x = torch.from_numpy(X.T)
    q, k, v = (x @ torch.from_numpy(np.ascontiguousarray(matrix.T)) for matrix in (head.Q, head.K, head.V))
    return (q @ (k.T @ v)).numpy().T


def by_definition(weights: Weights, X: np.ndarray) -> np.ndarray:
    """One layer of one head, score by score: column i is Σ_j (x_jᵀ A x_i) V x_j."""
    ((head,),) = weights.layers
    A, V = head.attention_matrix(RR), head.value_matrix(RR)
    return np.stack([sum((x_j @ A @ x_i) * (V @ x_j) for x_j in X.T) for x_i in X.T], axis=1)


METHODS = {
    "linear": (mix_with(Lightning.mix_linear), False),
    "linear causal": (mix_with(Lightning.mix_linear), True),
    "t×t order": (mix_with(Attention.mix), False),
    **({"torch": (run_torch, False)} if importlib.util.find_spec("torch") else {}),
    "definition": (by_definition, False),
}
# The slow forms stop where they would dominate the run.
LARGEST = {"linear": 65536, "linear causal": 65536, "t×t order": 8192, "definition": 512, "torch": 65536}


def measure(method: str, d: int, t: int) -> dict[str, float]:
    """CPU seconds and peak memory of one call, in this process."""
    run, causal = METHODS[method]
    weights = random_weights(Architecture((d, d), d, tokens=t, causal=causal), RR, 0)
    X = RR.random((d, t), np.random.default_rng(1))
    tracemalloc.start()
    found = run(weights, X)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The last columns, which see all tokens with a mask or without.
    ((head,),) = weights.layers
    expected = head.value_matrix(RR) @ X @ (X.T @ (head.attention_matrix(RR) @ X[:, -1:]))
    require(found.shape == (d, t), "there is an output for every token")
    error = np.linalg.norm(found[:, -1:] - expected) / np.linalg.norm(expected)
    require(error < 1e-9, f"{method} gives the output of the definition")
    start, repeats = time.process_time(), 0
    while repeats < 1 or (time.process_time() - start < 0.2 and repeats < 100):
        run(weights, X)
        repeats += 1
    seconds = (time.process_time() - start) / repeats
    # torch does not say what it holds.
    return {"seconds": seconds, "megabytes": float("nan") if method == "torch" else held / 2**20}


def run_child(method: str, d: int, t: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", method, "--width", str(d), "--tokens", str(t)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def slope(points: list[tuple[int, float]]) -> float:
    """Least-squares slope of log y against log t over the upper half of the sizes."""
    upper = [(math.log(t), math.log(y)) for t, y in points[len(points) // 2 :] if y > 0]
    if len(upper) < 2:
        return float("nan")
    x, y = np.array(upper).T
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--child", choices=list(METHODS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments.width, arguments.tokens)))
        return
    sizes = [64, 256, 1024, 4096] if arguments.quick else [64, 256, 512, 1024, 4096, 8192, 16384, 32768, 65536]
    cap = 512 if arguments.quick else None
    print(f"one lightning layer, d = a = {arguments.width}; CPU seconds (ratio to linear), memory beyond the input\n")
    print(f"{'tokens':>8}" + "".join(f"{name:>28}" for name in METHODS))
    times: dict[str, list[tuple[int, float]]] = {name: [] for name in METHODS}
    memory: dict[str, list[tuple[int, float]]] = {name: [] for name in METHODS}
    for t in sizes:
        row, base = f"{t:>8}", 0.0
        for name in METHODS:
            fast = name.startswith("linear") or name == "torch"
            largest = LARGEST[name] if cap is None or fast else min(LARGEST[name], 2 * cap)
            if t > largest:
                row += f"{'—':>28}"
                continue
            result = run_child(name, arguments.width, t)
            base = result["seconds"] if name == "linear" else base
            times[name].append((t, result["seconds"]))
            who = OURS if name == "linear" else name
            emit("one lightning layer against its tokens", f"t = {t}", result["seconds"], who, size=t)
            if name != "torch":
                emit("memory of one lightning layer", f"t = {t}", result["megabytes"], who, size=t, unit="MB")
            memory[name].append((t, result["megabytes"]))
            row += f"{result['seconds']:>11.2g}s {result['seconds'] / base:>5.1f}× {result['megabytes']:>6.1f}MB"
        print(row, flush=True)
        # Three projections, kᵀ v and q (kᵀ v): five products of d², for each token.
        least = 5 * arguments.width**2 * t / multiply_rate()
        emit("one lightning layer against its tokens", f"t = {t}", least, LIMIT, size=t)
        # The output alone.
        emit("memory of one lightning layer", f"t = {t}", 8 * arguments.width * t / 2**20, LIMIT, size=t, unit="MB")
    print(f"{'slope':>8}" + "".join(f"   time {slope(times[n]):4.2f}, memory {slope(memory[n]):4.2f}" for n in METHODS))


if __name__ == "__main__":
    main()
