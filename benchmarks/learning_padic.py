"""Learning coefficients against p-adic volumes: an exact count in place of sampling near a point.

    python benchmarks/learning_padic.py [--random N | --products N --softmax N] [--seed S] [--quick]

The measure of {w ∈ w_0 + p Z_p^N : f(w) ≡ f(w_0) mod p^n} falls like n^(m−1) p^(−2λn), f the outputs at random integer
inputs. A solution mod p^n has solutions mod p^(n+1) above it if and only if one linear system over GF(p) is solvable,
and they are then an affine space of known size: particles are lifted without rejection of their own, and only the share
of solvable systems is estimated. Lightning networks of any depth, heads, mask and skip. Where all particles die out the
row says so. ``--random`` draws weights of random ranks and compares `learning_coefficient` wherever it decides.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.learning.cases import POINTS
from tests.learning.padic import (
    Run,
    draw_factors,
    draw_softmax,
    lightning_outputs,
    listed,
    matrices,
    multiply,
    predicted_exponent,
    random_tensor,
    same_ranks,
    seen_layers,
    virtual_weights,
    volume_exponents,
)

from attngeom.exact import QQ
from attngeom.learning import learning_coefficient
from attngeom.learning.chains import product_pair, product_ranks
from attngeom.learning.pairs import Pair
from attngeom.network import Architecture, Weights
from contract import emit, require

LEVELS, TAIL = 13, 8
PARTICLES = 12000
MAX_PARAMETERS = 40
AGREES = 0.1
DRAWN = (
    Architecture((2, 2), 1, 2), Architecture((2, 2), 2, 2), Architecture((2, 1), 2, 2), Architecture((2, 3), 1, 2),
    Architecture((3, 2), 1, 2), Architecture((2, 2), 1, 2, causal=True), Architecture((2, 2), 2, 3, causal=True),
    Architecture((2, 2), 1, 2, heads=2, value_width=1), Architecture((2, 2, 2), 1, 2),
    Architecture((2, 2, 2), (1, 2), 2, residual=True), Architecture((2, 2), 1, 2, residual=True),
    Architecture((2, 2), 2, 2, heads=1, value_width=2), Architecture((2, 2, 1), 2, 2), Architecture((3, 3), 2, 2),
)  # fmt: skip


def exponents(weights: Weights, seed: int) -> list[float]:
    """Those of the outputs of a lightning network at random integer inputs."""
    architecture, start = weights.architecture, listed(weights)
    samples = 2 * len(start) // (architecture.widths[-1] * architecture.tokens) + 5
    X = np.random.default_rng(seed).integers(-4, 5, size=(samples, architecture.widths[0], architecture.tokens))
    return volume_exponents(partial(lightning_outputs, architecture, X=X), start, seed, PARTICLES, LEVELS)


def compare(name: str, weights: Weights, value: Any, multiplicity: int, seeds: tuple[int, ...] = (0, 1)) -> bool | None:
    """Print and emit one row: the mean exponent of the last levels for each seed, and what (λ, m) predicts there."""
    predicted = predicted_exponent(value, multiplicity, LEVELS, TAIL)
    means = [float(np.mean(found[-TAIL:])) for seed in seeds if (found := exponents(weights, seed))]
    verdict = max(abs(mean - predicted) for mean in means) <= AGREES if means else None
    for seed, mean in zip(seeds, means):
        emit("exponent of p-adic volumes", f"{name}, run {seed + 1}", round(mean, 3), unit="exponent")
        emit("exponent of p-adic volumes", f"{name}, run {seed + 1}", round(predicted, 3), "(λ, m)", unit="exponent")
    require(verdict is not False, f"the exponents of {name} are those of (λ, m)")
    word = {True: "agrees", False: "DISAGREES", None: "no particle is left"}[verdict]
    shown = " ".join(f"{mean:.3f}" for mean in means)
    print(f"{name:40} ({value}, {multiplicity})  predicted {predicted:.3f}  counted {shown}  {word}", flush=True)
    return verdict


def draw(number: int, seed: int) -> None:
    """Random points; what is not decided is counted, not compared."""
    rng = np.random.default_rng(seed)
    verdicts: list[bool | None] = []
    undecided = 0
    for index in range(number):
        architecture = DRAWN[index % len(DRAWN)]
        tensors = {name: random_tensor(rng, *shape) for name, shape in architecture.tensor_shapes()}
        weights = Weights.from_tensors(architecture, {name: QQ.convert(x) for name, x in tensors.items()}, QQ)
        answer = learning_coefficient(weights)
        if answer.value is None or answer.multiplicity is None:
            undecided += 1
            continue
        name = f"{architecture.widths} {answer.theorem} #{index}"
        verdicts.append(compare(name, weights, answer.value, answer.multiplicity, (0,)))
    print(
        f"{verdicts.count(True)} agree, {verdicts.count(False)} disagree, {verdicts.count(None)} died out,"
        f" {undecided} undecided of {number}, seed {seed}"
    )


def drawn_maps(rng: np.random.Generator, what: str) -> Iterator[tuple[str, Pair | None, Run, np.ndarray]]:
    """Products of three or four matrices with Theorem P; or deep softmax as w ↦ (M_1, …, M_s, L) with C, C2, C3."""
    while True:
        if what == "products":
            length = int(rng.integers(3, 5))
            factors = draw_factors(rng, length, 6 - length)
            pair = product_pair(product_ranks([QQ.convert(F) for F in factors], QQ))
            yield "P", pair, multiply(factors), np.concatenate([F.ravel() for F in factors])
            continue
        weights = draw_softmax(rng)
        if not same_ranks(weights) or not np.any(matrices(weights)[1]):
            continue
        answer = learning_coefficient(weights)
        run = virtual_weights(weights.architecture, seen_layers(weights))
        yield answer.theorem, answer.pair, run, listed(weights)


def count_again(pair: Pair, run: Run, start: np.ndarray) -> None:
    """Ten times the particles, the last 8 of 17 levels, three seeds: where m > 1, rare particles carry the volume."""
    means = [np.mean(volume_exponents(run, start, 1000 + seed, 60000, 18)[-8:] or [np.nan]) for seed in range(3)]
    predicted = predicted_exponent(pair.value, pair.multiplicity, 18, 8)
    print(f"  again: predicted {predicted:.3f}, counted {' '.join(f'{mean:.3f}' for mean in means)}", flush=True)


def draw_maps(what: str, number: int, seed: int) -> None:
    """Exponents of ``number`` random points, by theorem; 6,000 particles, the last 6 of 10 levels."""
    rng, counts = np.random.default_rng(seed), Counter[tuple[str, str]]()
    for name, pair, run, start in islice(drawn_maps(rng, what), number):
        if pair is None:
            counts[name, "undecided"] += 1
            continue
        found = volume_exponents(run, start, int(rng.integers(1000)), 6000, 11)
        predicted = predicted_exponent(pair.value, pair.multiplicity, 11, 6)
        mean = float(np.mean(found[-6:])) if found else None
        verdict = "died out" if mean is None else "agree" if abs(mean - predicted) <= AGREES else "disagree"
        counts[f"{name}, m = 1" if pair.multiplicity == 1 else f"{name}, m > 1", verdict] += 1
        if verdict == "disagree":
            print(f"{name} {pair}: predicted {predicted:.3f}, counted {mean:.3f}")
            count_again(pair, run, start)
    for (name, verdict), count in sorted(counts.items()):
        print(f"{name}: {count} {verdict}")
        emit(f"p-adic volumes of {what}", f"{name}, {verdict}", count, unit="points")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0, help="random points instead of the table")
    parser.add_argument("--products", type=int, default=0, help="random products of matrices instead of the table")
    parser.add_argument("--softmax", type=int, default=0, help="random points of deep softmax instead of the table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="the first point alone")
    arguments = parser.parse_args()
    if arguments.products or arguments.softmax:
        for what in ("products", "softmax"):
            draw_maps(what, getattr(arguments, what), arguments.seed)
        return 0
    if arguments.random:
        draw(arguments.random, arguments.seed)
        return 0
    points = [point for point in POINTS if point.weights.architecture.rule.is_polynomial]
    points = [point for point in points if point.weights.architecture.num_parameters <= MAX_PARAMETERS]
    require(points, "there are points to count")
    for point in points[:1] if arguments.quick else points:
        compare(point.name, point.weights, point.value, point.multiplicity)
    return 0


if __name__ == "__main__":
    sys.exit(main())
