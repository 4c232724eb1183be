"""Theorems and bounds on dimensions against computed ranks, on thousands of random small architectures.

Every architecture gets a rank mod p at a random point, a proven lower bound. Where a theorem covers it, the rank must
be its value; elsewhere it must not exceed the upper bound, and cases where the two differ are listed as gaps. Exit code
1 if a theorem or a bound is contradicted.

    python benchmarks/theorems.py [--quick] --number 3000 --seed 0
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from attngeom.dimensions import dimension
from attngeom.dimensions.formulas import formula
from attngeom.errors import AttnGeomError
from attngeom.network import Architecture
from contract import emit


def draw(rng: random.Random) -> Architecture:
    """One to three layers, widths at most 5 (4 for several layers), up to five heads, up to three tokens."""
    depth, heads = rng.randint(1, 3), rng.choice((1, 2, 2, 3, 4, 5))
    residual = rng.random() < 0.15
    most = 5 if depth == 1 else 4
    widths = [rng.randint(1, most)] * (depth + 1) if residual else [rng.randint(1, most) for _ in range(depth + 1)]
    return Architecture(
        widths,
        [rng.randint(1, 3) for _ in range(depth)],
        tokens=rng.randint(1, 3),
        kind=rng.choice(("lightning", "softmax", "sigmoid")),
        heads=heads,
        value_width=rng.randint(1, 3) if heads > 1 or rng.random() < 0.2 else None,
        residual=residual,
        causal=rng.random() < 0.2,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="150 architectures")
    options = parser.parse_args()
    number = 150 if options.quick else options.number
    rng, counts, wrong, start = random.Random(options.seed), Counter[str](), 0, time.process_time()
    for _ in range(number):
        architecture = draw(rng)
        try:
            found = dimension(architecture, method="minor", seed=1)
        except AttnGeomError:
            counts["not run"] += 1
            continue
        known = formula(architecture)
        label = "causal" if architecture.causal and architecture.tokens > 1 else "no mask"
        if known is not None and known.status == "theorem":
            counts[known.source] += 1
            if found.lower_bound != known.value:
                wrong += 1
                print("CONTRADICTION", known.source, known.value, found.lower_bound, architecture)
        counts[f"{architecture.kind}, {label}"] += 1
        if found.lower_bound > found.upper.value:
            wrong += 1
            print("CONTRADICTION", found.upper.value, found.lower_bound, architecture)
        elif found.lower_bound < found.upper.value:
            counts[f"{architecture.kind}, {label}: gap"] += 1
            shape = f"{architecture.widths}, a = {architecture.attention}, H = {architecture.heads}"
            print(
                f"gap {found.lower_bound} < {found.upper.value}: {architecture.kind}, {label}, {shape}, "
                f"v = {architecture.value_width}, t = {architecture.tokens}, skip {architecture.residual}"
            )
    for name, count in sorted(counts.items()):
        print(f"{count:6d}  {name}")
    seconds = time.process_time() - start
    gaps = sum(count for name, count in counts.items() if name.endswith(": gap"))
    case = f"{number:,} random architectures, seed {options.seed}"
    emit("theorems and bounds against ranks: contradictions", case, wrong, unit="contradictions")
    emit("theorems and bounds against ranks: bounds that do not meet", case, gaps, unit="gaps")
    emit("theorems and bounds against ranks: time of one rank", case, seconds / number)
    print(f"{number} architectures, {wrong} contradictions, {seconds:.0f} CPU seconds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
