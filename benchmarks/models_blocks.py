"""Formula against rank for block kinds of transformers: all named kinds and random ones; prints mismatches and times.

A kind counts as a mismatch if the formula is known and the two bounds of the proof do not both equal it. Kinds for
which no formula is known are counted apart and replaced by further draws.

Run: python benchmarks/models_blocks.py [--quick] [--random 1000] [--first-seed 0]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.models.kinds import Kind, named_kinds
from tests.models.random_kinds import KindSampler

from attngeom.models.proofs import RankProof, prove_block
from contract import emit, require


def prove(kind: Kind, seed: int) -> RankProof:
    return prove_block(kind.block, kind.width, seed=seed, buckets=kind.buckets, subject=kind.name)


def named() -> int:
    """Mismatches among the named kinds."""
    start = time.process_time()
    proofs = [prove(kind, 0) for kind in named_kinds()]
    wrong = [proof for proof in proofs if not proof.agrees]
    for proof in wrong:
        print(f"  mismatch: {proof}")
    require(proofs and not wrong, "formulas of named kinds are the ranks")
    emit("formula against rank: mismatches", f"{len(proofs)} named kinds", len(wrong), unit="mismatches")
    print(f"named kinds: {len(proofs)}, mismatches: {len(wrong)}, {time.process_time() - start:.1f} CPU s")
    return len(wrong)


def random(count: int, first: int) -> int:
    """Mismatches among random kinds that have a formula."""
    start, wrong, tried, unknown, slowest = time.process_time(), 0, 0, 0, 0.0
    seed = first
    while tried < count:
        before = time.process_time()
        proof = prove(KindSampler(seed).kind(), seed)
        slowest = max(slowest, time.process_time() - before)
        seed += 1
        if proof.formula is None:
            unknown += 1
            continue
        tried += 1
        if not proof.agrees:
            wrong += 1
            print(f"  mismatch: {proof}", flush=True)
        if tried % 100 == 0:
            print(f"  {tried} random kinds, {wrong} mismatches, {time.process_time() - start:.0f} CPU s", flush=True)
    seconds = time.process_time() - start
    require(not wrong and tried == count, "formulas of random kinds are the ranks")
    emit("formula against rank: mismatches", f"{tried} random kinds", wrong, unit="mismatches")
    # Kinds without formula are proven, too.
    emit("time of a rank proof", f"mean of {tried + unknown} random kinds", seconds / (tried + unknown))
    print(f"random kinds: {tried} (seeds {first} to {seed - 1}), mismatches: {wrong}, without formula: {unknown}")
    print(f"{seconds:.1f} CPU s, slowest {slowest:.1f} CPU s")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="50 random kinds")
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    wrong = named() + random(50 if options.quick else options.random, options.first_seed)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
