"""CPU seconds of float comparisons, and of the gauge of least norm that they start from, by factors and by Grams.

    python benchmarks/comparison.py --quick       a few pairs
    python benchmarks/comparison.py --pairs 20    pairs of each architecture

A pair is w and g · w with relative errors of 1e-10; verdicts are counted, so that speed is not bought with answers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable

import numpy as np

from attngeom.canonical.least_norm import rough_gauge
from attngeom.comparison import compare
from attngeom.exact import RR
from attngeom.limits.trials import ROUGH_NORM_SWEEPS
from attngeom.network import Architecture, Weights, random_symmetry, random_weights
from attngeom.network.symmetry import linear_factors, tensors_of
from contract import emit, require

ARCHITECTURES = {
    "12 layers of width 6": Architecture((6,) * 13, 4),
    "6 layers, 2 heads, width 8": Architecture((8,) * 7, 4, heads=2, value_width=4),
    "6 layers, 2 heads, skips": Architecture((8,) * 7, 4, heads=2, value_width=4, residual=True),
    "6 softmax layers of width 16": Architecture((16,) * 7, 4, kind="softmax"),
    "4 layers of width 64": Architecture((64,) * 5, 16),
}


def equal_pair(architecture: Architecture, seed: int) -> tuple[Weights, Weights]:
    first = random_weights(architecture, RR, seed)
    vector = random_symmetry(architecture, RR, seed + 1000).apply(first).vector()
    errors = 1e-10 * np.random.default_rng(seed).standard_normal(len(vector))
    return first, Weights.from_vector(architecture, vector * (1 + errors), RR)


def gauge_by_factors(weights: Weights) -> float:
    """The norm after the sweeps of :func:`rough_gauge`, by singular values of the factors."""
    tensors = tensors_of(weights)
    for _ in range(ROUGH_NORM_SWEEPS):
        for factor in linear_factors(weights.architecture):
            tensors |= factor.fix(tensors)[1]
    return float(np.sqrt(sum(np.sum(np.square(tensor)) for tensor in tensors.values())))


def gauge_by_grams(weights: Weights) -> float:
    """The norm that :func:`rough_gauge` leads to."""
    element = rough_gauge(weights)
    require(element is not None, "there is a gauge of least norm")
    assert element is not None
    return float(np.linalg.norm(element.apply(weights).vector()))


def seconds(work: Callable[[], float]) -> tuple[float, float]:
    """CPU seconds, and what came out."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two pairs of each architecture")
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    columns = ("median", "largest", "gauge", "by factors")
    print(f"{'':30}" + "".join(f"{column:>11}" for column in columns) + "  verdicts")
    for name, architecture in ARCHITECTURES.items():
        times, gauges, factors = [], [], []
        verdicts: Counter[bool | None] = Counter()
        for seed in range(2 if options.quick else options.pairs):
            first, second = equal_pair(architecture, seed)
            started = time.process_time()
            verdicts[compare(first, second).same_function] += 1
            times.append(time.process_time() - started)
            taken, norm = seconds(lambda w=first: gauge_by_grams(w))  # type: ignore[misc]
            other, least = seconds(lambda w=first: gauge_by_factors(w))  # type: ignore[misc]
            gauges.append(taken)
            factors.append(other)
            require(abs(norm / least - 1) < 1e-3, "both ways lead to the same norm")
        figures = (statistics.median(times), max(times), statistics.median(gauges), statistics.median(factors))
        missed = verdicts[False] + verdicts[None]
        counts = f"{verdicts[True]} same, {verdicts[False]} different, {verdicts[None]} undecided"
        require(missed == 0, f"all pairs are found equal: {name}")
        emit("float comparison of equal pairs", f"{name}: median", figures[0])
        emit("float comparison of equal pairs", f"{name}: largest", figures[1])
        emit("the gauge of least norm", name, figures[2])
        emit("the gauge of least norm", name, figures[3], "by singular values of the factors")
        emit("float comparison: verdicts that are not right", name, missed, unit="verdicts")
        print(f"{name:30}" + "".join(f"{figure:10.2f}s" for figure in figures) + f"  {counts}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
