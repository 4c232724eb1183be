"""Dimensions of networks as they are written: our proofs against ranks of floating point Jacobians, in the same run.

A pre-norm block (two heads, SwiGLU, the last of two tokens). Beside it two ways without a proof: torch.func.jacrev with
singular values in float64, and the estimator of random Jacobians, one gradient for each of N + 8 random samples in
float32 and the rank that numpy.linalg.matrix_rank sees. Both need PyTorch; without it they are left out, and said so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import attngeom
from contract import LIMIT, emit, multiply_rate, require

WIDTHS, QUICK = ((4, 4), (6, 8), (10, 10), (16, 16), (26, 26), (38, 38)), ((4, 4), (4, 8), (6, 6), (6, 10), (8, 8))
MAX_FLOAT = 2_000
"""Weights up to which floating point Jacobians are made: above, N² numbers from jacrev take longer than the rest."""
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


def measure(d: int, hidden: int, seed: int) -> None:
    start = time.process_time()
    answer = attngeom.analyze(block, (TOKENS, d), weights=shapes(d, hidden), seed=seed)
    seconds = time.process_time() - start
    size = answer.parameters
    require(answer.is_proven and answer.unexplained == 0, f"proven: {answer.reason}")
    case = f"{size:,} weights, dimension {answer.dimension:,}"
    table = "dimension and symmetries of a block as it is written, proven"
    emit(table, case, seconds, size=size)
    emit(table, case, size**3 / multiply_rate(), LIMIT, size=size)
    print(f"{size:>6} {answer.dimension:>6}  proven {seconds:8.2f} s", flush=True)
    others = float_ranks(d, hidden, seed) if size <= MAX_FLOAT else {}
    if others is None:
        print(f"{'':14} PyTorch is not installed: ranks of floating point Jacobians are left out")
        return
    for name, (rank, used) in others.items():
        verdict = "right" if rank == answer.dimension else f"wrong by {rank - answer.dimension:+d}"
        emit(table, case, used, name, size=size)
        print(
            f"{'':14} {name}: {rank} ({verdict}), {used:.2f} s, ours takes {seconds / used:.1f} times as long",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for d, hidden in QUICK if options.quick else WIDTHS:
        measure(d, hidden, options.seed)


if __name__ == "__main__":
    main()
