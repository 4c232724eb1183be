"""How often an answer was wrong: cases tried, wrong, undecided, crashed, with seeds, for every kind of verdict.

    python benchmarks/reliability.py --quick            a few minutes
    python benchmarks/reliability.py --files 10000 --pairs 10000 --certificates 2000
    python benchmarks/reliability.py --mutations 12     mutated models too, where torch and transformers are installed
    python benchmarks/reliability.py --heads 1000       pairs with a small head beside a large one, and the like, alone
    python benchmarks/reliability.py --chains 10000     pairs made by chains of exact steps, judged by balls, alone
    python benchmarks/reliability.py --disguises 200    disguises of a model of every family, for lineage, alone
    python benchmarks/reliability.py --points 1000      ranks at rational points where they drop, alone

The truth of every case is known from how it was made, or from an oracle that shares no code with the answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.comparison.adversary import Pair, exact_pairs
from tests.comparison.adversary_chains import chains
from tests.comparison.adversary_heads import HEADS
from tests.comparison.adversary_more import all_float_pairs
from tests.dimensions.points import tally
from tests.fuzz.harness import fuzz
from tests.fuzz.targets import TARGETS
from tests.verification import attacks

from attngeom import compare
from contract import emit, require

COLUMNS = ("tried", "wrong", "undecided", "crashed", "seconds")


def row(name: str, tried: int, wrong: int, undecided: int, crashed: int, seconds: float) -> int:
    """One line of the table; the number of failures."""
    require(tried > 0, f"something was tried: {name}")
    emit("failures: wrong or crashed", f"{name}, {tried:,} tried", wrong + crashed, unit="failures")
    print(f"{name:42}{tried:10}{wrong:10}{undecided:10}{crashed:10}{seconds:10.1f}", flush=True)
    return wrong + crashed


def compare_pairs(pairs: Iterator[Pair], name: str) -> int:
    """Both orders of every pair: a verdict that depends on the order is wrong, too."""
    found: dict[str, Counter[str]] = {}
    started, clock = time.perf_counter(), {}
    for pair in pairs:
        counts = found.setdefault(pair.name, Counter())
        begun = time.perf_counter()
        counts["tried"] += 1
        try:
            one, other = (compare(*two).same_function for two in ((pair.first, pair.second), (pair.second, pair.first)))
        except Exception as error:
            counts["crashed"] += 1
            print(f"  {pair.name}: {type(error).__name__}: {error}")
            continue
        finally:
            clock[pair.name] = clock.get(pair.name, 0.0) + time.perf_counter() - begun
        if pair.same is not None and one is None:
            counts["undecided"] += 1
        if {one, other} == {True, False} or (pair.same is not None and (not pair.same) in (one, other)):
            counts["wrong"] += 1
    failures = 0
    for kind, counts in found.items():
        figures = (counts[column] for column in COLUMNS[:4])
        failures += row(f"{name}: {kind}"[:41], *figures, clock[kind])
    total = sum(found.values(), Counter())
    row(f"{name}, all", *(total[column] for column in COLUMNS[:4]), time.perf_counter() - started)
    return failures


def compare_chains(number: int, seed: int) -> int:
    """Pairs made by chains of exact steps; every fifth in both orders.

    "Different" is wrong where the steps keep the function, "same" where balls of 30 tolerances are disjoint; undecided
    counts where the steps keep it, or balls of 1,000 tolerances are disjoint.
    """
    found: dict[str, Counter[str]] = {}
    clock: dict[str, float] = {}
    for index, pair in enumerate(chains(number, seed)):
        name = "equal" if pair.same else "different" if pair.same is False else "truth not known"
        counts, begun = found.setdefault(name, Counter()), time.perf_counter()
        counts["tried"] += 1
        try:
            one = other = compare(pair.first, pair.second, tolerance=pair.tolerance).same_function
            if index % 5 == 0:
                other = compare(pair.second, pair.first, tolerance=pair.tolerance).same_function
        except Exception as error:
            counts["crashed"] += 1
            print(f"  seed {pair.seed}: {type(error).__name__}: {error}")
            continue
        finally:
            clock[name] = clock.get(name, 0.0) + time.perf_counter() - begun
        is_wrong = one is not other or (pair.same is True and one is False) or (not pair.may_be_same and one is True)
        counts["wrong"] += is_wrong
        counts["undecided"] += pair.same is not None and one is None
        if is_wrong:
            print(f"  seed {pair.seed}: {one}, {other}; {pair.steps}")
    figures = ((name, [counts[column] for column in COLUMNS[:4]]) for name, counts in found.items())
    return sum(row(f"chains: {name}", *numbers, clock[name]) for name, numbers in figures)


def rank_points(number: int, seed: int) -> int:
    """Ranks at special rational points: wrong if bounds contradict each other, undecided if they do not meet."""
    started = time.perf_counter()
    failures = 0
    for name, counts in sorted(tally(number, seed).items()):
        failures += row(f"ranks at points: {name}", *(counts[column] for column in COLUMNS[:4]), 0.0)
    print(f"{time.perf_counter() - started:.1f} s")
    return failures


def fuzz_readers(count: int, seed: int) -> int:
    """Altered files: a fault is a crash, a hang, a message that is not one line, or a file that is not finite."""
    failures = 0
    for target in TARGETS:
        started = time.perf_counter()
        found = fuzz(target, seed, count)
        for trial, wrong in found.faults[:5]:
            print(f"  {target.name}, seed {trial.seed}: {wrong}")
        seconds = time.perf_counter() - started
        failures += row(f"altered files: {target.name}", found.trials, 0, found.codes[3], len(found.faults), seconds)
    return failures


def attack_certificates(count: int, seed: int) -> int:
    """Certificates altered by a forger and sealed again: accepting a false claim is wrong."""
    started = time.perf_counter()
    counts, accepted = attacks.tally(count, seed)
    return row("forged certificates", counts["tried"], len(accepted), 0, 0, time.perf_counter() - started)


def disguise_models(count: int, seed: int) -> int:
    """Similarities of `lineage` under random disguises of child or parent, by family: a change by 1e-8 is wrong."""
    from tests.models.cases import FAMILIES, reference
    from tests.models.test_lineage import disguised, noisy, numbers

    failures, largest = 0, 0.0
    for family in FAMILIES:
        started = time.process_time()
        parent = reference(family)
        child = noisy(parent, 0.1, seed)
        plain, worst, wrong = numbers(child, parent), 0.0, 0
        for trial in range(count):
            rng = 1000 * seed + trial
            pair = (disguised(child, rng), parent) if trial % 2 else (child, disguised(parent, rng))
            change = float(np.abs(numbers(*pair) - plain).max())
            worst, wrong = max(worst, change), wrong + (not change < 1e-8)
        seconds = time.process_time() - started
        failures += row(f"disguises: {family}, {worst:.0e}", count, wrong, 0, 0, seconds)
        largest = max(largest, worst)
    print(f"largest change of a similarity: {largest:.1e}")
    return failures


def mutate_models(count: int, seed: int) -> int:
    """Mutations and conversions of checkpoints of all families; truth by the outputs of transformers."""
    try:
        from tests.models.live_mutations import FAMILIES, run_all
    except ImportError as error:
        print(f"mutated models: not run, {error.name} is not installed")
        return 0
    started = time.perf_counter()
    counts, errors = run_all(list(FAMILIES), seed, count)
    judged = {name: number for name, number in counts.items() if name.startswith("truth")}
    undecided = sum(number for name, number in judged.items() if name.endswith("undecided"))
    wrong = [line for line in errors if line.startswith(("WRONG", "BLIND", "HEADLINE"))]
    crashed = [line for line in errors if line.startswith(("REFUSED", "WRITE"))]
    seconds = time.perf_counter() - started
    return row("mutated models", sum(judged.values()), len(wrong), undecided, len(crashed), seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small counts")
    parser.add_argument("--files", type=int, default=10_000, help="altered files for each reader")
    parser.add_argument("--pairs", type=int, default=10_000, help="pairs of weights, exact and float each")
    parser.add_argument("--certificates", type=int, default=2_000, help="altered certificates")
    parser.add_argument("--mutations", type=int, default=0, help="mutated tensors of each model (torch, transformers)")
    parser.add_argument("--heads", type=int, default=0, help="float pairs of several heads, and nothing else")
    parser.add_argument("--chains", type=int, default=0, help="float pairs made by exact steps, and nothing else")
    parser.add_argument("--disguises", type=int, default=0, help="disguises of each family, and nothing else")
    parser.add_argument("--points", type=int, default=0, help="ranks at special rational points, and nothing else")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files, pairs, certificates = (
        (40, 150, 60) if options.quick else (options.files, options.pairs, options.certificates)
    )
    print(f"seed {options.seed}")
    print(f"{'':42}" + "".join(f"{column:>10}" for column in COLUMNS))
    if options.heads:
        rngs = (np.random.default_rng([options.seed, index]) for index in range(options.heads))
        made = (HEADS[index % len(HEADS)](rng) for index, rng in enumerate(rngs))
        return 1 if compare_pairs(made, "several heads") else 0
    if options.chains or options.points or options.disguises:
        failures = compare_chains(options.chains, options.seed) if options.chains else 0
        failures += rank_points(options.points, options.seed) if options.points else 0
        failures += disguise_models(options.disguises, options.seed) if options.disguises else 0
        require(failures == 0, "nothing was wrong, and nothing crashed")
        return 0
    failures = compare_pairs(exact_pairs(pairs, options.seed), "exact pairs")
    failures += compare_pairs(all_float_pairs(pairs, options.seed), "float pairs")
    failures += attack_certificates(certificates, options.seed)
    failures += fuzz_readers(files, options.seed)
    failures += mutate_models(options.mutations, options.seed) if options.mutations else 0
    require(failures == 0, "nothing was wrong, and nothing crashed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
