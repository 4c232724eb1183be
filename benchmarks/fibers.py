"""Alignment and recovery figures: how many right verdicts, how many wrong ones, and the CPU time they take.

Every count is out of a fixed number of random networks with fixed seeds. A wrong answer is a verdict against the
construction of the pair, or recovered weights that do not compute the function; failures that are reported as failures
and verdicts "cannot be told" are counted apart. The peer of exact alignment is a pair of canonical forms.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import flint
import numpy as np
from flint import fmpq

from attngeom.canonical.form import canonical_form
from attngeom.comparison import compare
from attngeom.exact import QQ, RR
from attngeom.exact.domains import Balls, Domain
from attngeom.network import (
    Architecture,
    Symmetry,
    Weights,
    random_symmetry,
    random_unimodular_symmetry,
    random_weights,
)
from attngeom.recovery.recover import recover
from contract import emit, require

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.recovery.boxes import weights_box

BILLIONTH = fmpq(1, 10**9)
ACCURATE = 1e-6

DrawSymmetry = Callable[[Architecture, Domain, int], Symmetry]
DrawWeights = Callable[[Architecture, int], Weights]


def small_integers(architecture: Architecture, seed: int) -> Weights:
    return random_weights(architecture, QQ, seed)


def single_precision(architecture: Architecture, seed: int) -> Weights:
    """Random weights of single precision, read exactly."""
    vector = random_weights(architecture, RR, seed).vector().astype(np.float32)
    exact = np.array([fmpq(*float(x).as_integer_ratio()) for x in vector], dtype=object)
    return Weights.from_vector(architecture, exact, QQ)


def random_architecture(rng: np.random.Generator, max_width: int, max_layers: int) -> Architecture:
    """A network within the hypotheses of the theorems: equal hidden widths below the outer ones, a ≤ d."""
    hidden = int(rng.integers(2, max_width + 1))
    layers = int(rng.integers(1, max_layers + 1))
    outer = [int(rng.integers(hidden, max_width + 1)) for _ in range(2)]
    widths = (outer[0], *([hidden] * (layers - 1)), outer[1])
    attention = tuple(int(rng.integers(2, width + 1)) for width in widths[:-1])
    return Architecture(widths, attention)


def exact_pairs(
    name: str,
    draw_weights: DrawWeights,
    draw: DrawSymmetry,
    count: int,
    architecture_of: Callable[[np.random.Generator], Architecture],
) -> None:
    """Verdicts on (w, g·w), on (g·w, w) and on (w, g·w with one entry changed by 1e-9), in CPU time, drawing aside.

    The symmetry of equal pairs is proven with the verdict, and written out when it is asked for: timed apart.
    """
    kinds = ("equal", "reversed", "perturbed")
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    writing: dict[str, list[float]] = {kind: [] for kind in kinds}
    right, wrong = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    bits = 0
    for seed in range(count):
        # FLINT keeps freed integers for reuse. A long run scatters them over the memory, which doubles the times; a
        # comparison of two files starts without any.
        flint.ctx.cleanup()
        rng = np.random.default_rng(seed)
        architecture = architecture_of(rng)
        first = draw_weights(architecture, seed)
        second = draw(architecture, QQ, seed + 10**6).apply(first)
        vector = second.vector()
        bits = max(bits, max(x.height_bits() for x in vector))
        vector[int(rng.integers(len(vector)))] += BILLIONTH
        changed = Weights.from_vector(architecture, vector, QQ)
        pairs = ((first, second, True), (second, first, True), (first, changed, False))
        for kind, (one, other, truth) in zip(kinds, pairs):
            start = time.process_time()
            found = compare(one, other, seed=seed)
            seconds[kind].append(time.process_time() - start)
            start = time.process_time()
            _ = found.symmetry
            writing[kind].append(time.process_time() - start)
            right[kind] += found.same_function is truth and found.is_proven
            wrong[kind] += found.same_function is not None and found.same_function is not truth
    for kind in kinds:
        require(right[kind] == count, f"{kind} pairs: all right and proven")
        times = np.array(seconds[kind])
        case = f"{name}, {kind}, {count} pairs"
        emit("exact comparison: wrong verdicts", case, wrong[kind], unit="wrong")
        emit("exact comparison: median", case, float(np.median(times)))
        emit("exact comparison: 99th percentile", case, float(np.quantile(times, 0.99)))
        emit("exact comparison: largest", case, float(times.max()))
        emit("exact comparison: verdicts below 0.1 s", case, float(np.mean(times < 0.1) * 100), unit="%")
        emit("exact comparison: writing out the symmetry, median", case, float(np.median(writing[kind])))
        print(
            f"exact alignment, {name}, entries up to {bits} bits, {kind}: {right[kind]} of {count} right and proven,"
            f" {wrong[kind]} wrong; CPU median {np.median(times) * 1e3:.1f} ms, 99th percentile"
            f" {np.quantile(times, 0.99) * 1e3:.0f} ms, largest {times.max() * 1e3:.0f} ms, {np.mean(times < 0.1):.1%}"
            f" under 0.1 s; writing out the symmetry {np.median(writing[kind]) * 1e3:.1f} ms",
            flush=True,
        )


def exact_alignment(counts: tuple[int, int, int], max_width: int, max_layers: int) -> None:
    """Pairs of short integers, of single precision floats and of long fractions, each also at the largest size."""
    short, long, largest = counts
    size = f"d ≤ {max_width}, l ≤ {max_layers}"
    top = f"d = a = {max_width}, l = {max_layers}"
    kinds: tuple[tuple[str, DrawWeights, DrawSymmetry, int], ...] = (
        ("integers, unimodular g", small_integers, random_unimodular_symmetry, short),
        ("float32, unimodular g", single_precision, random_unimodular_symmetry, short),
        ("integers, general g", small_integers, random_symmetry, long),
    )
    for name, weights, draw, count in kinds:
        exact_pairs(
            f"{name}, {size}", weights, draw, count, lambda rng: random_architecture(rng, max_width, max_layers)
        )
        exact_pairs(
            f"{name}, {top}",
            weights,
            draw,
            largest,
            lambda rng: Architecture((max_width,) * (max_layers + 1), max_width),
        )


def exact_peer(width: int, layers: int) -> None:
    """Finding the symmetry, against the canonical forms of both networks over Q."""
    architecture = Architecture((width,) * (layers + 1), width)
    first = random_weights(architecture, QQ, 0)
    second = random_unimodular_symmetry(architecture, QQ, 1).apply(first)
    start = time.process_time()
    symmetry = compare(first, second).symmetry
    middle = time.process_time()
    forms = canonical_form(first), canonical_form(second)
    aligned, compared = middle - start, time.process_time() - middle
    require(symmetry is not None and symmetry.apply(first).equals(second), "the symmetry carries one to the other")
    pairs = [(x, y) for one, other in zip(*(form.layers for form in forms)) for x, y in zip(one.terms, other.terms)]
    equal = [QQ.equal(getattr(x, letter), getattr(y, letter)) for x, y in pairs for letter in "KQVO"]
    require(equal and all(equal), "both have the same canonical form")
    emit("exact comparison", f"d = a = {width}, l = {layers}", aligned)
    emit("exact comparison", f"d = a = {width}, l = {layers}", compared, "two canonical forms")
    print(
        f"exact weights d = a = {width}, l = {layers}: alignment {aligned:.3f} s, two canonical forms {compared:.3f} s,"
        f" ratio {aligned / compared:.2f}"
    )


def float_pairs(count: int, max_width: int, max_layers: int) -> None:
    for noise in (1e-12, 1e-10, 1e-8, 1e-6):
        tally = {"equal": [0, 0, 0], "different": [0, 0, 0]}
        seconds = []
        for seed in range(count):
            rng = np.random.default_rng(seed)
            architecture = random_architecture(rng, max_width, max_layers)
            first = random_weights(architecture, RR, seed)
            vector = random_symmetry(architecture, RR, seed + 10**6).apply(first).vector()
            noisy = vector * (1 + noise * rng.standard_normal(len(vector)))
            changed = noisy * (1 + 1e5 * noise * rng.standard_normal(len(vector)))
            for name, other, truth in (("equal", noisy, True), ("different", changed, False)):
                start = time.process_time()
                found = compare(first, Weights.from_vector(architecture, other, RR), tolerance=3 * noise, seed=seed)
                seconds.append(time.process_time() - start)
                place = 2 if found.same_function is None else 0 if found.same_function is truth else 1
                tally[name][place] += 1
        size = f"d ≤ {max_width}, l ≤ {max_layers}, noise {noise:.0e}, {2 * count} pairs"
        require(not any(x[1] for x in tally.values()), "no verdict on floats is wrong")
        require(all(x[0] > 0 for x in tally.values()), "verdicts are given")
        emit("float comparison: wrong verdicts", size, sum(x[1] for x in tally.values()), unit="wrong")
        emit("float comparison: median", size, float(np.median(seconds)))
        emit("float comparison: largest", size, max(seconds))
        for name, (right, wrong, open_) in tally.items():
            print(
                f"float alignment, d ≤ {max_width}, l ≤ {max_layers}, noise {noise:.0e}, {name:9}: {right} right,"
                f" {wrong} wrong, {open_} not told, of {count}; CPU median {np.median(seconds):.2f} s,"
                f" largest {max(seconds):.1f} s"
            )


def recovery(name: str, count: int, draw: Callable[[np.random.Generator], Architecture], domain: Domain) -> None:
    good, failed, wrong, errors, seconds = 0, 0, 0, [], []
    for seed in range(count):
        architecture = draw(np.random.default_rng(seed))
        weights = random_weights(architecture, RR, seed)
        start = time.process_time()
        found = recover(weights_box(weights, domain), architecture, seed=seed)
        seconds.append(time.process_time() - start)
        if not found.weights:
            failed += 1
            continue
        # The hidden weights are the judge: the outputs of the recovered ones must agree with theirs.
        verdict = compare(weights, found.weights[0], tolerance=ACCURATE, seed=seed)
        error = verdict.difference or 0.0
        is_good = verdict.same_function is True and error < ACCURATE
        good += is_good
        wrong += not is_good
        errors.append(error)
    require(wrong == 0 and good > 0 and good + failed == count, "recovered weights are right, or a failure is told")
    emit("recovery: wrong answers", f"{name}, {count} networks", wrong, unit="wrong")
    emit("recovery: found", f"{name}, {count} networks", good, unit="networks")
    emit("recovery: mean time", f"{name}, {count} networks", float(np.mean(seconds)))
    shown = f"median error {np.median(errors):.1e}, largest {max(errors):.1e}" if errors else "no weights"
    print(
        f"recovery, {name}: {good} of {count}, {failed} reported as failures, {wrong} wrong; {shown};"
        f" {np.mean(seconds):.2f} s each"
    )


def layers_of(depth: int, max_width: int) -> Callable[[np.random.Generator], Architecture]:
    def draw(rng: np.random.Generator) -> Architecture:
        width = int(rng.integers(2, max_width + 1))
        last = int(rng.integers(1, width + 1)) if depth > 1 else int(rng.integers(1, max_width + 1))
        attention = int(rng.integers(2, width + 1))
        return Architecture((*([width] * depth), last), attention, causal=bool(rng.integers(4) == 0))

    return draw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small counts, about twenty seconds")
    parser.add_argument("--only", choices=["exact", "peer", "float", "deep", "1", "2", "3", "4"], help="one part alone")
    parser.add_argument("--long-pairs", type=int, default=1000, help="exact pairs with entries of hundreds of bits")
    options = parser.parse_args()
    quick = options.quick
    parts: dict[str, Callable[[], None]] = {
        "exact": lambda: exact_alignment(
            *(((20, 20, 2), 16, 4) if quick else ((1000, options.long_pairs, 10), 64, 12))
        ),
        "peer": lambda: exact_peer(*((16, 3) if quick else (32, 6))),
        "float": lambda: float_pairs(*((10, 8, 3) if quick else (1000, 16, 4))),
        "deep": lambda: float_pairs(*((3, 8, 8) if quick else (100, 64, 12))),
        "1": lambda: recovery("one layer, floats", 20 if quick else 1000, layers_of(1, 5), RR),
        "2": lambda: recovery("two layers, floats", 4 if quick else 200, layers_of(2, 4), RR),
        "3": lambda: recovery("three layers, floats", 1 if quick else 100, layers_of(3, 3), RR),
        "4": lambda: recovery(
            "four layers, any precision", 1 if quick else 100, layers_of(4, 3 if not quick else 2), Balls(64)
        ),
    }
    for name, part in parts.items():
        if options.only in (None, name):
            part()


if __name__ == "__main__":
    main()
