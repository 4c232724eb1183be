"""Theorems and bounds on dimensions against computed ranks, on thousands of random small architectures.

Every architecture gets a rank mod p at a random point, a proven lower bound. Where a theorem covers it, the rank must
be its value; elsewhere it must not exceed the upper bound, and cases where the two differ are listed as gaps. Exit code
1 if a theorem or a bound is contradicted.

    python benchmarks/theorems.py [--quick] --number 3000 --seed 0
    python benchmarks/theorems.py --wide --number 6000 --seed 0

``--wide`` draws hidden widths far above the first one, and masks half of the time: there bounds are weakest. Its last
lines are the table of gaps of docs/theorems/open-problems.md: the smallest network of each kind, and the widest gap.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass

from attngeom.dimensions import dimension
from attngeom.dimensions.formulas import formula
from attngeom.errors import AttnGeomError
from attngeom.network import Architecture
from contract import emit, require


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


def draw_wide(rng: random.Random) -> Architecture:
    """Two or three layers of up to four heads from a narrow input through hidden widths of up to 8."""
    depth = rng.choice((2, 2, 3))
    widths = [rng.randint(1, 3), *(rng.randint(2, 8 if depth == 2 else 5) for _ in range(depth - 1)), rng.randint(1, 4)]
    return Architecture(
        widths,
        [rng.randint(1, 3) for _ in range(depth)],
        tokens=rng.choice((1, 2, 2, 3)),
        kind=rng.choice(("lightning", "softmax", "sigmoid")),
        heads=rng.randint(1, 4),
        value_width=rng.randint(1, 3),
        causal=rng.random() < 0.5,
    )


@dataclass(frozen=True)
class Gap:
    """A network whose bounds do not meet."""

    architecture: Architecture
    lower: int
    upper: int

    def row(self) -> str:
        """A line of the table."""
        a = self.architecture
        widths, attention = (",".join(map(str, sizes)) for sizes in (a.widths, a.attention))
        mask = "causal" if a.causal and a.tokens > 1 else "no mask"
        sizes = f"{widths} | {attention} | {a.heads} | {a.value_width or '-'} | {a.tokens}"
        return f"| {a.kind}, {mask} | {sizes} | {self.lower} | {self.upper} |"


def print_gaps(gaps: list[Gap]) -> None:
    """The smallest network and the widest gap of each kind, mask and number of tokens."""
    groups: dict[tuple[str, bool, int], list[Gap]] = {}
    for gap in gaps:
        a = gap.architecture
        groups.setdefault((a.kind, a.causal and a.tokens > 1, min(a.tokens, 3)), []).append(gap)
    print("| kind | widths | a | H | v | t | rank | bound |\n|---|---|---|---|---|---|---|---|")
    for _, group in sorted(groups.items(), key=lambda item: item[0]):
        smallest = min(group, key=lambda gap: gap.architecture.num_parameters)
        widest = max(group, key=lambda gap: gap.upper - gap.lower)
        print("\n".join(dict.fromkeys((smallest.row(), widest.row()))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="150 architectures")
    parser.add_argument("--wide", action="store_true", help="hidden widths above the first one; list the gaps")
    options = parser.parse_args()
    number = 150 if options.quick else options.number
    gaps: list[Gap] = []
    rng, counts, wrong, start = random.Random(options.seed), Counter[str](), 0, time.process_time()
    for _ in range(number):
        architecture = (draw_wide if options.wide else draw)(rng)
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
            gaps.append(Gap(architecture, found.lower_bound, found.upper.value))
            print(f"gap: {gaps[-1].row()}", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{count:6d}  {name}")
    seconds = time.process_time() - start
    run = number - counts["not run"]
    require(wrong == 0, "no rank contradicts a theorem or a bound")
    require(run > 0.9 * number, "nearly all ranks are computed")
    case = f"{number:,} random architectures, seed {options.seed}"
    emit("theorems and bounds against ranks: contradictions", case, wrong, unit="contradictions")
    emit("theorems and bounds against ranks: bounds that do not meet", case, len(gaps), unit="gaps")
    emit("theorems and bounds against ranks: time of one rank", f"{run:,} of {case}", seconds / run)
    if gaps:
        print_gaps(gaps)
    print(f"{number} architectures, {wrong} contradictions, {seconds:.0f} CPU seconds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
