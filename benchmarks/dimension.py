"""Dimension of deep lightning networks: exact proof against float ranks of automatic differentiation, in one run.

Networks: l = 3 layers, a = d/2, t = 4 tokens. Peers, if torch is installed (in float64, single-threaded):
(a) one backward pass per output, then ``torch.linalg.matrix_rank``; (b) ``torch.func.jacrev`` and ``vmap``, then
singular values. Peers get the smallest number of samples with which the true rank can be reached, times a factor.
CPU seconds.

    python benchmarks/dimension.py [--quick] [--plot FILE.svg] [--dtype float32] [--factor 2] [--matrix-free]
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from math import ceil
from pathlib import Path

# Idle BLAS threads that spin would be counted as CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from attngeom.dimensions import dimension, upper_bound
from attngeom.dimensions.certificate import certify_dimension
from attngeom.dimensions.formulas import deep_lightning
from attngeom.dimensions.lower_bounds import choose_method
from attngeom.network import Architecture
from attngeom.verification import verify
from contract import LIMIT, emit, multiply_rate, require

try:
    import torch
except ImportError:
    torch = None


def network(d: int) -> Architecture:
    """Three layers of width d, attention width d/2, four tokens."""
    return Architecture((d, d, d, d), d // 2, tokens=4)


def count_samples(architecture: Architecture) -> int:
    """Outputs are L X Z with Z t×t of rank at most a: fewer samples than D / t² cannot show the whole rank."""
    t = architecture.tokens
    return ceil(upper_bound(architecture).value / (t * min(t, *architecture.attention, architecture.widths[-1]))) + 1


def torch_forward(parameters, X):
    for Q, K, V in parameters:
        X = (V @ X) @ ((K @ X).transpose(-1, -2) @ (Q @ X))
    return X


def torch_point(architecture: Architecture, dtype, factor: int):
    torch.manual_seed(0)
    d, a = architecture.widths[0], architecture.attention[0]
    shapes = [(a, d), (a, d), (d, d)] * architecture.num_layers
    flat = [torch.randn(shape, dtype=dtype) / d**0.5 for shape in shapes]
    X = torch.randn(factor * count_samples(architecture), d, architecture.tokens, dtype=dtype)
    return flat, X


def group(flat):
    return [tuple(flat[i : i + 3]) for i in range(0, len(flat), 3)]


def rank_by_backward(architecture: Architecture, dtype, factor: int) -> int:
    """Peer (a)."""
    flat, X = torch_point(architecture, dtype, factor)
    flat = [tensor.requires_grad_() for tensor in flat]
    rows = []
    for x in X:
        output = torch_forward(group(flat), x).reshape(-1)
        for entry in output:
            gradients = torch.autograd.grad(entry, flat, retain_graph=True)
            rows.append(torch.cat([gradient.reshape(-1) for gradient in gradients]))
    return int(torch.linalg.matrix_rank(torch.stack(rows)))


def rank_by_jacrev(architecture: Architecture, dtype, factor: int) -> int:
    """Peer (b)."""
    flat, X = torch_point(architecture, dtype, factor)

    def output(tensors, x):
        return torch_forward(group(tensors), x).reshape(-1)

    parts = torch.func.vmap(torch.func.jacrev(output), in_dims=(None, 0))(flat, X)
    matrix = torch.cat([part.reshape(X.shape[0] * X.shape[1] * X.shape[2], -1) for part in parts], dim=1)
    values = torch.linalg.svdvals(matrix)
    tolerance = max(matrix.shape) * torch.finfo(dtype).eps * values[0]
    return int((values > tolerance).sum())


def measure(task, *arguments):
    """Result and CPU seconds."""
    started = time.process_time()
    result = task(*arguments)
    return result, time.process_time() - started


def prove(architecture: Architecture) -> int:
    # A theorem answers at once: here the proof by computation is asked for.
    answer = dimension(architecture, prove=True, method=choose_method(architecture, upper_bound(architecture).value))
    computed = None if answer.lower is None else answer.lower.value
    require(answer.is_proven and computed == answer.upper.value, f"the computed bounds meet: {architecture}")
    return answer.dimension


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only, about 20 s")
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"], help="of the peers")
    parser.add_argument("--factor", type=int, default=1, help="multiplies the samples of the peers")
    parser.add_argument("--plot", type=Path, help="write a log-log plot of CPU seconds against parameters")
    parser.add_argument("--matrix-free", action="store_true", help="also prove a network of 101,124 parameters")
    options = parser.parse_args()
    peers = {}
    if torch is None:
        print("torch: not installed; its two peers are left out")
    else:
        torch.set_num_threads(1)
        dtype = getattr(torch, options.dtype)
        print(f"torch {torch.__version__}, {options.dtype}, one thread")
        peers = {"(a) backward": rank_by_backward, "(b) jacrev": rank_by_jacrev}
    both = [8, 12, 18] if options.quick else [8, 12, 18, 26]
    alone = [26, 36, 48] if options.quick else [36, 48, 62]
    prove(network(4))
    print(f"{'d':>4} {'parameters':>10} {'dimension':>9} {'ours s':>9}", end="")
    print("".join(f" {name + ' rank':>18} {'s':>9} {'ratio':>8}" for name in peers))
    series = {"attngeom, proven": []} | {name: [] for name in peers}
    for d in (*both, *alone):
        architecture = network(d)
        value, ours = measure(prove, architecture)
        require(value == deep_lightning(architecture).value, "the dimension is that of [G] Corollary 3.8")
        print(f"{d:>4} {architecture.num_parameters:>10} {value:>9} {ours:>9.3f}", end="", flush=True)
        series["attngeom, proven"].append((architecture.num_parameters, ours))
        table, case = (
            "dimension of three lightning layers, proven",
            f"d = {d}, {architecture.num_parameters} parameters",
        )
        emit(table, case, ours, size=architecture.num_parameters)
        # Elimination of what is left after the last map was cleared by hand.
        least = (value - d**2) ** 3 / 3 / multiply_rate()
        emit(table, case, least, LIMIT, size=architecture.num_parameters)
        for name, peer in peers.items() if d in both else ():
            rank, seconds = measure(peer, architecture, dtype, options.factor)
            wrong = "" if rank == value else " wrong"
            print(f" {str(rank) + wrong:>18} {seconds:>9.2f} {seconds / ours:>7.0f}×", end="", flush=True)
            series[name].append((architecture.num_parameters, seconds))
            emit(table, case, seconds, f"torch {name}{wrong}", size=architecture.num_parameters)
        print(flush=True)
    if options.matrix_free:
        prove_matrix_free()
    if options.plot:
        plot(series, options.plot)


def prove_matrix_free() -> None:
    """Three layers, a = d = t = 106: 101,124 parameters, never forming the Jacobian; then the recheck of the proof."""
    architecture = Architecture((106,) * 4, 106, tokens=106)
    case = f"{architecture.num_parameters:,} parameters"
    answer, seconds = measure(lambda given: dimension(given, prove=True, method="krylov"), architecture)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    require(answer.lower_bound == upper_bound(architecture).value, "the bounds meet")
    emit("matrix-free proof", case, seconds)
    emit("matrix-free proof: memory", case, memory, unit="MB")
    verdict, checking = measure(lambda proof: verify(proof, 100), certify_dimension(answer))
    require(verdict.valid, "the transcript passes the recheck")
    emit("matrix-free proof", f"{case}: recheck of the transcript", checking)
    print(
        f"matrix-free: {architecture.num_parameters:,} parameters, proven {answer.lower_bound:,} ="
        f" {upper_bound(architecture).value:,} (upper bound), {seconds:.0f} s CPU, peak memory {memory:.0f} MB;"
        f" recheck {checking:.0f} s CPU, valid: {verdict.valid}"
    )


def plot(series, path: Path) -> None:
    """CPU seconds against parameters, both logarithmic, with the fitted exponent of each curve's upper half."""
    import matplotlib

    matplotlib.use("svg" if path.suffix == ".svg" else "agg")
    import numpy as np
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name, points in series.items():
        if len(points) < 2:
            continue
        x, y = np.array(points).T
        half = len(x) // 2
        slope = np.polyfit(np.log(x[half:]), np.log(y[half:]), 1)[0] if len(x) - half > 1 else float("nan")
        axes.loglog(x, y, marker="o", label=f"{name} (exponent {slope:.1f})")
    axes.set_xlabel("parameters")
    axes.set_ylabel("CPU seconds")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    print(f"plot written to {path}")


if __name__ == "__main__":
    main()
