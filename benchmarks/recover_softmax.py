"""Softmax networks from values: how many random networks come back, and how well.

Every run is counted: networks with d_i = d, a = max(d − 1, 1), t tokens, normal weights scaled by 1/√d, seeds 0, 1, ….
"Right" means that (M, L) agree to 1e-10 relative to their largest entry, "wrong" that they do not and no warning is
given: an outcome other than recovered, or a reason that says how badly the values fix the matrices.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from attngeom.exact import RR
from attngeom.layer.blackbox import BlackBox
from attngeom.network import Architecture, forward, random_weights
from attngeom.recovery.recover import recover
from contract import emit, require

SETS = [(2, 2, 20, 2), (2, 3, 20, 2), (2, 4, 20, 2), (3, 2, 20, 2), (3, 3, 20, 2), (3, 4, 20, 2), (4, 3, 100, 2),
        (2, 8, 5, 2), (5, 3, 20, 2), (3, 3, 20, 4)]  # fmt: skip


def run(layers: int, d: int, tokens: int, seed: int) -> tuple[str, float, float]:
    """The outcome, the error of (M, L) and the CPU seconds of one network."""
    architecture = Architecture((d,) * (layers + 1), max(d - 1, 1), tokens=tokens, kind="softmax")
    weights = random_weights(architecture, RR, seed)
    start = time.process_time()
    found = recover(BlackBox(lambda X: forward(weights, X)), architecture)
    seconds = time.process_time() - start
    if not found.weights:
        return found.outcome, float("nan"), seconds
    one, two = weights.virtual(), found.weights[0].virtual()
    pairs = zip((*one.M, one.L), (*two.M, two.L))
    error = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)
    return "warned" if "only" in found.reason else found.outcome, error, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="run this share of the networks")
    parser.add_argument("--quick", action="store_true", help="a tenth of the networks of at most three layers")
    options = parser.parse_args()
    share = 0.1 if options.quick else options.share
    print("layers  d  t  networks  right  wrong  not found  median error  largest error  CPU seconds each")
    for layers, d, number, tokens in [one for one in SETS if not options.quick or (one[0] <= 3 and one[1] <= 4)]:
        runs = [run(layers, d, tokens, seed) for seed in range(max(1, round(number * share)))]
        errors = [error for _, error, _ in runs if np.isfinite(error)]
        right = sum(error <= 1e-10 for error in errors)
        wrong = sum(outcome == "recovered" and not error <= 1e-10 for outcome, error, _ in runs)
        shown = [float(np.median(errors)), max(errors)] if errors else [float("nan")] * 2
        case = f"{layers} layers, d = {d}, t = {tokens}, {len(runs)} networks"
        require(wrong == 0, f"no wrong network without a warning: {case}")
        require(right > 0, f"networks are recovered: {case}")
        emit("softmax networks from their values: wrong without a warning", case, wrong, unit="networks")
        emit("softmax networks from their values: right", case, right, unit="networks")
        emit("softmax networks from their values: mean time", case, float(np.mean([x[2] for x in runs])))
        print(
            f"{layers:6}  {d}  {tokens}  {len(runs):8}  {right:5}  {wrong:5}  {len(runs) - right - wrong:9}"
            f"  {shown[0]:12.1e}  {shown[1]:13.1e}  {np.mean([x[2] for x in runs]):16.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
