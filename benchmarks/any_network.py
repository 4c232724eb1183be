"""Dimensions of networks as they are written: our proofs against ranks of floating point Jacobians, in the same run.

A pre-norm block (two heads, SwiGLU, the last of two tokens), N = 100 to 20,000. Ours is held against the count by hand.
Beside it two ways without a proof, up to N = 10,000: torch.func.jacrev with singular values in float64, and the
estimator of random Jacobians, one gradient for each of N + 8 random samples in float32 and the rank that
numpy.linalg.matrix_rank sees. Both need PyTorch; without it they are left out, and said so.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import attngeom
from contract import LIMIT, emit, multiply_rate, require

WIDTHS = ((4, 4), (6, 8), (10, 10), (16, 16), (26, 26), (38, 38), (50, 66))
QUICK = ((4, 4), (4, 8), (6, 6), (6, 10), (8, 8))
MAX_FLOAT = 11_000
"""Weights up to which floating point Jacobians are made: beyond, their singular values alone take hours."""
TABLE = "dimension and symmetries of a block as it is written, proven"
ERROR = "how far the same answers are from the count by hand"
MEMORY = "memory of the same, at its peak"
TOKENS = 2


def block(w: Any, x: Any, exp: Callable[[Any], Any] = np.exp) -> Any:
    """The last token of a pre-norm block, with functions that NumPy and PyTorch share."""

    def norm(y: Any, gain: Any) -> Any:
        return y / ((y * y).mean(-1, keepdims=True) + 1e-6) ** 0.5 * gain

    def heads(y: Any) -> Any:
        return y.reshape(TOKENS, 2, -1).swapaxes(0, 1)

    h = norm(x, w["g0"])
    q, k, v = (heads(h @ w[name].T) for name in "qkv")
    scores = exp(q @ k.swapaxes(1, 2))
    mixed = (scores / scores.sum(-1, keepdims=True)) @ v
    x = x + mixed.swapaxes(0, 1).reshape(TOKENS, -1) @ w["o"].T
    h = norm(x, w["g1"])
    gate = h @ w["gate"].T
    return (x + (gate / (1 + exp(-gate)) * (h @ w["up"].T)) @ w["down"].T)[-1]


def shapes(d: int, hidden: int) -> dict[str, tuple[int, ...]]:
    square = dict.fromkeys("qkvo", (d, d))
    return {**square, "g0": (d,), "g1": (d,), "gate": (hidden, d), "up": (hidden, d), "down": (d, hidden)}


def float_ranks(d: int, hidden: int, seed: int) -> dict[str, tuple[int, float]] | None:
    """What floating point says, with CPU seconds; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    generator = torch.Generator().manual_seed(seed)
    sizes = shapes(d, hidden)
    names, count = list(sizes), sum(int(np.prod(size)) for size in sizes.values())
    weights = {n: torch.randn(sizes[n], generator=generator, dtype=torch.float64) / d**0.5 for n in names}
    start = time.process_time()
    samples = torch.randn(-(-count // d) + 4, TOKENS, d, generator=generator, dtype=torch.float64)
    whole = torch.func.vmap(torch.func.jacrev(lambda w, x: block(w, x, torch.exp)), (None, 0))(weights, samples)
    jacobian = torch.cat([whole[n].reshape(len(samples) * d, -1) for n in names], 1)
    values = torch.linalg.svdvals(jacobian)
    rank = int((values > 1e-10 * values[0]).sum())
    answers = {"jacrev and SVD, float64": (rank, time.process_time() - start)}
    start = time.process_time()
    single = {name: array.float() for name, array in weights.items()}
    forms = torch.randn(count + 8, d, generator=generator)
    inputs = torch.randn(count + 8, TOKENS, d, generator=generator)
    gradient = torch.func.grad(lambda w, x, c: (block(w, x, torch.exp) * c).sum())
    rows = torch.func.vmap(gradient, (None, 0, 0))(single, inputs, forms)
    table = torch.cat([rows[n].reshape(count + 8, -1) for n in names], 1).numpy()
    answers["random Jacobian, float32"] = (int(np.linalg.matrix_rank(table)), time.process_time() - start)
    return answers


def count_by_hand(d: int, hidden: int) -> int:
    """All weights without the gains of both norms, GL of the keys and of the values of two heads, scales of units."""
    weights = sum(int(np.prod(size)) for size in shapes(d, hidden).values())
    return weights - 2 * d - 2 * 2 * (d // 2) ** 2 - hidden


def measure(d: int, hidden: int, seed: int) -> tuple[int, str, float]:
    """Our answer, which must be the count by hand, proven; its size, the words for it, and its CPU seconds."""
    start = time.process_time()
    answer = attngeom.analyze(block, (TOKENS, d), weights=shapes(d, hidden), seed=seed)
    seconds = time.process_time() - start
    require(answer.is_proven and answer.unexplained == 0, f"proven: {answer.reason}")
    require(answer.dimension == count_by_hand(d, hidden), f"{answer.dimension} is the count by hand")
    size, peak = answer.parameters, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    case = f"{size:,} weights, dimension {answer.dimension:,}"
    emit(TABLE, case, seconds, size=size)
    emit(TABLE, case, size**3 / multiply_rate(), LIMIT, size=size)
    emit(ERROR, case, 0, size=size, unit="dimensions")
    emit(MEMORY, case, peak, size=size, unit="MB")
    emit(MEMORY, case, 8 * size**2 / 2**20, LIMIT, size=size, unit="MB")
    print(f"{size:>6} {answer.dimension:>6}  proven {seconds:8.2f} s {peak:8.0f} MB", flush=True)
    return size, case, seconds


def compare(d: int, hidden: int, seed: int, size: int, case: str, seconds: float) -> None:
    """What floating point says of the same block, and whether it is right."""
    others = float_ranks(d, hidden, seed)
    if others is None:
        print(f"{'':14} PyTorch is not installed: ranks of floating point Jacobians are left out")
        return
    for name, (rank, used) in others.items():
        right = count_by_hand(d, hidden)
        verdict = "right" if rank == right else f"wrong by {rank - right:+d}"
        emit(TABLE, case, used, name, size=size)
        emit(ERROR, case, rank - right, name, size=size, unit="dimensions")
        ratio = f"{used / seconds:.2f} times what ours takes"
        print(f"{size:>6} {name}: {rank} ({verdict}), {used:.2f} s, {ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    widths = QUICK if options.quick else WIDTHS
    # All of ours come first, in growing order: then the peak of the process is that of the last one.
    measured = [(d, hidden, *measure(d, hidden, options.seed)) for d, hidden in widths]
    for d, hidden, size, case, seconds in measured:
        if size <= MAX_FLOAT:
            compare(d, hidden, options.seed, size, case, seconds)


if __name__ == "__main__":
    main()
