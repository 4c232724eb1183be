"""Fuzz every reader for a given time and print a table: ``python -m tests.fuzz --seconds 3600 --seed 1``."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.harness import fuzz
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="time for all targets together")
    parser.add_argument("--count", type=int, default=10**9, help="files for each target at the most")
    parser.add_argument("--seed", type=int, default=0, help="the first file of each target")
    parser.add_argument("--target", action="append", choices=[target.name for target in TARGETS])
    options = parser.parse_args()
    chosen = [target for target in TARGETS if options.target is None or target.name in options.target]
    faults = 0
    print(
        f"{'target':22} {'files':>8} {'done':>7} {'no':>7} {'refused':>8} {'undecided':>9} {'faults':>6} {'slowest':>8}"
    )
    for target in chosen:
        found = fuzz(target, options.seed, options.count, options.seconds / len(chosen))
        codes = found.codes
        print(
            f"{target.name:22}{found.trials:10}{codes[0]:10}{codes[1]:10}{codes[2]:10}{codes[3]:10}"
            f"{len(found.faults):10}{found.slowest:9.1f}s",
            flush=True,
        )
        for trial, wrong in found.faults[:20]:
            print(f"  seed {trial.seed}: {wrong}", flush=True)
        faults += len(found.faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
