"""The volume of {K ≤ ε} near points with known (λ, m), by splitting: no chains at a temperature, no gradients.

    python benchmarks/learning_volume.py --out docs/logs/learning-volume.json --plot docs/figures/learning.png

K is the mean squared difference of outputs over a fixed sample of normal inputs, from the forward pass alone. Weights
are uniform in the cube |w − w_0| ≤ RADIUS. Each level keeps the half of the particles with the smaller K, so that
log vol{K ≤ ε} falls by log 2; random moves inside {K ≤ ε} spread the particles again. The slope of log vol against
log ε in WINDOW is compared with the slope that ε^λ (log 1/ε)^(m−1) has there. RADIUS, WINDOW and the seeds were fixed
before any run was looked at; every run is reported.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.learning.cases import POINTS, Point

from attngeom.files import write_atomic
from contract import emit, require

RADIUS = 0.5
WINDOW = (-14.0, -6.0)
"""Natural logarithms of ε, for all points."""
SEEDS = (0, 1)
PARTICLES = 1500
SWEEPS = 30
INPUTS = {2: 8, 3: 12}
"""For each width: more outputs than a layer has coefficients."""
AGREES = 0.1
NAMES = (
    "regular",
    "not aligned",
    "aligned",
    "aligned, a = 2",
    "rank one, V of rank two",
    "all zero",
    "Q = V = 0",
    "d' = 1, V = 0",
    "d' = 1, all zero",
    "a = 4, K = Q = 0",
    "d = 3, d' = 1, not aligned",
    "d = 3, d' = 1, aligned",
    "softmax, K = Q = 0",
    "softmax, V = 0",
    "sigmoid, K = Q = 0",
    "causal, aligned",
    "skip, A_2 = 0",
    "skip, dead layer",
)


class Loss:
    """K at many weights at once: axis 0 of the weights is the particle."""

    def __init__(self, point: Point) -> None:
        self.architecture = point.weights.architecture
        self.slots = {name: (slot, shape) for (name, shape), slot in self._places()}
        rng = np.random.default_rng(12345)
        d = self.architecture.widths[0]
        self.X = rng.standard_normal((d, self.architecture.tokens, INPUTS[d], 1))
        # Unit tensors: the point keeps its ranks, and the cube has one meaning for all points.
        tensors = {name: np.array(array.tolist(), dtype=float) for name, array in point.weights.tensors()}
        scaled = [tensor / (np.linalg.norm(tensor) or 1.0) for tensor in tensors.values()]
        self.start = np.concatenate([tensor.ravel() for tensor in scaled])
        self.goal = self.outputs(self.start[None])

    def _places(self) -> Any:
        return zip(self.architecture.tensor_shapes(), self.architecture.slots().values())

    def outputs(self, w: Any) -> Any:
        X = self.X
        for index in range(self.architecture.num_layers):
            Q, K, V = (self._tensor(w, f"layers.{index}.{letter}") for letter in "QKV")
            q, k, v = (np.einsum("akN,kinN->ainN", M, np.broadcast_to(X, (*X.shape[:3], len(w)))) for M in (Q, K, V))
            S = np.einsum("ajnN,ainN->jinN", k, q)
            if self.architecture.kind == "softmax":
                S = np.exp(S - S.max(axis=0))
                S = S / S.sum(axis=0)
            elif self.architecture.kind == "sigmoid":
                S = 1 / (1 + np.exp(-S))
            if self.architecture.causal:
                S = S * np.triu(np.ones(S.shape[:2]))[:, :, None, None]
            out = np.einsum("rjnN,jinN->rinN", v, S)
            X = X + out if self.architecture.residual else out
        return X

    def _tensor(self, w: Any, name: str) -> Any:
        slot, shape = self.slots[name]
        return np.ascontiguousarray(w[:, slot].T).reshape(*shape, len(w))

    def __call__(self, w: Any) -> Any:
        difference = self.outputs(w) - self.goal
        return 0.5 * np.sum(difference**2, axis=(0, 1, 2)) / self.X.shape[2]


def move(w: Any, K: Any, level: float, loss: Loss, rng: np.random.Generator) -> None:
    """One sweep inside {K ≤ level}: steps of many sizes, in all or in one coordinate, or along other particles."""
    N, n = w.shape
    halves = rng.permutation(N).reshape(2, -1)
    for mine, others in ((halves[0], halves[1]), (halves[1], halves[0])):
        size = np.exp(rng.uniform(min(0.5 * math.log(level) - 2, -1), 0, (len(mine), 1)))
        step = size * RADIUS * rng.standard_normal((len(mine), n))
        single = rng.random(len(mine)) < 0.3
        step[single] *= rng.integers(0, n, (int(single.sum()), 1)) == np.arange(n)
        along = rng.random(len(mine)) < 0.4
        first, second = rng.choice(others, (2, int(along.sum())))
        step[along] = np.exp(rng.uniform(-4, 0, (int(along.sum()), 1))) * (w[first] - w[second])
        trial = w[mine] + step
        values = np.full(len(mine), np.inf)
        inside = np.all(np.abs(trial - loss.start) <= RADIUS, axis=1)
        values[inside] = loss(trial[inside])
        kept = values <= level
        w[mine[kept]], K[mine[kept]] = trial[kept], values[kept]


def volumes(point: Point, seed: int) -> tuple[list[float], list[float]]:
    """log ε and log vol{K ≤ ε} down to the end of the window."""
    rng, loss = np.random.default_rng(seed), None
    loss = Loss(point)
    w = loss.start + rng.uniform(-RADIUS, RADIUS, (PARTICLES, len(loss.start)))
    K = loss(w)
    levels, logs, volume = [], [], 0.0
    while True:
        order = np.argsort(K)[: PARTICLES // 2]
        level = float(K[order[-1]])
        volume -= math.log(2)
        levels.append(math.log(level))
        logs.append(volume)
        if levels[-1] < WINDOW[0]:
            return levels, logs
        chosen = np.concatenate([order, order])
        w, K = w[chosen].copy(), K[chosen].copy()
        for _ in range(SWEEPS):
            move(w, K, level, loss, rng)


def slope(x: Any, y: Any) -> float:
    inside = (np.asarray(x) >= WINDOW[0]) & (np.asarray(x) <= WINDOW[1])
    return float(np.polyfit(np.asarray(x)[inside], np.asarray(y)[inside], 1)[0])


def run(point: Point) -> dict[str, Any]:
    begun, found, curves = time.process_time(), [], []
    for seed in SEEDS:
        levels, logs = volumes(point, seed)
        found.append(round(slope(levels, logs), 3))
        curves.append([[round(x, 3) for x in levels], [round(y, 3) for y in logs]])
    x = np.linspace(*WINDOW, 200)
    expected = slope(x, float(point.value) * x + (point.multiplicity - 1) * np.log(-x))
    difference = max(abs(value - expected) for value in found)
    return {
        "point": point.name,
        "lambda": str(point.value),
        "multiplicity": point.multiplicity,
        "predicted_slope": round(expected, 3),
        "slopes": found,
        "agrees": difference <= AGREES,
        "cpu_seconds": round(time.process_time() - begun, 1),
        "curves": curves,
    }


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    for index, row in enumerate(rows):
        colour = f"C{index % 10}"
        label = f"{row['point']}: ({row['lambda']}, {row['multiplicity']})"
        for levels, logs in row["curves"]:
            axes.plot(levels, logs, ".", ms=3, color=colour, label=label)
            label = None
        levels, logs = (np.array(x) for x in row["curves"][0])
        x = np.linspace(*WINDOW, 50)
        y = float(eval_fraction(row["lambda"])) * x + (row["multiplicity"] - 1) * np.log(-x)
        middle = np.interp(-10.0, levels[::-1], logs[::-1]) - np.interp(-10.0, x, y)
        axes.plot(x, y + middle, "-", lw=0.8, color=colour)
    axes.set_xlabel("log ε")
    axes.set_ylabel("log vol{K ≤ ε}")
    axes.set_title("Volumes by splitting (dots, two seeds) and the slopes of the theorems (lines)")
    axes.legend(fontsize=7, ncols=2)
    figure.savefig(path, dpi=110)


def eval_fraction(text: str) -> float:
    numerator, _, denominator = text.partition("/")
    return int(numerator) / int(denominator or 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--points", nargs="*", default=NAMES)
    parser.add_argument("--quick", action="store_true", help="the first point alone")
    arguments = parser.parse_args()
    points = {point.name: point for point in POINTS}
    rows = []
    for name in arguments.points[:1] if arguments.quick else arguments.points:
        row = run(points[name])
        rows.append(row)
        require(row["agrees"], f"the slopes of {name} are those of (λ, m)")
        for seed, measured in enumerate(row["slopes"]):
            emit("slope of log volume against log ε", f"{name}, run {seed + 1}", measured, unit="slope")
            emit(
                "slope of log volume against log ε",
                f"{name}, run {seed + 1}",
                row["predicted_slope"],
                "(λ, m)",
                unit="slope",
            )
        shown = " ".join(f"{value:.3f}" for value in row["slopes"])
        print(
            f"{name:28} ({row['lambda']}, {row['multiplicity']})  predicted {row['predicted_slope']:.3f}"
            f"  measured {shown}  {'agrees' if row['agrees'] else 'DISAGREES'}  {row['cpu_seconds']:.0f} s",
            flush=True,
        )
        if arguments.out is not None:
            settings = {"radius": RADIUS, "window": WINDOW, "seeds": SEEDS, "particles": PARTICLES, "sweeps": SWEEPS}
            write_atomic(arguments.out, json.dumps({"settings": settings, "rows": rows}) + "\n")
    if arguments.plot is not None:
        plot(rows, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
